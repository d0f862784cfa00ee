import { Type } from 'typebox';

/** The number of mutations in one request. */
export const MAX_MUTATIONS = 1_000;

/** The schema of a requested mutation. The planner validates its record. */
export const MutationBody = Type.Object(
  {
    resource: Type.String({ maxLength: 100, examples: ['prefixes'] }),
    operation: Type.String({ maxLength: 100, description: 'create, update or delete.' }),
    record: Type.Object(
      {},
      {
        title: 'JsonObject',
        additionalProperties: true,
        description: 'The candidate; `id` names the record that is updated or deleted.',
      },
    ),
  },
  { title: 'Mutation', additionalProperties: false },
);
export const Mutations = Type.Array(MutationBody, { minItems: 1, maxItems: MAX_MUTATIONS });
