import { Type, type Static } from 'typebox';
import type { Knex } from '../../db/core/knex.ts';
import { RestoreRun } from '../../db/models/Backup.ts';
import {
  RESTORE_JOB,
  SECTIONS,
  VALIDATE_JOB,
  VERIFY_JOB,
  type LoadPurpose,
} from '../../domain/backups.ts';
import { jobType, type JobType, type SteppedRun, type StepsOf } from '../../domain/jobType.ts';
import { restoreWorkflowId } from '../../temporal/contracts.ts';
import { asJobFailure } from '../backups/archives.ts';
import type { Restores } from '../backups/restores.ts';
import type { RestorePayload } from '../backups/restoreSteps.ts';
import { LABEL, STEP_LIMIT_MS, STEP_RETRY } from './backups/create.ts';

const closed = { additionalProperties: false };
const looked = {
  backupId: Type.String({ pattern: '^bkp_[0-9a-z]{26}$' }),
  sections: Type.Optional(
    Type.Array(Type.Enum([...SECTIONS]), {
      maxItems: SECTIONS.length,
      description: 'Those of the backup that are restored; all, where left out.',
    }),
  ),
};

export const VerifyPayload = Type.Object(
  {
    backupId: Type.Optional(looked.backupId),
    label: Type.Optional(
      Type.String({ ...LABEL, description: 'Where no backup is named: of this label.' }),
    ),
  },
  { ...closed, description: 'Without backupId it is the newest backup that is completed.' },
);
export const ValidatePayload = Type.Object(
  { ...looked, confirm: Type.Optional(Type.Boolean()) },
  closed,
);
export const RestoreRequest = Type.Object(
  {
    ...looked,
    planHash: Type.Optional(
      Type.String({
        pattern: '^[0-9a-f]{64}$',
        description: 'Of a validation: where the records have changed since, nothing is restored.',
      }),
    ),
    confirm: Type.Optional(
      Type.Boolean({
        description:
          'Restores although nobody, or not you, could administer the platform after it.',
      }),
    ),
    safetyBackup: Type.Optional(
      Type.Boolean({
        default: true,
        description: 'Makes a backup of what is here now before it is changed.',
      }),
    ),
  },
  closed,
);

export type RestoreTypeDeps = { db: Knex; restores: Pick<Restores, 'ofJob'> };

const common = { lane: 'steps', timeoutMs: STEP_LIMIT_MS, retry: STEP_RETRY } as const;

/** The job types that load an archive: to prove it, to look at what a restore would do, and to restore. */
export function archiveTypes({ db, restores }: RestoreTypeDeps): JobType[] {
  const begin =
    (purpose: LoadPurpose) =>
    async (
      payload: Partial<RestorePayload>,
      { jobId, caller }: Omit<StepsOf, 'payload'>,
    ): Promise<SteppedRun> => {
      const run = await restores.ofJob(caller, jobId, purpose, payload).catch((error: unknown) => {
        throw asJobFailure(error);
      });
      return {
        workflow: 'restore',
        workflowId: restoreWorkflowId(purpose, jobId),
        input: { jobId, purpose },
        summary: `${purpose} a backup`,
        record: run.backupId,
      };
    };
  const outcome = async (jobId: string): Promise<object> =>
    (await RestoreRun.query(db).findById(jobId).throwIfNotFound()).outcome ?? {};
  return [
    jobType<Static<typeof VerifyPayload>>({
      ...common,
      name: VERIFY_JOB,
      summary: 'Proves a backup: loads its archive beside the records and compares it',
      payload: VerifyPayload,
      permission: 'backup:write',
      begin: begin('verify'),
      result: outcome,
    }),
    jobType<Static<typeof ValidatePayload>>({
      ...common,
      name: VALIDATE_JOB,
      summary: 'Looks at what a restore would do',
      payload: ValidatePayload,
      permission: 'backup:read',
      onlyThrough: 'POST /api/backup/restore/validate',
      begin: begin('validate'),
      result: async (jobId) => {
        const { backupId, report } = await RestoreRun.query(db).findById(jobId).throwIfNotFound();
        return {
          backupId,
          valid: report?.valid ?? false,
          counts: report?.preview.counts ?? {},
          planHash: report?.planHash ?? null,
        };
      },
    }),
    jobType<Static<typeof RestoreRequest>>({
      ...common,
      name: RESTORE_JOB,
      summary: 'Makes the records what they were when a backup was made',
      payload: RestoreRequest,
      permission: 'backup:restore',
      begin: begin('restore'),
      result: outcome,
    }),
  ];
}
