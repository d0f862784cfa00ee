import { PLATFORM } from './access/scope.ts';
import type { Permission } from './access/permissions.ts';

/** What a backup is made of, in the order in which it is restored: what is referred to comes first. */
export const SECTIONS = [
  'settings',
  'inventory',
  'access',
  'jobs',
  'events',
  'webhooks',
  'schedules',
  'workflows',
  'audit',
] as const;
export type Section = (typeof SECTIONS)[number];

export const isSection = (name: string): name is Section =>
  (SECTIONS as readonly string[]).includes(name);

type SectionAbout = {
  summary: string;
  /** Needed to see the section's records in a preview. */
  read: Permission | null;
  /** Needed beside `backup:restore` to restore it: it gives rights, those of then. */
  restore: readonly Permission[];
  /** In backups of a tenant as well; the others are of the installation. */
  ofTenants: boolean;
};

export const ABOUT_SECTIONS: Readonly<Record<Section, SectionAbout>> = {
  settings: {
    summary: 'Definitions of custom fields, and tags',
    read: 'inventory:read',
    restore: [],
    ofTenants: true,
  },
  inventory: {
    summary: 'The record of the estate',
    read: 'inventory:read',
    restore: [],
    ofTenants: true,
  },
  access: {
    summary: 'Users, roles, assignments, identity providers and their mappings',
    read: 'rbac:read',
    restore: ['rbac:write', 'user:write', 'auth:write'],
    ofTenants: false,
  },
  jobs: {
    summary: 'Jobs with their logs, and imports',
    read: 'job:read',
    restore: [],
    ofTenants: true,
  },
  events: { summary: 'The log of events', read: 'event:read', restore: [], ofTenants: true },
  webhooks: {
    summary: 'Webhooks, deliveries and their attempts',
    read: 'webhook:read',
    restore: [],
    ofTenants: true,
  },
  schedules: {
    summary: 'Schedules and what became of their times',
    read: 'schedule:read',
    restore: [],
    ofTenants: true,
  },
  workflows: {
    summary: 'Approval requests, decisions and comments',
    read: 'workflow:read',
    restore: [],
    ofTenants: true,
  },
  audit: {
    summary: 'The audit trail and its seals',
    read: 'audit:read',
    restore: [],
    ofTenants: false,
  },
};

/** What whoever restores these sections must hold beside `backup:restore`. */
export const permissionsToRestore = (sections: readonly Section[]): Permission[] =>
  sections.flatMap((section) => ABOUT_SECTIONS[section].restore);

/** The sections that a backup at a tenant may hold; at the platform it is all of them. */
export const sectionsAt = (tenantId: string): Section[] =>
  SECTIONS.filter((name) => tenantId === PLATFORM || ABOUT_SECTIONS[name].ofTenants);

export const MODES = ['full', 'partial'] as const;
export type BackupMode = (typeof MODES)[number];

export const ENGINES = ['snapshot', 'portable'] as const;
export type BackupEngine = (typeof ENGINES)[number];
export const DEFAULT_ENGINE: BackupEngine = 'snapshot';

export const ABOUT_ENGINES: Readonly<Record<BackupEngine, string>> = {
  snapshot: "PostgreSQL's own COPY text, zstd level 3: the fast one",
  portable: 'One JSON object a line for each table: larger, readable without PostgreSQL',
};

export type BackupStatus = 'queued' | 'running' | 'completed' | 'failed' | 'deleting' | 'deleted';

/** True while a backup is being made. */
export const isOpen = ({ status }: { status: BackupStatus }): boolean =>
  status === 'queued' || status === 'running';

/** How many backups of a series stay: the last ones, and the last one of each of so many days, weeks and months (UTC). */
export type Keep = { last?: number; daily?: number; weekly?: number; monthly?: number };

export const BACKUP_JOB = 'backup.create';
export const VERIFY_JOB = 'backup.verify';
export const VALIDATE_JOB = 'backup.validate';
export const RESTORE_JOB = 'backup.restore';

/** How late a backup of a schedule may be made, where nothing ran when it was due. */
export const BACKUP_CATCHUP_SECONDS = 6 * 3_600;

/** What an archive is loaded for: to look what a restore would do, to do it, or to prove that it could be done. */
export type LoadPurpose = 'validate' | 'restore' | 'verify';

export const SAFETY_LABEL = 'before a restore';
/** Safety backups are a series of their own. */
export const SAFETY_KEEP: Keep = { last: 10 };

const day = (at: Date): string => at.toISOString().slice(0, 10);

/** The Monday of a day's week (ISO 8601). */
const week = (at: Date): string => {
  const monday = new Date(at);
  monday.setUTCDate(at.getUTCDate() - ((at.getUTCDay() + 6) % 7));
  return day(monday);
};

const month = (at: Date): string => at.toISOString().slice(0, 7);

/**
 * Which backups of a series stay, by their id. The newest one always does, so that no rule takes the only good one; without any
 * rule all do.
 */
export function kept(keep: Keep, series: readonly { id: string; at: Date }[]): Set<string> {
  const newestFirst = [...series].sort(
    (a, b) => b.at.getTime() - a.at.getTime() || (a.id < b.id ? 1 : -1),
  );
  if (Object.values(keep).every((count) => count === undefined))
    return new Set(series.map(({ id }) => id));
  const stay = new Set(newestFirst.slice(0, Math.max(1, keep.last ?? 0)).map(({ id }) => id));
  for (const [count = 0, periodOf] of [
    [keep.daily, day],
    [keep.weekly, week],
    [keep.monthly, month],
  ] as const) {
    const newestOf = new Map<string, string>();
    for (const { id, at } of newestFirst)
      if (!newestOf.has(periodOf(at))) newestOf.set(periodOf(at), id);
    for (const id of [...newestOf.values()].slice(0, count)) stay.add(id);
  }
  return stay;
}

export type ChangeKind = 'created' | 'changed' | 'deleted';

/** One record that a restore would change. `fields` are its columns that differ; values are shown where they may be. */
export type RestoreDifference = {
  section: Section;
  table: string;
  key: string;
  change: ChangeKind;
  fields: { field: string; now: string | null; then: string | null }[];
};

export type TableCounts = {
  section: Section;
  table: string;
  inArchive: number;
  created: number;
  changed: number;
  deleted: number;
  unchanged: number;
  broughtAlong: boolean;
};

/** What stands against a restore, or is to be known about it. */
export type RestoreFinding = {
  code: string;
  message: string;
  section: Section | null;
  table: string | null;
  key: string | null;
};

/** What a restore would do, worked out against the records as they are. */
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
    /** The first ones of each section. */
    differences: RestoreDifference[];
  };
  planHash: string;
};

/** Differences of a section that a report shows. */
export const MAX_DIFFERENCES = 100;
/** Findings of one kind that a report names. */
export const MAX_FINDINGS = 100;
