import { Type } from 'typebox';

/** The name of a secret, unique in its tenant: how job types ask for it. */
export const SecretName = (description?: string) =>
  Type.String({
    pattern: '^[a-z][a-z0-9-]{0,62}$',
    'x-rule':
      'must be a name such as port-audit: up to 63 of a to z, 0 to 9 and hyphens, a letter first',
    ...(description !== undefined && { description }),
  });

/** The context in which the vault encrypts the value of a secret. */
export const secretContext = (id: string): string => `secret:${id}:value`;

/** Longest value, in characters: a private key with its chain of certificates. */
export const MAX_SECRET_LENGTH = 32_768;

/** Pools that may receive one secret. */
export const MAX_SECRET_POOLS = 50;

/** A named secret as callers see it: without its value, which is never read back. */
export type SecretData = {
  id: string;
  tenantId: string;
  name: string;
  description: string;
  /** The pools whose runners may receive the value. */
  pools: string[];
  /** When the present value was set. */
  valueSetAt: Date;
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
  version: number;
};
