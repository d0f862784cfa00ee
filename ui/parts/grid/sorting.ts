/** The names by which the server sorts a column. One name sorts both ways, with a minus for descending. */
export type SortNames = string | { asc?: string | undefined; desc?: string | undefined };

export type Direction = 'ascending' | 'descending';

const both = (names: SortNames) =>
  typeof names === 'string' ? { asc: names, desc: `-${names}` } : names;

/** How a column is sorted by `sort`; undefined if it is not. */
export function directionOf(
  names: SortNames | undefined,
  sort: string | undefined,
): Direction | undefined {
  if (names === undefined || sort === undefined) return undefined;
  const { asc, desc } = both(names);
  return sort === asc ? 'ascending' : sort === desc ? 'descending' : undefined;
}

/** The sort after a click on the header: ascending, descending, then the order of the server. */
export function nextSort(names: SortNames, sort: string | undefined): string | undefined {
  const order = [both(names).asc, both(names).desc].filter((name) => name !== undefined);
  const at = sort === undefined ? -1 : order.indexOf(sort);
  return order[at + 1];
}
