/** Filters, order and columns of a list, as they are in the address of the page. */

import { DAY_MS, HOUR_MS } from '../../../domain/shared/durations.ts';
import { ownValue } from '../ownValue.ts';

/** What can be found by a reference filter. */
export type Found = { id: string; label: string; detail?: string | undefined };

export type Choice = { value: string; label?: string | undefined };

/** A filter of a list. `id` is the name of the field in the API. */
export type Filter<Field extends string = string> = {
  id: Field;
  label: string;
} & (
  | { kind: 'text'; example?: string | undefined }
  | {
      kind: 'choice';
      /** The values; without them, those that the list counts. */
      choices?: readonly Choice[] | undefined;
      /** Counts the records by value. */
      facet?: boolean | undefined;
      /** Shows the values with their counts beside the list, not in a menu. */
      inline?: boolean | undefined;
    }
  | {
      kind: 'reference';
      find: (text: string, signal: AbortSignal) => Promise<readonly Found[]>;
      /** The kind of the records, as `included.labels` calls it. */
      of?: string | undefined;
    }
  | { kind: 'time' }
  | {
      kind: 'flag';
      /** What is sent if the filter is on; null for nothing. */
      on: boolean | null;
      /** What is sent if it is off. Default: nothing. */
      off?: boolean | undefined;
    }
);

export type Density = 'compact' | 'comfortable';

/** The search parameters of a page with a list. All are text, so that addresses stay readable. */
export type ListSearch = {
  sort?: string | undefined;
  columns?: string | undefined;
  density?: Density | undefined;
  saved?: string | undefined;
} & Readonly<Record<string, string | undefined>>;

/** What every list has in its address; `saved` is the id of the view that it was opened with. */
const OWN = ['sort', 'columns', 'density', 'saved'] as const;

/** Values as one text. A comma or backslash in a value has a backslash before it. */
export const joinValues = (values: readonly string[]): string =>
  values.map((value) => value.replace(/[\\,]/g, (each) => `\\${each}`)).join(',');

/** The values of a text that `joinValues` made; empty ones are left out. */
export function splitValues(text: string | undefined): string[] {
  if (text === undefined || text === '') return [];
  const values: string[] = [];
  let value = '';
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === '\\' && at + 1 < text.length) value += text.charAt((at += 1));
    else if (char === ',') {
      values.push(value);
      value = '';
    } else value += char;
  }
  return [...values, value].filter((each) => each !== '');
}

/** Ranges up to now, by their name in the address. */
export const TIME_PRESETS: Readonly<Record<string, { label: string; ms: number }>> = {
  '1h': { label: 'Last hour', ms: HOUR_MS },
  '24h': { label: 'Last 24 hours', ms: DAY_MS },
  '7d': { label: 'Last 7 days', ms: 7 * DAY_MS },
  '30d': { label: 'Last 30 days', ms: 30 * DAY_MS },
};

export type TimeRange = { from?: Date | undefined; to?: Date | undefined };

const timeIn = (text: string): Date | undefined | null => {
  if (text === '') return undefined;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? null : at;
};

/** A range as the address has it: `24h`, or `<from>..<to>` of which one may be missing. */
export function parseTimeRange(text: string | undefined, now: Date): TimeRange | undefined {
  if (text === undefined) return undefined;
  const preset = ownValue(TIME_PRESETS, text);
  if (preset) return { from: new Date(now.getTime() - preset.ms) };
  const [start, end, ...more] = text.split('..');
  if (start === undefined || end === undefined || more.length > 0) return undefined;
  const from = timeIn(start);
  const to = timeIn(end);
  if (from === null || to === null || (!from && !to)) return undefined;
  return { from, to };
}

export const isTimePreset = (text: string | undefined): text is string =>
  text !== undefined && ownValue(TIME_PRESETS, text) !== undefined;

export const formatTimeRange = ({ from, to }: TimeRange): string =>
  `${from?.toISOString() ?? ''}..${to?.toISOString() ?? ''}`;

/** A filter after two times were typed. Without any, a preset stays. */
export function withTypedTimes(text: string | undefined, typed: TimeRange): string | undefined {
  if (typed.from || typed.to) return formatTimeRange(typed);
  return isTimePreset(text) ? text : undefined;
}

const asText = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? joinValues(value.map(String)) : undefined;
};

/**
 * The search parameters of an address as text, for `validateSearch` of a route. What the list does not know is kept,
 * since the address is about fewer records than the list would show without it; see `unknownIn`.
 */
export const validateListSearch = (raw: Readonly<Record<string, unknown>>): ListSearch => {
  const texts = Object.entries(raw).map(([name, value]) => {
    const text = asText(value);
    // The router keeps what a validation does not mention.
    return [name, text?.trim() === '' ? undefined : text] as const;
  });
  const { density, ...search } = Object.fromEntries(texts);
  const isKnown = density === 'compact' || density === 'comfortable';
  return { ...search, density: isKnown ? density : undefined };
};

/** The filters that an address has set. */
export const activeFilters = <F extends Filter>(filters: readonly F[], search: ListSearch): F[] =>
  filters.filter(({ id }) => search[id] !== undefined);

/** A parameter of a list that cannot be used, and why; `isMissing`: the list has no such filter. */
export type Refused = {
  id: string;
  label: string;
  text: string;
  detail: string;
  isMissing?: boolean;
};

/** What is wrong with the value of a filter, as far as the list knows; undefined if nothing is. */
function refusedValue(filter: Filter, text: string): Omit<Refused, 'id'> | undefined {
  const { label } = filter;
  if (filter.kind === 'time' && !parseTimeRange(text, new Date(0)))
    return { label, text, detail: 'is no range of times, such as 24h or 2026-01-31..2026-02-28' };
  if (filter.kind === 'flag' && text !== 'on') return { label, text, detail: 'can only be “on”' };
  // Choices that are read later are not known yet; other values are for the service to check.
  if (filter.kind !== 'choice' || !filter.choices?.length) return undefined;
  const known = new Set(filter.choices.map(({ value }) => value));
  const wrong = splitValues(text).filter((value) => !known.has(value));
  return wrong.length === 0
    ? undefined
    : { label, text: wrong.join(', '), detail: 'is no value of this filter' };
}

/**
 * The parameters by which the list cannot filter: without them it would show more than the address is about. `others` are
 * parameters of the page that are no filters.
 */
export function unknownIn(
  filters: readonly Filter[],
  search: ListSearch,
  others: readonly string[] = [],
): Refused[] {
  const known = new Map(filters.map((filter) => [filter.id, filter]));
  const noFilters = new Set<string>([...OWN, ...others]);
  return Object.entries(search).flatMap(([id, text]) => {
    if (text === undefined || noFilters.has(id)) return [];
    const filter = known.get(id);
    const found = filter
      ? refusedValue(filter, text)
      : { label: id, text, detail: 'is no filter of this list', isMissing: true };
    return found ? [{ id, ...found }] : [];
  });
}

/** The search parameters without filters. Order and columns stay. */
export const withoutFilters = (filters: readonly Filter[], search: ListSearch): ListSearch => ({
  ...search,
  ...Object.fromEntries(filters.map(({ id }) => [id, undefined])),
});

/** What decides which records are read: columns, the height of rows and the name of a view do not. */
export const withoutAppearance = ({
  columns: _columns,
  density: _density,
  saved: _saved,
  ...read
}: ListSearch): Readonly<Record<string, string | undefined>> => read;

type QueryValue = string | boolean | readonly string[];

function queryOf(filter: Filter, text: string, now: Date): [string, QueryValue][] {
  const { id } = filter;
  if (filter.kind === 'flag') return filter.on === null ? [] : [[id, filter.on]];
  if (filter.kind === 'text') return [[id, [text.trim()]]];
  if (filter.kind !== 'time') return [[id, splitValues(text)]];
  const { from, to } = parseTimeRange(text, now) ?? {};
  return [
    ...(from ? [[`${id}.gte`, from.toISOString()] as [string, QueryValue]] : []),
    ...(to ? [[`${id}.lt`, to.toISOString()] as [string, QueryValue]] : []),
  ];
}

/** What is asked of a list beside its filters. Pages and counts are asked separately. */
export type ListPart = {
  limit: number;
  cursor?: string | undefined;
  count?: boolean | undefined;
  /** Fields to count by. */
  facets?: readonly string[] | undefined;
};

/** The fields of a query, and those that it has only as ranges: `createdAt` of `createdAt.gte`. */
type FieldOf<Query> = Extract<keyof Query, string> | RangeOf<Extract<keyof Query, string>>;
type RangeOf<Name> = Name extends `${infer Field}.gte` ? Field : never;

/**
 * The query of the API for a part of what an address filters and sorts by. `Query` is the query type of the
 * operation; the filters name its fields.
 */
export function toQuery<Query extends object>(
  filters: readonly Filter<FieldOf<Query>>[],
  search: ListSearch,
  now: Date,
  part: ListPart,
): Partial<Query> {
  const entries = filters.flatMap((filter) => {
    const text = search[filter.id];
    if (text !== undefined) return queryOf(filter, text, now);
    const isOff = filter.kind === 'flag' && filter.off !== undefined;
    return isOff ? [[filter.id, filter.off] as [string, QueryValue]] : [];
  });
  const sort = search.sort === undefined ? [] : [['sort', search.sort]];
  // The ids of filters are fields of the query, and the server checks their values.
  return { ...Object.fromEntries([...entries, ...sort]), ...part } as Partial<Query>;
}
