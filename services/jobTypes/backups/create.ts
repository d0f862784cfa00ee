import { Type, type Static } from 'typebox';
import type { Knex } from '../../../db/core/knex.ts';
import { Backup } from '../../../db/models/Backup.ts';
import { BACKUP_JOB, ENGINES, MODES, SECTIONS } from '../../../domain/backups/backups.ts';
import { defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import { backupWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { ONE_LINE } from '../../../domain/shared/oneLine.ts';
import { HOUR_MS } from '../../../domain/shared/durations.ts';
import { asJobFailure } from '../../backups/archives.ts';
import type { Backups } from '../../backups/backups.ts';

const Count = Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000 }));

export const LABEL = { maxLength: 200, ...ONE_LINE };

/** Which backups of a series are kept. */
export const RetentionRule = Type.Object(
  { last: Count, daily: Count, weekly: Count, monthly: Count },
  {
    title: 'BackupRetention',
    additionalProperties: false,
    description:
      'How many backups of the series (same tenant, label, mode and sections) to keep: ' +
      'the last ones, and the last one of each day, week and month in UTC. Empty: all.',
  },
);

/** The payload of `backup.create` jobs. */
export const BackupPayload = Type.Object(
  {
    mode: Type.Optional(
      Type.Enum([...MODES], {
        title: 'BackupMode',
        description:
          'full: all sections. partial: some sections, and those they refer to. Default: full.',
      }),
    ),
    sections: Type.Optional(
      Type.Array(Type.Enum([...SECTIONS], { title: 'BackupSection' }), {
        maxItems: SECTIONS.length,
        description:
          'Used in the mode partial, where none means all; the mode full ignores them. ' +
          'GET /api/backup lists the available sections.',
      }),
    ),
    engine: Type.Optional(
      Type.Enum([...ENGINES], {
        title: 'BackupEngine',
        description:
          'The format of rows. GET /api/backup describes the engines. Default: snapshot.',
      }),
    ),
    label: Type.Optional(
      Type.String({ ...LABEL, description: 'Backups with the same label form a series.' }),
    ),
    retention: Type.Optional(RetentionRule),
  },
  { additionalProperties: false },
);
type Payload = Static<typeof BackupPayload>;

export type BackupTypeDeps = { db: Knex; backups: Backups };

/** The job type that makes a backup of the job's tenant. */
export const backupCreate = ({ db, backups }: BackupTypeDeps): JobType<Payload> =>
  defineJobType<Payload>({
    name: BACKUP_JOB,
    summary: 'Makes a backup of the platform or of a tenant',
    payload: BackupPayload,
    permission: 'backup:write',
    lane: 'workflow',
    timeoutMs: STEP_TIMEOUT_MS,
    retry: STEP_RETRY,
    check: (payload, caller) => backups.check(caller, payload),
    prepare: async (payload, { jobId, caller }) => {
      const { id } = await backups
        .findOrCreateForJob(caller, jobId, payload)
        .catch((error: unknown) => {
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

/** The time limit of each step, which may read or write all records. */
export const STEP_TIMEOUT_MS = 12 * HOUR_MS;
/** The default retry policy of each step: it outlasts a store that is unavailable for minutes. */
export const STEP_RETRY = { maxAttempts: 6, initialIntervalSeconds: 5, maxIntervalSeconds: 120 };
