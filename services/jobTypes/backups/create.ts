import { Type, type Static } from 'typebox';
import type { Knex } from '../../../db/core/knex.ts';
import { Backup } from '../../../db/models/Backup.ts';
import { BACKUP_JOB, ENGINES, MODES, SECTIONS } from '../../../domain/backups.ts';
import { jobType, type JobType } from '../../../domain/jobType.ts';
import { backupWorkflowId } from '../../../temporal/contracts.ts';
import { asJobFailure } from '../../backups/archives.ts';
import type { Backups } from '../../backups/backups.ts';

const Count = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 }));

/** No control characters, no half of a character. */
export const LABEL = { maxLength: 200, pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]*$' };

/** Which backups of a series stay. */
export const KeepRule = Type.Object(
  { last: Count, daily: Count, weekly: Count, monthly: Count },
  {
    additionalProperties: false,
    description:
      'After this backup, how many of its series (same tenant, label, mode and sections) stay: the last ones, and the last of each day, week and month, UTC. All, where this is empty.',
  },
);

/** What a backup is asked for. */
export const BackupPayload = Type.Object(
  {
    mode: Type.Optional(
      Type.Enum([...MODES], {
        description:
          'full takes every section, partial those that are named and what they refer to.',
      }),
    ),
    sections: Type.Optional(Type.Array(Type.Enum([...SECTIONS]), { maxItems: SECTIONS.length })),
    engine: Type.Optional(Type.Enum([...ENGINES])),
    label: Type.Optional(Type.String(LABEL)),
    keep: Type.Optional(KeepRule),
  },
  { additionalProperties: false },
);
type Payload = Static<typeof BackupPayload>;

export type BackupTypeDeps = { db: Knex; backups: Backups };

/** Makes an archive of the records where the job stands. */
export const backupCreate = ({ db, backups }: BackupTypeDeps): JobType<Payload> =>
  jobType<Payload>({
    name: BACKUP_JOB,
    summary: 'Makes a backup of the platform, or of a tenant',
    payload: BackupPayload,
    permission: 'backup:write',
    lane: 'steps',
    timeoutMs: STEP_LIMIT_MS,
    retry: STEP_RETRY,
    begin: async (payload, { jobId, caller }) => {
      const { id } = await backups.ofJob(caller, jobId, payload).catch((error: unknown) => {
        throw asJobFailure(error);
      });
      return {
        workflow: 'backup',
        workflowId: backupWorkflowId(id),
        input: { backupId: id, jobId },
        summary: 'backup',
        record: id,
      };
    },
    result: async (jobId) => {
      const { id, sizeBytes, rows, sections, includes, verifiedAt } = await Backup.query(db)
        .findOne({ job_id: jobId })
        .throwIfNotFound();
      return { backupId: id, sizeBytes, rows, sections, includes, verifiedAt };
    },
  });

/** A step that reads or writes all records may take so long. */
export const STEP_LIMIT_MS = 12 * 3_600_000;
/** Of each step; a store that is away for a few minutes is waited for. */
export const STEP_RETRY = { maxAttempts: 6, initialIntervalSeconds: 5, maxIntervalSeconds: 120 };
