import { formatCount } from '../../parts/format.ts';
import { labelOf, personOf, type Names } from '../../parts/names.ts';
import { ownValue } from '../../parts/ownValue.ts';
import type { Effect } from '../../parts/plan/effects.ts';
import { isRecordId } from '../../parts/recordIds.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Field = { field: string; current: string | null; restored: string | null };
export type Difference = {
  section: string;
  table: string;
  key: string;
  change: 'created' | 'changed' | 'deleted';
  fields: readonly Field[];
};
type TableCounts = { table: string; created: number; changed: number; deleted: number };

const ACTIONS: Readonly<Record<string, Effect['action']>> = {
  created: 'create',
  changed: 'update',
  deleted: 'delete',
};

/** Columns by which people know a record of which only the columns are known. */
const NAMING = [
  'name',
  'label',
  'title',
  'display_name',
  'username',
  'cidr',
  'address',
  'start_address',
  'description',
  'endpoint_url',
  'type',
];

/** Tables whose ids are chosen, so that a key is a link. */
const CHOSEN_IDS: ReadonlySet<string> = new Set(['tenants', 'tags']);

const POSTGRES_TIME = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(\.\d+)?\+00$/;

/** `site_id` as records of the API call it: `siteId`. */
const fieldOf = (column: string): string =>
  column.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());

/** A value of PostgreSQL as text, as the value that it is. A long one is cut and stays text. */
export function valueOf(text: string | null): unknown {
  if (text === null) return null;
  if (text === 'true' || text === 'false') return text === 'true';
  const time = POSTGRES_TIME.exec(text);
  if (time) return `${time[1]}T${time[2]}${time[3] ?? ''}Z`;
  if (!/^[{[]/.test(text)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** A changed column without values is one of a secret: that it differs is all that is known. */
const changeOf = ({ field, current, restored }: Field, isChange: boolean) => ({
  field: fieldOf(field),
  before: isChange && current === null && restored === null ? 'not shown' : valueOf(current),
  after: isChange && current === null && restored === null ? 'another value' : valueOf(restored),
});

function labelIn(fields: readonly Field[]): string | undefined {
  for (const name of NAMING) {
    const found = fields.find(({ field }) => field === name);
    const text = found?.current ?? found?.restored ?? '';
    if (text !== '') return text;
  }
  return undefined;
}

/** The resource that a table is called: `ip_addresses` are `ip-addresses`. */
export const resourceOf = (table: string): string => table.replaceAll('_', '-');

/**
 * A difference as a plan would show it. A record that does not exist now has no page; after the restore,
 * one that it has deleted.
 */
export function effectOf(
  { table, key, change, fields }: Difference,
  names: Names | undefined,
  isDone: boolean,
): Effect {
  const isMissing = change === (isDone ? 'deleted' : 'created');
  const hasPage = !isMissing && (isRecordId(key) || CHOSEN_IDS.has(table));
  const isChange = change === 'changed';
  return {
    action: ownValue(ACTIONS, change) ?? 'update',
    resource: resourceOf(table),
    id: hasPage ? key : `new:${key}`,
    label: labelOf(names, key) ?? personOf(names, key)?.displayName ?? labelIn(fields) ?? key,
    reason: 'requested',
    version: null,
    changes: fields.map((field) => changeOf(field, isChange)),
  };
}

/** The names of a report, with accounts among the records, as differences have them. */
export const withAccounts = (names: Names | undefined): Names => ({
  ...names,
  labels: {
    ...names?.labels,
    users: Object.fromEntries(
      Object.entries(names?.people ?? {}).flatMap(([id, person]) =>
        person ? [[id, person.displayName]] : [],
      ),
    ),
  },
});

/** What happens to the records of each table, and of how many differences only the first are known. */
export function countsByResource(
  tables: readonly TableCounts[],
  differences: readonly Difference[],
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    tables.map(({ table, ...counts }) => {
      const total = counts.created + counts.changed + counts.deleted;
      const shown = differences.filter((each) => each.table === table).length;
      const parts = (['deleted', 'created', 'changed'] as const)
        .filter((each) => counts[each] > 0)
        .map((each) => `${formatCount(counts[each])} ${each}`);
      const rest = shown < total ? `; ${formatCount(shown)} shown` : '';
      return [resourceOf(table), `${parts.join(', ')}${rest}`];
    }),
  );
}
