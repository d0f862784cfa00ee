import { Type, type Static } from 'typebox';
import { RetryPolicy } from '../../domain/jobs/retry.ts';
import {
  CONCURRENCY_SCOPES,
  RemoteTypeDefinition,
  TYPE_ACCESS,
  WHEN_FULL,
} from '../../domain/runners/definition.ts';
import { TARGET_KINDS } from '../../domain/jobs/targets.ts';
import { TYPE_STATES } from '../../domain/runners/records.ts';
import { Actor, closed, JsonObject, Nullable, Timestamp } from '../http/schemas.ts';

export const JobTypeRecord = Type.Object(
  {
    name: Type.String(),
    summary: Type.String(),
    payloadSchema: Type.Object(
      {},
      { additionalProperties: true, description: 'JSON Schema 2020-12.' },
    ),
    resultSchema: Nullable(
      JsonObject({ description: 'JSON Schema of the result, if it has one.' }),
    ),
    permission: Nullable(
      Type.String({ description: 'Needed to create such a job, besides `job:write`.' }),
    ),
    access: Type.Enum([...TYPE_ACCESS], {
      title: 'JobTypeAccess',
      description:
        'With `granted`, creating such a job also needs a role whose `jobTypes` name the type.',
    }),
    mayRun: Type.Boolean({
      description:
        'Whether you may create such jobs with `POST /api/jobs` at the tenant of the request; of a type ' +
        'with `targets`, whether you may at any target.',
    }),
    targets: Type.Enum([...TARGET_KINDS], {
      description:
        'What such jobs are about: `POST /api/jobs` needs a `target` of this kind. The job belongs to ' +
        'it, and the permissions are needed there.',
    }),
    createdOnlyBy: Nullable(
      Type.String({
        description: 'The operation that creates such jobs; null if `POST /api/jobs` does.',
      }),
    ),
    lane: Type.Enum(['inline', 'activity', 'delivery', 'workflow', 'remote'], {
      description: 'Where the work runs; `remote`: on the runners of a pool.',
    }),
    retryPolicy: RetryPolicy,
    timeoutMs: Type.Integer({ description: 'Limit of one attempt, in milliseconds.' }),
    origin: Type.Enum(['holdfast', 'runner'], {
      title: 'JobTypeOrigin',
      description: '`runner`: runners have announced it.',
    }),
    state: Type.Enum([...TYPE_STATES], {
      title: 'JobTypeState',
      description:
        '`waiting`: announced by runners, and not accepted yet. `disabled`: no job of it is created or started.',
    }),
    pools: Type.Array(Type.String(), { description: 'The pools whose runners run it.' }),
    runners: Nullable(
      Type.Integer({ description: 'Living runners of these pools; null for other types.' }),
    ),
    digest: Nullable(
      Type.String({ description: 'The version of a type of runners that was accepted last.' }),
    ),
    concurrency: Nullable(
      Type.Object(
        {
          limit: Type.Integer(),
          per: Type.Enum([...CONCURRENCY_SCOPES]),
          whenFull: Type.Enum([...WHEN_FULL]),
        },
        { title: 'JobTypeConcurrency', description: 'How many jobs of the type run at a time.' },
      ),
    ),
    acceptedBy: Nullable(Actor()),
    acceptedAt: Nullable(Timestamp),
    version: Nullable(
      Type.Integer({ description: 'Of the record of a type of runners; null for other types.' }),
    ),
  },
  { title: 'JobType', ...closed },
);
export type JobTypeRecord = Static<typeof JobTypeRecord>;

const JobTypeVersion = Type.Object(
  {
    digest: Type.String(),
    accepted: Type.Boolean({
      description: 'Runners with this version get jobs while the type is accepted.',
    }),
    runners: Type.Integer({ description: 'Living runners that have it.' }),
    definition: RemoteTypeDefinition,
    firstSeenAt: Timestamp,
  },
  { title: 'JobTypeVersion', ...closed },
);

export const JobTypeWithVersions = Type.Object(
  {
    ...JobTypeRecord.properties,
    versions: Type.Array(JobTypeVersion, {
      description: 'What runners have announced, newest first.',
    }),
  },
  { title: 'JobTypeWithVersions', ...closed },
);
