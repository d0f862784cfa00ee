import { splitValues, type Filter, type ListSearch } from '../../parts/list/search.ts';
import type { Facet } from '../../parts/list/useList.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Row = {
  name: string;
  summary: string;
  origin: 'holdfast' | 'runner';
  state: 'waiting' | 'accepted' | 'disabled';
  pools: readonly string[];
};

export const TYPE_FILTERS = [
  {
    id: 'state',
    label: 'State',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: [
      { value: 'waiting', label: 'Waiting' },
      { value: 'accepted', label: 'Accepted' },
      { value: 'disabled', label: 'Disabled' },
    ],
  },
  { id: 'text', label: 'Name or summary', kind: 'text', example: 'net.' },
  {
    id: 'origin',
    label: 'Origin',
    kind: 'choice',
    facet: true,
    choices: [
      { value: 'holdfast', label: 'Holdfast' },
      { value: 'runner', label: 'Runners' },
    ],
  },
  { id: 'pools', label: 'Pool', kind: 'choice', facet: true },
] as const satisfies readonly Filter[];

const CHOICES = ['state', 'origin', 'pools'] as const;
type Choice = (typeof CHOICES)[number];

const valuesOf = (row: Row, field: Choice): readonly string[] =>
  field === 'pools' ? row.pools : [row[field]];

const hasText = ({ name, summary }: Row, text: string): boolean =>
  `${name} ${summary}`.toLowerCase().includes(text.trim().toLowerCase());

/** Whether a row passes the filters of an address, but for one of them. */
function passes(row: Row, search: ListSearch, without?: string): boolean {
  if (search.text !== undefined && !hasText(row, search.text)) return false;
  return CHOICES.every((field) => {
    const wanted = splitValues(search[field]);
    const isFree = field === without || wanted.length === 0;
    return isFree || valuesOf(row, field).some((value) => wanted.includes(value));
  });
}

/** The types that pass the filters of an address: those that wait first, then by name. */
export const listedTypes = <T extends Row>(types: readonly T[], search: ListSearch): T[] =>
  types
    .filter((row) => passes(row, search))
    .sort(
      (one, other) =>
        Number(other.state === 'waiting') - Number(one.state === 'waiting') ||
        (one.name < other.name ? -1 : 1),
    );

/** How many types have each value of a field, among those that pass the other filters. */
export function facetOf(types: readonly Row[], field: string, search: ListSearch): Facet | null {
  const choice = CHOICES.find((each) => each === field);
  if (choice === undefined) return null;
  const counts = new Map<string, number>();
  for (const row of types)
    if (passes(row, search, choice))
      for (const value of valuesOf(row, choice)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const values = [...counts].map(([value, count]) => ({ value, count }));
  return { values, exact: true, others: 0 };
}
