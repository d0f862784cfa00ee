import type { ListSearch } from '../../parts/list/search.ts';

/** The search parameter with the id of the view that a list was opened with. */
export const VIEW_PARAMETER = 'saved';

export type Content = Readonly<Record<string, string>>;

/** What a view keeps of an address: all but the view itself and the height of rows. */
export const contentOf = (search: ListSearch): Content =>
  Object.fromEntries(
    Object.entries(search).filter(
      (entry): entry is [string, string] =>
        entry[1] !== undefined && entry[0] !== VIEW_PARAMETER && entry[0] !== 'density',
    ),
  );

/** Whether a list shows something else than a view. Without an order of its own it has that of the list. */
export function differs(view: { search: Content }, search: ListSearch): boolean {
  const { sort, ...shown } = contentOf(search);
  const { sort: wanted = sort, ...saved } = view.search;
  const names = new Set([...Object.keys(shown), ...Object.keys(saved)]);
  return sort !== wanted || [...names].some((name) => shown[name] !== saved[name]);
}

/** The address of a list as a view has it. The height of rows stays. */
export const searchOf = (
  view: { id: string; search: Content },
  { density }: ListSearch,
): ListSearch => ({ ...view.search, ...(density && { density }), [VIEW_PARAMETER]: view.id });
