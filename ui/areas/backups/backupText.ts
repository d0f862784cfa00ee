import { formatCount, labelOfField } from '../../parts/format.ts';
import { ownValue } from '../../parts/ownValue.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Status = 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled';
type Purpose = 'validate' | 'restore' | 'verify';
type KeptAs = 'all' | 'newest' | 'last' | 'daily' | 'weekly' | 'monthly' | 'legal_hold';
type Retention = {
  last?: number | undefined;
  daily?: number | undefined;
  weekly?: number | undefined;
  monthly?: number | undefined;
};
type Counts = { created: number; changed: number; deleted: number };

/** True for a job that has ended. */
export const isEnded = (status: Status): boolean => status !== 'queued' && status !== 'running';

/** True for a backup that is being made. */
export const isInProgress = (status: string): boolean =>
  status === 'queued' || status === 'running';

const PURPOSES: Readonly<Record<Purpose, string>> = {
  validate: 'Preview',
  restore: 'Restore',
  verify: 'Test restore',
};

/** What a run of a backup is called. */
export const purposeText = (purpose: Purpose): string =>
  ownValue(PURPOSES, purpose) ?? labelOfField(purpose);

/** What a run does that has not ended. */
export const runningText = (purpose: Purpose): string =>
  `The archive is being loaded and compared${purpose === 'restore' ? '; then the records are restored' : ''}`;

const FAILED_TITLES: Readonly<Record<Purpose, string>> = {
  restore: 'Nothing was restored',
  validate: 'There is no preview',
  verify: 'The test restore has failed',
};

/** What it means that a run has failed. */
export const failedTitle = (purpose: Purpose): string =>
  ownValue(FAILED_TITLES, purpose) ?? `${purposeText(purpose)}: failed`;

const KEPT_TEXTS: Readonly<Record<KeptAs, string>> = {
  all: 'no limit',
  newest: 'newest of its series',
  last: 'one of the last',
  daily: 'last of its day',
  weekly: 'last of its week',
  monthly: 'last of its month',
  legal_hold: 'legal hold',
};

/** What keeps a backup: `last of its day, legal hold`. */
export function keptText(keptAs: readonly KeptAs[] | null): string {
  if (keptAs === null) return '';
  if (keptAs.length === 0) return 'until the next backup';
  return keptAs.map((reason) => ownValue(KEPT_TEXTS, reason) ?? reason).join(', ');
}

const RETENTION_WORDS = [
  ['last', 'last'],
  ['daily', 'daily'],
  ['weekly', 'weekly'],
  ['monthly', 'monthly'],
] as const;

/** What the retention of a backup says about its series: `7 daily, 4 weekly`. */
export function retentionText(retention: Retention): string {
  const parts = RETENTION_WORDS.flatMap(([field, word]) => {
    const count = retention[field];
    return count === undefined ? [] : [`${formatCount(count)} ${word}`];
  });
  return parts.length === 0 ? 'All are kept' : parts.join(', ');
}

/** `12 created, 3 changed, 1 deleted`, without what is zero. */
export function countsText(counts: Counts): string {
  const parts = (['created', 'changed', 'deleted'] as const)
    .filter((each) => counts[each] > 0)
    .map((each) => `${formatCount(counts[each])} ${each}`);
  return parts.length === 0 ? 'no differences' : parts.join(', ');
}

export const hasChanges = ({ created, changed, deleted }: Counts): boolean =>
  created + changed + deleted > 0;

/** What people call a backup: its label, or that it has none. */
export const titleOf = ({ label }: { label: string }): string =>
  label.trim() === '' ? 'Without a label' : label;

type Section = { name: string; refersTo: readonly string[]; restorePermissions: readonly string[] };

/** The permissions that a restore of these sections needs besides `backup:restore`. */
export const permissionsOf = (
  sections: readonly Section[],
  chosen: readonly string[],
): string[] => [
  ...new Set(
    sections
      .filter(({ name }) => chosen.includes(name))
      .flatMap(({ restorePermissions }) => restorePermissions),
  ),
];

/** The sections that chosen ones refer to and that are not chosen. */
export const referredTo = (sections: readonly Section[], chosen: readonly string[]): string[] => [
  ...new Set(
    sections
      .filter(({ name }) => chosen.includes(name))
      .flatMap(({ refersTo }) => refersTo)
      .filter((name) => !chosen.includes(name)),
  ),
];

type Finding = { code: string };

/** Risks that a request with `confirm` accepts. */
const ACCEPTABLE = ['no_administrator', 'own_account'];

/** True if all that prevents a restore are risks that its request can accept. */
export const canAccept = (errors: readonly Finding[]): boolean =>
  errors.length > 0 && errors.every(({ code }) => ACCEPTABLE.includes(code));

/** Areas of events whose records a restore of a section would compare. History only grows. */
const AREAS: Readonly<Record<string, readonly string[]>> = {
  settings: ['inventory.*'],
  inventory: ['inventory.*'],
  access: ['auth.*', 'rbac.*', 'pool.*', 'job-type.*', 'quota.*', 'retention.*'],
  webhooks: ['webhook.*'],
  secrets: ['secret.*'],
  schedules: ['schedule.created', 'schedule.updated', 'schedule.deleted'],
};

/** The types of events after which a preview of these sections is out of date. */
export const changingEvents = (sections: readonly string[]): string[] => [
  ...new Set([...sections.flatMap((section) => AREAS[section] ?? []), 'restore.completed']),
];
