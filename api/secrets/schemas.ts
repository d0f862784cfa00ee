import { Type, type Static } from 'typebox';
import { POOL_NAME } from '../../domain/runners/definition.ts';
import { MAX_SECRET_LENGTH, MAX_SECRET_POOLS, SecretName } from '../../domain/secrets/secrets.ts';
import { Actor, closed, Id, Reference, Timestamp } from '../http/schemas.ts';

const Pools = Type.Array(
  Type.String({
    pattern: POOL_NAME,
    'x-rule': 'must be the name of a pool: up to 63 of a to z, 0 to 9 and hyphens, a letter first',
  }),
  {
    maxItems: MAX_SECRET_POOLS,
    description: 'The pools whose runners may receive the value; none by default.',
  },
);
const Value = Type.String({
  minLength: 1,
  maxLength: MAX_SECRET_LENGTH,
  // No variable of a process can have it.
  pattern: '^[^\\u0000]*$',
  'x-rule': 'must have no NUL character',
  writeOnly: true,
  description: 'The value. It is encrypted, and no response contains it.',
});
const Description = Type.String({ maxLength: 1_000 });

export const SecretRecord = Type.Object(
  {
    id: Id('sec'),
    tenantId: Reference('tenants', 'Whose jobs may use it; with `platform`, those of all tenants.'),
    name: SecretName('The name by which job types ask for it.'),
    description: Type.String(),
    pools: Type.Array(Type.String(), { description: 'The pools whose runners may receive it.' }),
    valueSetAt: Type.String({ format: 'date-time', description: 'When the value was set.' }),
    createdBy: Actor(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'Secret', ...closed },
);
export type SecretRecord = Static<typeof SecretRecord>;

export const SecretRequest = Type.Object(
  {
    name: SecretName('Unique in the tenant. It cannot be changed later.'),
    value: Value,
    description: Type.Optional(Description),
    pools: Type.Optional(Pools),
  },
  { title: 'SecretRequest', ...closed },
);

export const SecretChange = Type.Object(
  {
    value: Type.Optional({
      ...Value,
      description: 'The new value. Attempts that begin from now on get it.',
    }),
    description: Type.Optional(Description),
    pools: Type.Optional(Pools),
  },
  { title: 'SecretChange', ...closed },
);
