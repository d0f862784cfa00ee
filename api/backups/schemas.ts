import { Type, type Static } from 'typebox';
import { ARCHIVE_ERRORS, ENGINES, MODES, SECTIONS } from '../../domain/backups/backups.ts';
import { KEPT_AS } from '../../domain/backups/retention.ts';
import { BackupPayload, RetentionRule } from '../../services/jobTypes/backups/create.ts';
import { RestoreRequest, ValidatePayload } from '../../services/jobTypes/backups/restore.ts';
import { choiceField, idField, integerField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import {
  Actor,
  closed,
  Id,
  MaybeId,
  Nullable,
  Reference,
  TenantId,
  Timestamp,
  Warnings,
} from '../http/schemas.ts';
import { JobReference, JobStatus } from '../jobs/schemas.ts';

export const Section = Type.Enum([...SECTIONS], { title: 'BackupSection' });
const Mode = Type.Enum([...MODES], { title: 'BackupMode' });
const Engine = Type.Enum([...ENGINES], { title: 'BackupEngine' });
export const Failure = Type.Object(
  { code: Type.String(), message: Type.String() },
  { title: 'Failure', ...closed },
);
const Store = Type.Enum(['folder', 's3'], { title: 'BackupStore' });
const STATUSES = ['queued', 'running', 'completed', 'failed'] as const;
const Status = Type.Enum([...STATUSES], { title: 'BackupStatus' });

export const BackupRequest = Type.Object(BackupPayload.properties, {
  title: 'BackupRequest',
  ...closed,
});
const summary = {
  id: Id('bkp'),
  tenantId: Reference('tenants', 'The tenant that the backup covers; platform: everything.'),
  mode: Mode,
  sections: Type.Array(Section, { description: 'The requested sections.' }),
  includes: Type.Array(Section, {
    description: 'Included because the requested sections refer to them.',
  }),
  engine: Engine,
  label: Type.String(),
  retention: RetentionRule,
  status: Status,
  jobId: Nullable(
    Reference('jobs', 'The job of the backup; null for pre-restore and imported ones.'),
  ),
  job: Nullable(JobReference('The job, and whether it is purged.')),
  workflowId: Type.String({ description: 'The Temporal workflow that makes the backup.' }),
  store: Store,
  archive: Type.String({ description: 'The name of the archive in the store.' }),
  sizeBytes: Nullable(Type.Integer({ description: 'The size of the archive in bytes.' })),
  rows: Nullable(Type.Integer({ description: 'The number of rows in the archive.' })),
  schemaVersion: Nullable(
    Type.String({ description: 'The newest migration of the database at the snapshot.' }),
  ),
  appVersion: Nullable(Type.String({ description: 'The version of Holdfast.' })),
  snapshotAt: Nullable(
    Type.String({ format: 'date-time', description: 'The instant of the snapshot.' }),
  ),
  verifiedAt: Nullable(
    Type.String({ format: 'date-time', description: 'When the archive was last read completely.' }),
  ),
  restoreTestedAt: Nullable(
    Type.String({ format: 'date-time', description: 'When the last test restore succeeded.' }),
  ),
  error: Nullable(Failure),
  archiveError: Type.Union([Failure, Type.Null()], {
    description:
      'Why the last load could not read the archive; null if it could, or was not loaded. ' +
      'With an error, the retention of its series does not count the backup.',
  }),
  scheduleId: Nullable(
    Reference('schedules', 'The schedule whose job made it; null when that is purged.'),
  ),
  keptAs: Nullable(
    Type.Array(Type.Enum([...KEPT_AS], { title: 'BackupKeptAs' }), {
      description:
        'What keeps a completed backup: the counts of the retention of its series (`all` without ' +
        'any), or a legal hold. Empty: the series deletes it after its next backup.',
    }),
  ),
  createdBy: Actor(),
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
    key: Nullable(MaybeId('The primary key of the record.')),
  },
  { title: 'RestoreFinding', ...closed },
);
export const Counts = Type.Object(
  {
    created: Type.Integer(),
    changed: Type.Integer(),
    deleted: Type.Integer(),
    unchanged: Type.Integer(),
  },
  { title: 'RestoreCounts', ...closed },
);
const Preview = Type.Object(
  {
    backupId: Reference('backups'),
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
          inArchive: Type.Integer({ description: 'The number of rows in the archive.' }),
          created: Type.Integer(),
          changed: Type.Integer(),
          deleted: Type.Integer(),
          unchanged: Type.Integer(),
          purged: Type.Optional(
            Type.Integer({
              description: 'Rows that are not restored because retention has purged them.',
            }),
          ),
          includedByReference: Type.Boolean({
            description: 'Only missing rows that restored rows refer to are added.',
          }),
        },
        { title: 'RestoredTable', ...closed },
      ),
    ),
    differences: Type.Array(
      Type.Object(
        {
          section: Section,
          table: Type.String(),
          key: MaybeId('The primary key; parts are joined by a slash.'),
          change: Type.Enum(['created', 'changed', 'deleted']),
          fields: Type.Array(
            Type.Object(
              {
                field: Type.String(),
                current: Nullable(MaybeId('The value now, as text; at most 200 characters.')),
                restored: Nullable(
                  MaybeId('The value after the restore, as text; at most 200 characters.'),
                ),
              },
              { title: 'RestoredField', ...closed },
            ),
            { description: 'The columns that differ. Secrets have no values.' },
          ),
        },
        { title: 'RestoreDifference', ...closed },
      ),
      { description: 'The first 100 of each section whose records you may read.' },
    ),
  },
  { title: 'RestorePreview', ...closed },
);

export const report = {
  valid: Type.Boolean(),
  errors: Type.Array(Finding),
  warnings: Type.Array(Finding),
  preview: Nullable(Preview),
  planHash: Nullable(
    Type.String({
      description: 'Pass it to the restore, which then makes exactly these changes or none.',
    }),
  ),
};
export const ValidationRecord = Type.Object(
  {
    backupId: Reference('backups'),
    jobId: Reference('jobs'),
    workflowId: Type.String(),
    status: JobStatus,
    ...report,
  },
  { title: 'RestoreValidation', ...closed },
);
export type ValidationRecord = Static<typeof ValidationRecord>;

export const BackupRecord = Type.Object(
  {
    ...summary,
    warnings: Warnings,
    preRestoreOf: Nullable(
      Type.Object(
        { jobId: Reference('jobs'), backupId: Reference('backups') },
        { title: 'PreRestoreOf', description: 'The restore before which it was made.', ...closed },
      ),
    ),
    restorePreview: Type.Object(
      {
        restorable: Type.Boolean(),
        reason: Nullable(Type.String({ description: 'Why the backup is not restorable.' })),
        tables: Type.Array(
          Type.Object(
            { section: Section, table: Type.String(), rows: Type.Integer(), sha256: Type.String() },
            { title: 'BackupTable', ...closed },
          ),
        ),
        lastValidation: Nullable(
          Type.Object(
            { jobId: Reference('jobs'), at: Timestamp, ...report },
            { title: 'LastRestoreValidation', ...closed },
          ),
        ),
      },
      { title: 'BackupContents', ...closed },
    ),
  },
  { title: 'Backup', ...closed },
);
export type BackupRecord = Static<typeof BackupRecord>;

export const BACKUPS = defineList({
  name: 'backups',
  id: 'bkp',
  item: BackupSummary,
  title: 'BackupPage',
  fields: {
    status: choiceField(STATUSES, { title: 'BackupStatus' }),
    mode: choiceField(MODES, { title: 'BackupMode' }),
    label: textField({ facet: true, sort: true }),
    tenantId: idField(TenantId()),
    createdBy: textField({ facet: true }),
    archiveError: choiceField(ARCHIVE_ERRORS, {
      title: 'ArchiveErrorCode',
      nullable: true,
      description: 'The code of the error; none: as far as is known, it can be restored.',
    }),
    sizeBytes: {
      ...integerField([0, Number.MAX_SAFE_INTEGER], { nullable: true, sort: true }),
      kind: 'number',
    },
    restoreTestedAt: timeField({ nullable: true, sort: true }),
    createdAt: timeField(),
  },
});
/** The names of its parts are those of the interface. */
export const BackupQuery = Type.Omit(BACKUPS.query, ['fields'], closed);

export const BackupList = Type.Object(
  {
    ...Type.Pick(BACKUPS.schema, ['count', 'facets']).properties,
    backups: Type.Array(BackupSummary),
    logs: Type.Array(
      Type.Object(
        {
          jobId: Reference('jobs'),
          jobType: Type.String(),
          line: Type.Integer(),
          level: Type.String(),
          message: Type.String(),
          at: Timestamp,
        },
        { title: 'BackupLogLine', ...closed },
      ),
      { description: 'The last log lines of backup jobs, newest first.' },
    ),
    sections: Type.Array(
      Type.Object(
        {
          name: Section,
          summary: Type.String(),
          tables: Type.Array(Type.String()),
          availableToTenants: Type.Boolean({ description: 'Backups of a tenant may contain it.' }),
          refersTo: Type.Array(Section, {
            description: 'The sections that its records refer to, directly or through others.',
          }),
          readPermission: Nullable(
            Type.String({
              description:
                'Needed to see its records in a preview. Accounts, tokens, providers, pools, job types, legal holds and imports need the permission by which they are read, too.',
            }),
          ),
          restorePermissions: Type.Array(Type.String(), {
            description: 'Needed to restore it, besides `backup:restore`.',
          }),
        },
        { title: 'BackupSectionInfo', ...closed },
      ),
    ),
    engines: Type.Array(
      Type.Object(
        {
          name: Engine,
          summary: Type.String(),
          default: Type.Boolean(),
          available: Type.Boolean({ description: 'A store and a master key are configured.' }),
        },
        { title: 'BackupEngineInfo', ...closed },
      ),
    ),
    storage: Type.Object(
      {
        store: Nullable(Store),
        masterKey: Nullable(
          Type.String({ description: 'The name of the key that encrypts new archives.' }),
        ),
        problems: Type.Array(Failure, { description: 'What is missing to make backups.' }),
      },
      { title: 'BackupStorage', description: 'Where new archives are stored.', ...closed },
    ),
    nextCursor: Nullable(Type.String()),
  },
  { title: 'BackupList', ...closed },
);
export type BackupList = Static<typeof BackupList>;

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
    backupId: Reference('backups'),
    jobId: Reference('jobs'),
    workflowId: Type.String(),
    status: JobStatus,
    preRestoreBackupId: Nullable(
      Reference('backups', 'The backup that was made before the restore.'),
    ),
    outcome: Nullable(Type.Unknown({ description: 'The changes that were made.' })),
    error: Nullable(Failure),
    ...report,
    createdAt: Timestamp,
    finishedAt: Nullable(Timestamp),
  },
  { title: 'Restore', ...closed },
);
export type RestoreRecord = Static<typeof RestoreRecord>;
