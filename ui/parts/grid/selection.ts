/** Selected rows by key, and the row from which a range with Shift starts. */
export type Selection = { keys: ReadonlySet<string>; anchor: string | null };

export const NO_SELECTION: Selection = { keys: new Set(), anchor: null };

/** Selects a row or takes it out; it is the start of the next range. */
export function toggleKey({ keys }: Selection, key: string): Selection {
  const next = new Set(keys);
  if (!next.delete(key)) next.add(key);
  return { keys: next, anchor: key };
}

/**
 * The rows between the start of the range and `key` become as the start is: selected, or not. A start
 * that is not in the list any more makes it a single row.
 */
export function extendTo(selection: Selection, order: readonly string[], key: string): Selection {
  const { keys, anchor } = selection;
  const from = anchor === null ? -1 : order.indexOf(anchor);
  const to = order.indexOf(key);
  if (anchor === null || from < 0 || to < 0) return toggleKey(selection, key);
  const next = new Set(keys);
  const isSelected = keys.has(anchor);
  for (const each of order.slice(Math.min(from, to), Math.max(from, to) + 1)) {
    if (isSelected) next.add(each);
    else next.delete(each);
  }
  return { keys: next, anchor };
}

/** Selects all listed rows, or none of them if all are selected. Others stay as they are. */
export function toggleAll({ keys }: Selection, order: readonly string[]): Selection {
  const next = new Set(keys);
  const isAll = order.length > 0 && order.every((key) => keys.has(key));
  for (const key of order) {
    if (isAll) next.delete(key);
    else next.add(key);
  }
  return { keys: next, anchor: null };
}

/** The selected rows that the list still has; all of them until the list is read. */
export function stillListed<Row>(
  keys: ReadonlySet<string>,
  rows: readonly Row[] | undefined,
  rowKey: (row: Row) => string,
): ReadonlySet<string> {
  if (rows === undefined || keys.size === 0) return keys;
  return new Set(rows.map(rowKey).filter((key) => keys.has(key)));
}

/** Whether all, some or none of the listed rows are selected. */
export function selectedPart(
  keys: ReadonlySet<string>,
  order: readonly string[],
): 'all' | 'some' | 'none' {
  if (keys.size === 0 || order.length === 0) return 'none';
  const count = order.reduce((sum, key) => sum + (keys.has(key) ? 1 : 0), 0);
  return count === 0 ? 'none' : count === order.length ? 'all' : 'some';
}
