import { hash } from 'node:crypto';
import { sortedJson } from '../shared/sortedJson.ts';
import type { RemoteTypeDefinition } from './definition.ts';

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
  return hash('sha256', text, 'hex');
};
