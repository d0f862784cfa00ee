import { Type, type Static } from 'typebox';
import { JOB_STATUSES } from '../../domain/jobs/jobs.ts';
import { choiceField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { Actor, closed, Nullable, Reference, Timestamp } from '../http/schemas.ts';
import { JobStatus } from '../jobs/schemas.ts';
import { Counts, Failure, report, Section } from './schemas.ts';

const PURPOSES = ['validate', 'restore', 'verify'] as const;

const run = {
  jobId: Reference('jobs', 'The job that loads the archive. It identifies the run.'),
  backupId: Reference('backups'),
  tenantId: Reference('tenants'),
  purpose: Type.Enum([...PURPOSES], {
    title: 'RestoreRunPurpose',
    description: '`validate`: a preview; `verify`: a test restore.',
  }),
  status: JobStatus,
  progress: Nullable(
    Type.Object(
      { percent: Type.Number(), message: Nullable(Type.String()) },
      { title: 'RestoreRunProgress', ...closed },
    ),
  ),
  sections: Type.Array(Section, { description: 'The sections that it is about.' }),
  valid: Nullable(Type.Boolean({ description: 'Null until the archive is compared.' })),
  counts: Nullable(Counts),
  planHash: Nullable(Type.String()),
  preRestoreBackupId: Nullable(
    Reference('backups', 'The backup that was made before the restore.'),
  ),
  error: Nullable(Failure),
  createdBy: Actor(),
  createdAt: Timestamp,
  finishedAt: Nullable(Timestamp),
};

export const RestoreRunSummary = Type.Object(run, { title: 'RestoreRunSummary', ...closed });
export type RestoreRunSummary = Static<typeof RestoreRunSummary>;

export const RestoreRunRecord = Type.Object(
  {
    ...run,
    ...report,
    valid: run.valid,
    outcome: Nullable(
      Type.Unknown({ description: 'The changes that were made, or what was tested.' }),
    ),
  },
  { title: 'RestoreRun', ...closed },
);
export type RestoreRunRecord = Static<typeof RestoreRunRecord>;

export const RESTORE_RUNS = defineList({
  name: 'restoreRuns',
  id: 'job',
  item: RestoreRunSummary,
  title: 'RestoreRunPage',
  fields: {
    purpose: choiceField(PURPOSES, { title: 'RestoreRunPurpose' }),
    status: choiceField(JOB_STATUSES, { title: 'JobStatus' }),
  },
});
