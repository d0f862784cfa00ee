import { Type } from 'typebox';

/** Changes that one request may ask for. */
export const MAX_MUTATIONS = 1_000;

/** A change as it is asked for; what its record may hold, the planner checks. */
export const MutationBody = Type.Object(
  {
    resource: Type.String({ examples: ['prefixes'] }),
    operation: Type.String({ description: 'create, update or delete.' }),
    record: Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'The candidate; `id` names the record that is updated or deleted.',
      },
    ),
  },
  { additionalProperties: false },
);
export const Mutations = Type.Array(MutationBody, { minItems: 1, maxItems: MAX_MUTATIONS });
