import { createHash } from 'node:crypto';
import type { RemoteTypeDefinition } from './definition.ts';

/** A JSON value as text in which the names of objects are sorted: equal values have equal texts. */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => `${JSON.stringify(name)}:${sortedJson(each)}`);
  return `{${entries.join(',')}}`;
}

/**
 * Identifies what was accepted of a type: what its payload and its jobs belong to, and who may run it.
 * Another shape needs acceptance again; other code does not.
 */
export const shapeOf = ({
  payload,
  targets,
  access,
  ...rest
}: Pick<RemoteTypeDefinition, 'payload' | 'targets' | 'access'> & object): string => {
  const secrets = (rest as { secrets?: unknown }).secrets ?? null;
  const text = sortedJson({ payload, targets, access, secrets });
  return createHash('sha256').update(text).digest('hex');
};
