import { invalidField } from '../../domain/shared/errors.ts';
import { MAX_MUTATIONS } from '../../domain/inventory/mutations.ts';
import { escapePointer } from '../../domain/shared/jsonPointer.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';

const stringOrEmpty = (value: unknown): string => (typeof value === 'string' ? value : '');

const toMutation = (value: unknown): Mutation => {
  const { resource, operation, record } = (
    typeof value === 'object' && value !== null ? value : {}
  ) as Record<string, unknown>;
  return { resource: stringOrEmpty(resource), operation: stringOrEmpty(operation), record };
};

/**
 * Reads a validation request: one mutation, or several in order. The planner validates the
 * mutations. Error: `invalid_request` at or below `pointer` for any other form.
 */
export function readMutations(
  value: unknown,
  pointer: string,
): { mutations: Mutation[]; isBatch: boolean } {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidField('body', pointer, 'type', 'must be object');
  // Null is not given, as in other optional fields.
  const given = Object.entries(value).filter(([, field]) => field !== null);
  const fields = Object.fromEntries(given) as Record<string, unknown>;
  const isBatch = Object.hasOwn(fields, 'mutations');
  if (isBatch && given.length > 1)
    throw invalidField(
      'body',
      pointer,
      'one_of',
      'must have either mutations, or resource, operation and record',
    );
  const knownFields = isBatch ? ['mutations'] : ['resource', 'operation', 'record'];
  for (const name of Object.keys(value))
    if (!knownFields.includes(name))
      throw invalidField(
        'body',
        `${pointer}/${escapePointer(name)}`,
        'unknown_field',
        'is not a known field',
      );
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
  return { mutations: (isBatch ? (mutations as unknown[]) : [fields]).map(toMutation), isBatch };
}
