import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import { formatCount, formatNumberOf } from '../format.ts';
import { mergeNames, type Names, type Person } from '../names.ts';
import { capitalized, nounOf } from '../../../domain/shared/nouns.ts';
import { ownValue } from '../ownValue.ts';

/** One record that a plan changes, as the API presents it. */
export type Effect = {
  action: 'create' | 'update' | 'delete';
  resource: string;
  id: string;
  label: string;
  reason: 'requested' | 'reparented' | 'reference_cleared' | 'cascade';
  version: number | null;
  changes: readonly { field: string; before?: unknown; after?: unknown }[];
};

export type EffectGroup = {
  resource: string;
  effects: readonly Effect[];
  /** `creates 1, changes 3`: it may never be made. */
  counts: string;
};

/** A field of a record before and after. */
export type FieldRow = { field: string; label?: string; before: unknown; after: unknown };

const ACTIONS = ['delete', 'create', 'update'] as const;
const DONE = { create: 'created', update: 'changed', delete: 'deleted' } as const;
const DOES = { create: 'Creates', update: 'Changes', delete: 'Deletes' } as const;

const countOf = (effects: readonly Effect[], action: Effect['action']): number =>
  effects.filter((effect) => effect.action === action).length;

const doneText = (action: Effect['action']): string => ownValue(DONE, action) ?? action;

const countsText = (effects: readonly Effect[]): string =>
  [...new Set([...ACTIONS, ...effects.map(({ action }) => action)])]
    .map(
      (action) =>
        [countOf(effects, action), (ownValue(DOES, action) ?? action).toLowerCase()] as const,
    )
    .filter(([count]) => count > 0)
    .map(([count, does]) => `${does} ${formatCount(count)}`)
    .join(', ');

/** Effects by resource, in the order in which the plan has them. */
export function groupEffects(effects: readonly Effect[]): EffectGroup[] {
  const groups = new Map<string, Effect[]>();
  for (const effect of effects) {
    const group = groups.get(effect.resource);
    if (group) group.push(effect);
    else groups.set(effect.resource, [effect]);
  }
  return [...groups].map(([resource, found]) => ({
    resource,
    effects: found,
    counts: countsText(found),
  }));
}

/** Records of a resource that are shown at first. The others are shown when they are asked for. */
export const FIRST_SHOWN = 100;

/** How many records of each resource are shown. */
export type Shown = Readonly<Record<string, number>>;

export const shownOf = (shown: Shown, resource: string): number => shown[resource] ?? FIRST_SHOWN;

/** Every record of a plan. It has at most 2,000. */
export const allShown = (effects: readonly Effect[]): Shown =>
  Object.fromEntries(groupEffects(effects).map((group) => [group.resource, group.effects.length]));

/** The number of records that could be shown and are not. */
export const countNotShown = (effects: readonly Effect[], shown: Shown): number =>
  groupEffects(effects).reduce(
    (sum, group) => sum + Math.max(0, group.effects.length - shownOf(shown, group.resource)),
    0,
  );

const requestedFirst = (effects: readonly Effect[]): Effect[] => [
  ...effects.filter(({ reason }) => reason === 'requested'),
  ...effects.filter(({ reason }) => reason !== 'requested'),
];

/** What a plan does with records of one resource: `creates prefix 10.0.0.0/8`, `changes 3 devices`. */
function phrases(effects: readonly Effect[]): string[] {
  const byKind = new Map<string, Effect[]>();
  for (const effect of requestedFirst(effects)) {
    const key = `${effect.action} ${effect.resource}`;
    byKind.set(key, [...(byKind.get(key) ?? []), effect]);
  }
  return [...byKind.values()].map(([first, ...others]) => {
    if (first === undefined) return '';
    const count = others.length + 1;
    const noun = nounOf(first.resource, count);
    const verb = ownValue(DOES, first.action) ?? capitalized(first.action);
    return count === 1 ? `${verb} ${noun} ${first.label}` : `${verb} ${formatCount(count)} ${noun}`;
  });
}

/** The type of the jobs that apply a plan. Others only check that it still holds. */
export const APPLIES_CHANGE = 'inventory.apply';

const MAX_PHRASES = 3;

type Planned = {
  effects: readonly Effect[];
  /** The number of records that the reader may not see; null if not even that may be known. */
  hiddenEffects: number | null;
  jobType: string | null;
};

/** What a request would do, in a line. */
export function changeLine({ effects, hiddenEffects, jobType }: Planned): string {
  if (jobType !== null && jobType !== APPLIES_CHANGE) return `Runs a job ${jobType}`;
  const all = phrases(effects);
  const shown = all
    .slice(0, MAX_PHRASES)
    .map((phrase, index) =>
      index === 0 ? phrase : phrase.charAt(0).toLowerCase() + phrase.slice(1),
    );
  if (all.length > MAX_PHRASES) shown.push('more');
  if (hiddenEffects !== null && hiddenEffects > 0)
    shown.push(
      `${formatCount(hiddenEffects)} ${nounOf('records', hiddenEffects)} that you may not read`,
    );
  if (shown.length > 0) return shown.join(', ');
  return jobType === null
    ? 'Asks for a decision; nothing runs'
    : 'Changes records that you may not read';
}

/** Exactly how much of a plan a decision would be about without being shown; undefined if all of it is. */
export function notShownText(
  { effects, hiddenEffects, jobType }: Planned,
  notShown: number,
): string | undefined {
  if (hiddenEffects === null)
    return jobType === APPLIES_CHANGE
      ? 'The records that change are not shown: you may not read them.'
      : undefined;
  const count = effects.length + hiddenEffects;
  const isOne = notShown + hiddenEffects === 1;
  if (notShown + hiddenEffects === 0) return undefined;
  const hidden = formatCount(hiddenEffects);
  const why =
    hiddenEffects === 0
      ? ''
      : notShown === 0
        ? `: you may not read ${isOne ? 'it' : 'them'}`
        : `; ${hidden} of them you may not read`;
  return `${formatCount(notShown + hiddenEffects)} of ${formatNumberOf(count, 'record')} ${isOne ? 'is' : 'are'} not shown${why}.`;
}

const isNothing = (value: unknown): boolean =>
  value === null ||
  value === undefined ||
  value === '' ||
  (Array.isArray(value) && value.length === 0) ||
  (typeof value === 'object' && Object.keys(value).length === 0);

/** The custom fields of a change, each as a field of its own. */
function customRows({ field, before, after }: FieldRow): FieldRow[] {
  const [old, now] = [before, after].map((value) => (isJsonObject(value) ? value : {}));
  const names = new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})]);
  return [...names]
    .map((name) => ({
      field: `${field}.${name}`,
      label: name,
      before: ownValue(old, name) ?? null,
      after: ownValue(now, name) ?? null,
    }))
    .filter((row) => JSON.stringify(row.before) !== JSON.stringify(row.after));
}

/** The fields that an effect changes. For a new or a deleted record, those with a value. */
export const rowsOf = ({ action, changes }: Pick<Effect, 'action' | 'changes'>): FieldRow[] =>
  changes
    .flatMap((change): FieldRow[] => {
      const row = { field: change.field, before: change.before, after: change.after };
      return change.field === 'customFields' ? customRows(row) : [row];
    })
    .filter(({ before, after }) => action === 'update' || !isNothing(before) || !isNothing(after));

type Named = {
  effects: readonly Effect[];
  labels: Readonly<Record<string, string>>;
  people: Readonly<Record<string, Person>>;
  included?: Names | undefined;
};

/** Names of the records in a plan: what the API knows, and the records that the plan itself creates. */
export function namesOf({ labels, effects, people, included }: Named): Names {
  const created = effects
    .filter(({ action }) => action === 'create')
    .map(({ id, label }) => [id, `${label} (new)`] as const);
  return {
    labels: {
      ...included?.labels,
      planned: { ...labels, ...Object.fromEntries(created) },
    },
    people: mergeNames([{ people }, included]).people,
  };
}

/** A record whose effect is no longer the approved one. */
export type Drift = {
  key: string;
  resource: string;
  id: string;
  label: string;
  /** What differs, in words. */
  text: string;
  /** Fields whose new value would differ: as approved, and as it would be now. */
  rows: readonly FieldRow[];
  /** The versions of the record, if it was changed since. */
  since: number | null;
};

/** The effects that differ: as approved, and as they would be now. */
type Difference = { effects: readonly { approved: Effect | null; now: Effect | null }[] };

const resultOf = (effect: Effect | null): Map<string, unknown> =>
  new Map((effect ? rowsOf(effect) : []).map(({ field, after }) => [field, after]));

function driftRows(approved: Effect | null, now: Effect | null): FieldRow[] {
  const [before, after] = [resultOf(approved), resultOf(now)];
  return [...new Set([...before.keys(), ...after.keys()])]
    .map((field) => ({ field, before: before.get(field), after: after.get(field) }))
    .filter((row) => JSON.stringify(row.before ?? null) !== JSON.stringify(row.after ?? null));
}

function driftText(approved: Effect | null, now: Effect | null, rows: number): string {
  if (now === null) return 'would not change any more';
  if (approved === null) return `would be ${doneText(now.action)} too`;
  if (approved.action !== now.action)
    return `would be ${doneText(now.action)}, not ${doneText(approved.action)}`;
  const isChanged = approved.version !== now.version;
  if (rows > 0) return isChanged ? 'was changed, and would become' : 'would become';
  return 'was changed since';
}

/** The records that a plan would treat otherwise now than when it was requested. */
export const driftsOf = ({ effects }: Difference): Drift[] =>
  effects.flatMap(({ approved, now }) => {
    const effect = now ?? approved;
    if (!effect) return [];
    const rows = driftRows(approved, now);
    const isChanged = approved !== null && now !== null && approved.version !== now.version;
    return [
      {
        key: `${effect.resource}/${effect.id}`,
        resource: effect.resource,
        id: effect.id,
        label: effect.label,
        text: driftText(approved, now, rows.length),
        rows,
        since: isChanged ? approved.version : null,
      },
    ];
  });
