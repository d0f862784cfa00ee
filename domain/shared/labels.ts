import { RESOURCE_NAMES, type ResourceName } from '../inventory/names.ts';
import { RESOURCES } from '../inventory/resources/index.ts';

/** Records outside the inventory that have labels, by the path of their list. Searches call them the same. */
const OTHER_KINDS = [
  'jobs',
  'schedules',
  'workflows',
  'webhooks',
  'backups',
  'providers',
  'roles',
] as const;
export type OtherLabelKind = (typeof OTHER_KINDS)[number];

/** The kinds of records that have a label, which readers see beside references to them. */
export type LabelKind = ResourceName | OtherLabelKind;
export const LABEL_KINDS: readonly LabelKind[] = [...RESOURCE_NAMES, ...OTHER_KINDS];

const BY_SUBJECT: ReadonlyMap<string, LabelKind> = new Map<string, LabelKind>([
  ...RESOURCE_NAMES.map((name) => [RESOURCES[name].kind, name] as const),
  ...OTHER_KINDS.map((kind) => [kind.slice(0, -1), kind] as const),
  // As jobs call the requests that they come from.
  ['approval', 'workflows'],
]);

/** The kind of the records that events, audit entries and sources of jobs call `type`, such as `job`. */
export const labelKindOf = (type: string): LabelKind | undefined => BY_SUBJECT.get(type);

const BY_PREFIX: ReadonlyMap<string | null, LabelKind> = new Map<string | null, LabelKind>([
  ...RESOURCE_NAMES.map((name) => [RESOURCES[name].idPrefix, name] as const),
  ['job', 'jobs'],
  ['sch', 'schedules'],
  ['apr', 'workflows'],
  ['whk', 'webhooks'],
  ['bkp', 'backups'],
  ['idp', 'providers'],
  ['rol', 'roles'],
]);

const ID = /^([a-z]{3})_[0-9a-z]{26}$/;

/** The kind of the record with this id; undefined for records without a label, and for other text. */
export const labelKindOfId = (text: string): LabelKind | undefined => {
  const prefix = ID.exec(text)?.[1];
  return prefix === undefined ? undefined : BY_PREFIX.get(prefix);
};

/** The ids that an answer names. */
export type NamedIds = {
  /** Records, by their kind. */
  records: ReadonlyMap<LabelKind, ReadonlySet<string>>;
  /** Who did what the answer shows. */
  actors: ReadonlySet<string>;
  /** Accounts that the answer mentions for another reason. */
  accounts: ReadonlySet<string>;
};

/** The labels of records, and people by their ids. */
export type Names = {
  labels: Partial<Record<LabelKind, Record<string, string>>>;
  people: Record<string, { displayName: string }>;
};
