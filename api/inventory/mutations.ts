import {
  invalidField,
  invalidFields,
  MAX_FIELD_ERRORS,
  type FieldError,
} from '../../domain/shared/errors.ts';
import { MAX_MUTATIONS } from '../../domain/inventory/mutations.ts';
import { pointerTo } from '../../domain/shared/jsonPointer.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';

const stringOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

const toMutation = (value: unknown): Mutation => {
  const { resource, operation, record } = isJsonObject(value) ? value : {};
  return { resource: stringOrEmpty(resource), operation: stringOrEmpty(operation), record };
};

const MUTATION_FIELDS: readonly string[] = ['resource', 'operation', 'record'];
/** Null in a field of the other form is not given, as in other optional fields. */
const REQUEST_FIELDS: readonly string[] = [...MUTATION_FIELDS, 'mutations'];

const unknownFields = (value: unknown, known: readonly string[], pointer: string): FieldError[] =>
  Object.keys(isJsonObject(value) ? value : {})
    .filter((name) => !known.includes(name))
    .map((name) => ({
      in: 'body',
      pointer: `${pointer}${pointerTo([name])}`,
      code: 'unknown_field',
      message: 'is not a known field',
    }));

function assertKnown(unknown: readonly FieldError[]): void {
  if (unknown.length > 0) throw invalidFields(unknown.slice(0, MAX_FIELD_ERRORS));
}

/**
 * Reads a validation request: one mutation, or several in order. The planner validates the
 * mutations. Error: `invalid_request` at or below `pointer` for any other form, and for unknown fields.
 */
export function readMutations(
  value: unknown,
  pointer: string,
): { mutations: Mutation[]; isBatch: boolean } {
  if (!isJsonObject(value)) throw invalidField('body', pointer, 'type', 'must be an object');
  const given = Object.entries(value).filter(([, field]) => field !== null);
  const fields = Object.fromEntries(given);
  const isBatch = Object.hasOwn(fields, 'mutations');
  if (isBatch && given.length > 1)
    throw invalidField(
      'body',
      pointer,
      'one_of',
      'must have either mutations, or resource, operation and record',
    );
  assertKnown(unknownFields(value, REQUEST_FIELDS, pointer));
  const { mutations } = fields;
  if (
    isBatch &&
    (!Array.isArray(mutations) || mutations.length === 0 || mutations.length > MAX_MUTATIONS)
  ) {
    throw invalidField(
      'body',
      `${pointer}/mutations`,
      'type',
      `must be an array of 1 to ${MAX_MUTATIONS} mutations`,
    );
  }
  const requested = isBatch ? (mutations as unknown[]) : [fields];
  if (isBatch)
    assertKnown(
      requested.flatMap((each, i) =>
        unknownFields(each, MUTATION_FIELDS, `${pointer}/mutations/${i}`),
      ),
    );
  return { mutations: requested.map(toMutation), isBatch };
}
