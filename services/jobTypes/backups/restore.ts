import { Type, type Static } from 'typebox';
import type { Knex } from '../../../db/core/knex.ts';
import { RestoreRun } from '../../../db/models/Backup.ts';
import {
  RESTORE_JOB,
  SECTIONS,
  VALIDATE_JOB,
  VERIFY_JOB,
  type LoadPurpose,
} from '../../../domain/backups/backups.ts';
import {
  defineJobType,
  type JobType,
  type ChildWorkflowSpec,
  type StepContext,
} from '../../../domain/jobs/jobType.ts';
import { restoreWorkflowId } from '../../../domain/dispatch/workflowIds.ts';
import { asJobFailure } from '../../backups/archives.ts';
import type { Restores } from '../../backups/restores.ts';
import type { RestorePayload } from '../../backups/restoreRun.ts';
import { LABEL, STEP_TIMEOUT_MS, STEP_RETRY } from './create.ts';

const closed = { additionalProperties: false };
const restoreFields = {
  backupId: Type.String({
    pattern: '^bkp_[0-9a-z]{26}$',
    'x-rule': 'must be the id of a backup, such as bkp_01jd0cmxk5e5v8kyzwq0q8s3rt',
  }),
  sections: Type.Optional(
    Type.Array(Type.Enum([...SECTIONS], { title: 'BackupSection' }), {
      minItems: 1,
      maxItems: SECTIONS.length,
      description: 'The sections of the backup to restore. Default: all.',
    }),
  ),
};

export const VerifyPayload = Type.Object(
  {
    backupId: Type.Optional(restoreFields.backupId),
    label: Type.Optional(
      Type.String({
        ...LABEL,
        description: 'Without backupId: the newest completed backup with this label.',
      }),
    ),
  },
  { ...closed, description: 'Without backupId: the newest completed backup.' },
);
export const ValidatePayload = Type.Object(
  {
    ...restoreFields,
    confirm: Type.Optional(
      Type.Boolean({ description: 'Reports lockout risks as warnings. Default: false.' }),
    ),
  },
  closed,
);
export const RestoreRequest = Type.Object(
  {
    ...restoreFields,
    planHash: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        'x-rule': 'must be the planHash of a validation: 64 hexadecimal digits',
        description:
          'The planHash of a validation: nothing is restored if records have changed since.',
      }),
    ),
    confirm: Type.Optional(
      Type.Boolean({
        description:
          'Restores even if no administrator, or not you, could sign in then. Default: false.',
      }),
    ),
    preRestoreBackup: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'Makes a backup of the current records first.',
      }),
    ),
  },
  closed,
);

export type RestoreTypeDeps = { db: Knex; restores: Pick<Restores, 'findOrCreateForJob'> };

const commonSettings = { lane: 'workflow', timeoutMs: STEP_TIMEOUT_MS, retry: STEP_RETRY } as const;

/** The job types that load an archive: test restore, validation and restore. */
export const restoreJobTypes = ({ db, restores }: RestoreTypeDeps): JobType[] => [
  defineJobType<Static<typeof VerifyPayload>>({
    ...commonSettings,
    name: VERIFY_JOB,
    summary: 'Tests a backup: loads its archive completely and compares it',
    payload: VerifyPayload,
    permission: 'backup:write',
    prepare: (payload, context) => startRun(restores, 'verify', payload, context),
    result: (jobId) => outcomeOf(db, jobId),
  }),
  defineJobType<Static<typeof ValidatePayload>>({
    ...commonSettings,
    name: VALIDATE_JOB,
    summary: 'Reports what a restore would change',
    payload: ValidatePayload,
    permission: 'backup:read',
    createdOnlyBy: 'POST /api/backup/restore/validate',
    prepare: (payload, context) => startRun(restores, 'validate', payload, context),
    result: (jobId) => reportOf(db, jobId),
  }),
  defineJobType<Static<typeof RestoreRequest>>({
    ...commonSettings,
    name: RESTORE_JOB,
    summary: 'Restores the records of a backup',
    payload: RestoreRequest,
    permission: 'backup:restore',
    prepare: (payload, context) => startRun(restores, 'restore', payload, context),
    result: (jobId) => outcomeOf(db, jobId),
  }),
];

/** Records which archive the job loads, and names the workflow that does it. */
async function startRun(
  restores: RestoreTypeDeps['restores'],
  purpose: LoadPurpose,
  payload: Partial<RestorePayload>,
  { jobId, caller }: Omit<StepContext, 'payload'>,
): Promise<ChildWorkflowSpec> {
  const run = await restores
    .findOrCreateForJob(caller, jobId, purpose, payload)
    .catch((error: unknown) => {
      throw asJobFailure(error);
    });
  return {
    workflow: 'restore',
    workflowId: restoreWorkflowId(purpose, jobId),
    input: { jobId, purpose },
    summary: `${purpose} a backup`,
    record: run.backupId,
  };
}

const outcomeOf = async (db: Knex, jobId: string): Promise<object> =>
  (await RestoreRun.query(db).findById(jobId).throwIfNotFound()).outcome ?? {};

async function reportOf(db: Knex, jobId: string): Promise<object> {
  const { backupId, report } = await RestoreRun.query(db).findById(jobId).throwIfNotFound();
  return {
    backupId,
    valid: report?.valid ?? false,
    counts: report?.preview.counts ?? {},
    planHash: report?.planHash ?? null,
  };
}
