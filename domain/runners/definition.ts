import { Type, type Static } from 'typebox';
import { JOB_TYPE_NAME, MAX_JOB_TYPE_NAME } from '../jobs/jobTypeNames.ts';
import { RetryPolicy } from '../jobs/retry.ts';
import { TARGET_KINDS } from '../jobs/targets.ts';
import { SecretName } from '../secrets/secrets.ts';

/** The form of the name of a pool. */
export const POOL_NAME = '^[a-z][a-z0-9-]{0,62}$';

/**
 * The workers, as secrets name them: those that name this pool are released to job types of modules. No
 * runner has it.
 */
export const MODULES_POOL = 'modules';

/** Who may run jobs of a type: `open`, all who may create jobs; `granted`, those whose roles name it. */
export const TYPE_ACCESS = ['open', 'granted'] as const;
export type TypeAccess = (typeof TYPE_ACCESS)[number];

/** What the limit of concurrent jobs is counted over. */
export const CONCURRENCY_SCOPES = ['type', 'tenant', 'target'] as const;

/** What happens to a job that is one too many. */
export const WHEN_FULL = ['wait', 'refuse'] as const;

/** How many jobs of a type may run at a time, and what happens to one too many. */
export const Concurrency = Type.Object(
  {
    limit: Type.Integer({ minimum: 1, maximum: 1_000 }),
    per: Type.Optional(
      Type.Enum([...CONCURRENCY_SCOPES], {
        title: 'JobConcurrencyScope',
        description:
          'Counted over all jobs of the type (`type`, the default), those of one tenant, or those of one target.',
      }),
    ),
    whenFull: Type.Optional(
      Type.Enum([...WHEN_FULL], {
        title: 'JobConcurrencyWhenFull',
        description:
          '`wait`, the default: the job starts later. `refuse`: it fails with `concurrency_limit`.',
      }),
    ),
  },
  { title: 'JobConcurrency', additionalProperties: false },
);

const JsonSchema = (description: string) =>
  Type.Record(Type.String(), Type.Unknown(), { title: 'JsonSchema', description });

/** Which named secrets an attempt gets, and under which names. */
export const WantedSecrets = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]{0,63}$' }),
  Type.Object({ secret: SecretName() }, { title: 'WantedSecret', additionalProperties: false }),
  {
    title: 'WantedSecrets',
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
    name: Type.String({
      maxLength: MAX_JOB_TYPE_NAME,
      pattern: JOB_TYPE_NAME,
      'x-rule': 'must be two or more words of a to z, 0 to 9 and hyphens, separated by dots',
    }),
    summary: Type.String({ minLength: 1, maxLength: 500 }),
    pool: Type.String({ pattern: POOL_NAME, 'x-rule': 'must be the name of a pool' }),
    targets: Type.Enum([...TARGET_KINDS], { title: 'JobTypeTargets', default: 'none' }),
    access: Type.Enum([...TYPE_ACCESS], { title: 'JobTypeAccess', default: 'granted' }),
    payload: JsonSchema('The JSON Schema of the payload, of the type `object`.'),
    result: Type.Optional(JsonSchema('The JSON Schema of the result.')),
    timeoutSeconds: Type.Integer({ minimum: 1, maximum: 86_400, default: 600 }),
    lostAfterSeconds: Type.Integer({
      minimum: 5,
      maximum: 600,
      default: 30,
      description: 'A runner that has not reported for this time has lost the attempt.',
    }),
    retry: Type.Optional(
      Type.Partial(RetryPolicy, { title: 'PartialRetryPolicy', additionalProperties: false }),
    ),
    concurrency: Type.Optional(Concurrency),
    secrets: Type.Optional(WantedSecrets),
  },
  { title: 'RemoteJobType', additionalProperties: false },
);
export type RemoteTypeDefinition = Static<typeof RemoteTypeDefinition>;

/** Largest definition, in bytes of JSON. */
export const MAX_DEFINITION_BYTES = 65_536;

/** Types that one runner can announce for a pool; more are refused. */
export const MAX_ANNOUNCED_TYPES = 200;
