// Without the types of the API: its client needs a browser.
type SectionName =
  | 'settings'
  | 'inventory'
  | 'access'
  | 'jobs'
  | 'events'
  | 'webhooks'
  | 'secrets'
  | 'schedules'
  | 'workflows'
  | 'audit';

export const RETENTION_FIELDS = ['last', 'daily', 'weekly', 'monthly'] as const;
type RetentionField = (typeof RETENTION_FIELDS)[number];

/** What is typed for a backup. A number that is being typed may be empty. */
export type BackupDraft = {
  label: string;
  mode: 'full' | 'partial';
  sections: SectionName[];
  /** Undefined for the default of the service. */
  engine: 'snapshot' | 'portable' | undefined;
  retention: Readonly<Record<RetentionField, number | ''>>;
};

export const EMPTY_BACKUP: BackupDraft = {
  label: '',
  mode: 'full',
  sections: [],
  engine: undefined,
  retention: { last: '', daily: '', weekly: '', monthly: '' },
};

/** The body of a request. Empty numbers keep nothing by themselves. */
export const requestOf = ({ label, mode, sections, engine, retention }: BackupDraft) => ({
  label: label.trim(),
  mode,
  ...(mode === 'partial' && { sections }),
  ...(engine !== undefined && { engine }),
  retention: Object.fromEntries(
    RETENTION_FIELDS.flatMap((field) =>
      retention[field] === '' ? [] : [[field, retention[field]]],
    ),
  ),
});

/** Why it cannot be sent yet. */
export const whyIncomplete = ({ mode, sections }: BackupDraft): string | undefined =>
  mode === 'partial' && sections.length === 0 ? 'Choose a section.' : undefined;
