import { Type, type Static } from 'typebox';
import { ENGINES, MODES, SECTIONS } from '../../domain/backups.ts';
import { JOB_STATUSES } from '../../domain/jobs/jobs.ts';
import { BackupPayload, KeepRule, LABEL } from '../../services/jobTypes/backups/create.ts';
import { RestoreRequest, ValidatePayload } from '../../services/jobTypes/backupRestore.ts';
import { pageQuery } from '../http/pagination.ts';
import { Id, Name, Nullable, Timestamp } from '../http/schemas.ts';

const closed = { additionalProperties: false };
const Section = Type.Enum([...SECTIONS]);
const STATUSES = ['queued', 'running', 'completed', 'failed'] as const;

export const BackupRequest = Type.Object(BackupPayload.properties, {
  title: 'BackupRequest',
  ...closed,
});
export const BackupQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(Type.Enum([...STATUSES])),
    label: Type.Optional(Type.String(LABEL)),
    tenantId: Type.Optional(Name()),
  },
  closed,
);

const summary = {
  id: Id('bkp'),
  tenantId: Type.String(),
  mode: Type.Enum([...MODES]),
  sections: Type.Array(Section),
  includes: Type.Array(Section, { description: 'Came along because the sections refer to them.' }),
  engine: Type.Enum([...ENGINES]),
  label: Type.String(),
  keep: KeepRule,
  status: Type.Enum([...STATUSES]),
  jobId: Nullable(Type.String()),
  workflowId: Type.String(),
  store: Type.Enum(['folder', 's3']),
  archive: Type.String({ description: 'Its name in the store.' }),
  sizeBytes: Nullable(Type.Integer()),
  rows: Nullable(Type.Integer()),
  schemaVersion: Nullable(Type.String()),
  appVersion: Nullable(Type.String()),
  snapshotAt: Nullable(
    Type.String({ format: 'date-time', description: 'The moment whose records it holds.' }),
  ),
  verifiedAt: Nullable(
    Type.String({ format: 'date-time', description: 'When it was last read from end to end.' }),
  ),
  provenAt: Nullable(
    Type.String({ format: 'date-time', description: 'When it was last loaded and compared.' }),
  ),
  error: Nullable(Type.Object({ code: Type.String(), message: Type.String() }, closed)),
  createdBy: Type.String(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  finishedAt: Nullable(Timestamp),
  version: Type.Integer(),
};
export const BackupSummary = Type.Object(summary, { title: 'BackupSummary', ...closed });
export type BackupSummary = Static<typeof BackupSummary>;

const Finding = Type.Object(
  {
    code: Type.String(),
    message: Type.String(),
    section: Nullable(Section),
    table: Nullable(Type.String()),
    key: Nullable(Type.String()),
  },
  closed,
);
const Counts = Type.Object(
  {
    created: Type.Integer(),
    changed: Type.Integer(),
    deleted: Type.Integer(),
    unchanged: Type.Integer(),
  },
  closed,
);
const Preview = Type.Object(
  {
    backupId: Type.String(),
    schemaVersion: Type.String(),
    createdAt: Timestamp,
    sections: Type.Array(Section),
    includes: Type.Array(Section),
    counts: Counts,
    tables: Type.Array(
      Type.Object(
        {
          section: Section,
          table: Type.String(),
          inArchive: Type.Integer(),
          created: Type.Integer(),
          changed: Type.Integer(),
          deleted: Type.Integer(),
          unchanged: Type.Integer(),
          broughtAlong: Type.Boolean({
            description: 'Of this table only what others refer to and what is missing comes back.',
          }),
        },
        closed,
      ),
    ),
    differences: Type.Array(
      Type.Object(
        {
          section: Section,
          table: Type.String(),
          key: Type.String(),
          change: Type.Enum(['created', 'changed', 'deleted']),
          fields: Type.Array(
            Type.Object(
              { field: Type.String(), now: Nullable(Type.String()), then: Nullable(Type.String()) },
              closed,
            ),
            { description: 'Columns that differ. A secret one has neither value.' },
          ),
        },
        closed,
      ),
      { description: 'The first hundred of each section whose records you may read.' },
    ),
  },
  closed,
);

const report = {
  valid: Type.Boolean(),
  errors: Type.Array(Finding),
  warnings: Type.Array(Finding),
  preview: Nullable(Preview),
  planHash: Nullable(
    Type.String({ description: 'Hand it to the restore: it then does this, or nothing.' }),
  ),
};
export const ValidationRecord = Type.Object(
  {
    backupId: Type.String(),
    jobId: Type.String(),
    workflowId: Type.String(),
    status: Type.Enum([...JOB_STATUSES]),
    ...report,
  },
  { title: 'RestoreValidation', ...closed },
);
export type ValidationRecord = Static<typeof ValidationRecord>;

export const BackupRecord = Type.Object(
  {
    ...summary,
    restorePreview: Type.Object(
      {
        restorable: Type.Boolean(),
        reason: Nullable(Type.String({ description: 'Why there is nothing to restore from.' })),
        tables: Type.Array(
          Type.Object(
            { section: Section, table: Type.String(), rows: Type.Integer(), sha256: Type.String() },
            closed,
          ),
        ),
        lastValidation: Nullable(
          Type.Object({ jobId: Type.String(), at: Timestamp, ...report }, closed),
        ),
      },
      closed,
    ),
  },
  { title: 'Backup', ...closed },
);
export type BackupRecord = Static<typeof BackupRecord>;

export const BackupList = Type.Object(
  {
    backups: Type.Array(BackupSummary),
    logs: Type.Array(
      Type.Object(
        {
          jobId: Type.String(),
          jobType: Type.String(),
          line: Type.Integer(),
          level: Type.String(),
          message: Type.String(),
          at: Timestamp,
        },
        closed,
      ),
      { description: 'What jobs of backups logged last, newest first.' },
    ),
    sections: Type.Array(
      Type.Object(
        {
          name: Section,
          summary: Type.String(),
          tables: Type.Array(Type.String()),
          ofTenants: Type.Boolean({ description: 'Backups of a tenant may hold it.' }),
        },
        closed,
      ),
    ),
    engines: Type.Array(
      Type.Object(
        {
          name: Type.Enum([...ENGINES]),
          summary: Type.String(),
          default: Type.Boolean(),
          available: Type.Boolean({ description: 'There is a store and a key for it.' }),
        },
        closed,
      ),
    ),
    nextCursor: Nullable(Type.String()),
  },
  { title: 'BackupList', ...closed },
);

export const ValidateRequest = Type.Object(ValidatePayload.properties, {
  title: 'RestoreValidationRequest',
  ...closed,
});
export const RestoreBody = Type.Object(RestoreRequest.properties, {
  title: 'RestoreRequest',
  ...closed,
});

export const RestoreRecord = Type.Object(
  {
    backupId: Type.String(),
    jobId: Type.String(),
    workflowId: Type.String(),
    status: Type.Enum([...JOB_STATUSES]),
    safetyBackupId: Nullable(Type.String({ description: 'The backup of what was here before.' })),
    outcome: Nullable(Type.Unknown({ description: 'What was done.' })),
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String() }, closed)),
    ...report,
    createdAt: Timestamp,
    finishedAt: Nullable(Timestamp),
  },
  { title: 'Restore', ...closed },
);
export type RestoreRecord = Static<typeof RestoreRecord>;
