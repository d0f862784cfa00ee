import { invalidField } from '../../domain/shared/errors.ts';
import { MAX_MUTATIONS } from '../../domain/inventory/mutations.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const mutationOf = (value: unknown): Mutation => {
  const { resource, operation, record } = (
    typeof value === 'object' && value !== null ? value : {}
  ) as Record<string, unknown>;
  return { resource: textOf(resource), operation: textOf(operation), record };
};

/**
 * The mutations that a validation asks about: one, or `several` in order. What is wrong with one of them is the planner's
 * to say. Error: `invalid_request` at or below `pointer` for what is no such question.
 */
export function readMutations(
  value: unknown,
  pointer: string,
): { mutations: Mutation[]; several: boolean } {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalidField('body', pointer, 'type', 'must be object');
  const several = Object.hasOwn(value, 'mutations');
  if (several && Object.keys(value).length > 1)
    throw invalidField(
      'body',
      pointer,
      'one_of',
      'must have either mutations, or resource, operation and record',
    );
  const known = several ? ['mutations'] : ['resource', 'operation', 'record'];
  for (const name of Object.keys(value))
    if (!known.includes(name))
      throw invalidField('body', `${pointer}/${name}`, 'unknown_field', 'is not a known field');
  const { mutations } = value as { mutations?: unknown };
  if (
    several &&
    (!Array.isArray(mutations) || mutations.length === 0 || mutations.length > MAX_MUTATIONS)
  ) {
    throw invalidField(
      'body',
      `${pointer}/mutations`,
      'type',
      `must be an array of 1 to ${MAX_MUTATIONS} mutations`,
    );
  }
  return { mutations: (several ? (mutations as unknown[]) : [value]).map(mutationOf), several };
}
