import { Type, type Static } from 'typebox';
import { JOB_TYPE_NAME } from '../jobs/jobTypeNames.ts';
import { RetryPolicy } from '../jobs/retry.ts';
import { TARGET_KINDS } from '../jobs/targets.ts';
import { SecretName } from '../secrets/secrets.ts';

/** The form of the name of a pool. */
export const POOL_NAME = '^[a-z][a-z0-9-]{0,62}$';

/** Who may run jobs of a type: `open`, all who may create jobs; `granted`, those whose roles name it. */
export const TYPE_ACCESS = ['open', 'granted'] as const;
export type TypeAccess = (typeof TYPE_ACCESS)[number];

/** How many jobs of a type may run at a time, and what happens to one too many. */
export const Concurrency = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 1_000 }),
    per: Type.Union([Type.Literal('type'), Type.Literal('tenant'), Type.Literal('target')], {
      default: 'type',
      description:
        'Counted over all jobs of the type, those of one tenant, or those of one target.',
    }),
    whenFull: Type.Union([Type.Literal('wait'), Type.Literal('refuse')], {
      default: 'wait',
      description: '`wait`: the job starts later. `refuse`: it fails with `concurrency_limit`.',
    }),
  },
  { title: 'JobConcurrency', additionalProperties: false },
);

const JsonSchema = (description: string) =>
  Type.Record(Type.String(), Type.Unknown(), { description });

/** Which named secrets an attempt gets, and under which names. */
export const WantedSecrets = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$' }),
  Type.Object({ secret: SecretName() }, { title: 'WantedSecret', additionalProperties: false }),
  {
    maxProperties: 20,
    additionalProperties: false,
    description:
      'Named secrets (`/api/secrets`) that each attempt gets, by the name under which the code reads it. ' +
      'The secret is that of the tenant of the job or, if it has none of this name, of the platform, and ' +
      'must name the pool.',
  },
);
export type WantedSecrets = Static<typeof WantedSecrets>;

/** A remote job type: what runners announce and the API keeps. How it runs is the runner's own. */
export const RemoteTypeDefinition = Type.Object(
  {
    name: Type.String({ maxLength: 128, pattern: JOB_TYPE_NAME }),
    summary: Type.String({ minLength: 1, maxLength: 500 }),
    pool: Type.String({ pattern: POOL_NAME }),
    targets: Type.Union(
      TARGET_KINDS.map((kind) => Type.Literal(kind)),
      { default: 'none' },
    ),
    access: Type.Union(
      TYPE_ACCESS.map((access) => Type.Literal(access)),
      { default: 'granted' },
    ),
    payload: JsonSchema('The JSON Schema of the payload, of the type `object`.'),
    result: Type.Optional(JsonSchema('The JSON Schema of the result.')),
    timeoutSeconds: Type.Integer({ minimum: 1, maximum: 86_400, default: 600 }),
    lostAfterSeconds: Type.Integer({
      minimum: 5,
      maximum: 600,
      default: 30,
      description: 'A runner that has not been heard of for so long has lost the attempt.',
    }),
    retry: Type.Optional(Type.Partial(RetryPolicy, { additionalProperties: false })),
    concurrency: Type.Optional(Concurrency),
    secrets: Type.Optional(WantedSecrets),
  },
  { title: 'RemoteJobType', additionalProperties: false },
);
export type RemoteTypeDefinition = Static<typeof RemoteTypeDefinition>;

/** Largest definition, in bytes of JSON. */
export const MAX_DEFINITION_BYTES = 65_536;
