import { Type } from 'typebox';

/** The name of a secret, unique in its tenant: how job types ask for it. */
export const SecretName = (description?: string) =>
  Type.String({
    pattern: '^[a-z][a-z0-9-]{0,62}$',
    'x-rule':
      'must be a name such as port-audit: up to 63 of a to z, 0 to 9 and hyphens, a letter first',
    ...(description !== undefined && { description }),
  });
