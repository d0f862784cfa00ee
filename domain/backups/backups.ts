import type { Permission } from '../access/permissions.ts';
import { PLATFORM } from '../access/scope.ts';
import type { RetentionPolicy } from './retention.ts';

/** The parts of the data that can be backed up separately, referenced sections first. */
export const SECTIONS = [
  'settings',
  'inventory',
  'access',
  'jobs',
  'events',
  'webhooks',
  'secrets',
  'schedules',
  'workflows',
  'audit',
] as const;
export type Section = (typeof SECTIONS)[number];

export const isSection = (name: string): name is Section =>
  (SECTIONS as readonly string[]).includes(name);

type SectionInfo = {
  summary: string;
  /** Required to see the section's records in a preview; null for everyone. */
  readPermission: Permission | null;
  /** Required besides `backup:restore` to restore it. */
  restorePermissions: readonly Permission[];
  /** Backups of one tenant may contain it, not only backups of the installation. */
  availableToTenants: boolean;
};

export const SECTION_INFO: Readonly<Record<Section, SectionInfo>> = {
  settings: {
    summary: 'Custom field definitions and tags',
    readPermission: 'inventory:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  inventory: {
    summary: 'Inventory records',
    readPermission: 'inventory:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  access: {
    summary:
      'Users, roles, role assignments, identity providers, provider mappings and views of lists',
    readPermission: 'rbac:read',
    restorePermissions: ['rbac:write', 'user:write', 'auth:write'],
    availableToTenants: false,
  },
  jobs: {
    summary: 'Jobs with their logs, and imports',
    readPermission: 'job:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  events: {
    summary: 'Event log',
    readPermission: 'event:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  webhooks: {
    summary: 'Webhooks, deliveries and delivery attempts',
    readPermission: 'webhook:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  secrets: {
    summary: 'Named secrets, encrypted',
    readPermission: 'secret:read',
    // A restore adds no value and no pool.
    restorePermissions: [],
    availableToTenants: true,
  },
  schedules: {
    summary: 'Schedules and their runs',
    readPermission: 'schedule:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  workflows: {
    summary: 'Approval requests, decisions and comments',
    readPermission: 'workflow:read',
    restorePermissions: [],
    availableToTenants: true,
  },
  audit: {
    summary: 'Audit log with its hash chain',
    readPermission: 'audit:read',
    restorePermissions: [],
    availableToTenants: false,
  },
};

/**
 * The permissions that restoring these sections requires besides `backup:restore`: restoring
 * `access` reinstates the permissions in the backup. None for a section of another version: this one restores none of it.
 */
export const permissionsToRestore = (sections: readonly Section[]): Permission[] =>
  sections.flatMap((section) =>
    isSection(section) ? SECTION_INFO[section].restorePermissions : [],
  );

/** The sections that backups of a tenant may contain; for the platform, all of them. */
export const sectionsForTenant = (tenantId: string): Section[] =>
  SECTIONS.filter((name) => tenantId === PLATFORM || SECTION_INFO[name].availableToTenants);

export const MODES = ['full', 'partial'] as const;
export type BackupMode = (typeof MODES)[number];

export const ENGINES = ['snapshot', 'portable'] as const;
export type BackupEngine = (typeof ENGINES)[number];
export const DEFAULT_ENGINE: BackupEngine = 'snapshot';

export const ENGINE_SUMMARIES: Readonly<Record<BackupEngine, string>> = {
  snapshot: 'PostgreSQL COPY text, compressed with zstd level 1: the fastest',
  portable: 'One JSON object per row: larger and slower, readable without PostgreSQL',
};

export type BackupStatus = 'queued' | 'running' | 'completed' | 'failed' | 'deleting' | 'deleted';

/** Errors after which an archive does not count as a backup until it has been loaded successfully. */
export const ARCHIVE_ERRORS = [
  'archive_damaged',
  'archive_truncated',
  'archive_missing',
  'not_an_archive',
  'test_restore_failed',
  'format_too_new',
  'schema_too_new',
  'master_key_missing',
] as const;

/** Whether a load has found that the archive cannot be restored. All other errors say nothing about it. */
export const isArchiveError = (code: string): boolean =>
  (ARCHIVE_ERRORS as readonly string[]).includes(code);

/** True until a backup is completed or has failed. */
export const isInProgress = ({ status }: { status: BackupStatus }): boolean =>
  status === 'queued' || status === 'running';

export const BACKUP_JOB = 'backup.create';
export const VERIFY_JOB = 'backup.verify';
export const VALIDATE_JOB = 'backup.validate';
export const RESTORE_JOB = 'backup.restore';

/** How long after its scheduled time a missed backup of a schedule is still made. */
export const BACKUP_CATCHUP_SECONDS = 6 * 3_600;

/**
 * Why an archive is loaded: to report what a restore would do (`validate`), to restore it, or to
 * test that it can be loaded completely (`verify`).
 */
export type LoadPurpose = 'validate' | 'restore' | 'verify';

export const PRE_RESTORE_LABEL = 'pre-restore';
/** Pre-restore backups are a series of their own. */
export const PRE_RESTORE_RETENTION: RetentionPolicy = { last: 10 };

export type ChangeKind = 'created' | 'changed' | 'deleted';

/**
 * One record that a restore would change. `fields` are the columns that differ. The values of
 * hidden columns are null on both sides.
 */
export type RestoreDifference = {
  section: Section;
  table: string;
  key: string;
  change: ChangeKind;
  fields: { field: string; current: string | null; restored: string | null }[];
};

/** What a restore would change in one table. */
export type TableCounts = {
  section: Section;
  table: string;
  inArchive: number;
  created: number;
  changed: number;
  deleted: number;
  unchanged: number;
  /** Rows that are not restored because they were purged; missing in older reports. */
  purged?: number;
  includedByReference: boolean;
};

/** An error that prevents a restore, or a warning about it. */
export type RestoreFinding = {
  code: string;
  message: string;
  section: Section | null;
  table: string | null;
  key: string | null;
  /** Whose record the message names; missing in older reports and where it names none. */
  tenantId?: string;
};

/** What a restore would do to the current records. */
export type RestoreReport = {
  valid: boolean;
  errors: RestoreFinding[];
  warnings: RestoreFinding[];
  preview: {
    backupId: string;
    schemaVersion: string;
    createdAt: string;
    sections: Section[];
    includes: Section[];
    counts: { created: number; changed: number; deleted: number; unchanged: number };
    tables: TableCounts[];
    /** The first 100 of each section. */
    differences: RestoreDifference[];
  };
  planHash: string;
};

/** The number of differences of each section in a report. */
export const MAX_DIFFERENCES = 100;
/** The number of conflicts in a report. */
export const MAX_FINDINGS = 100;
