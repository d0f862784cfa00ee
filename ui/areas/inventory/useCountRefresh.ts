import { useLiveRefresh } from '../../app/live.ts';
import { DERIVED_MS, recordCountQuery, type Resource } from './inventoryQueries.ts';

type Counted = Pick<Resource, 'kind' | 'name'>;

/** Counts the records again that `recordCountQuery` has counted, after changes of such records. */
export const useCountRefresh = (
  { kind, name }: Counted,
  filter?: Parameters<typeof recordCountQuery>[1],
): void =>
  useLiveRefresh(
    [`inventory.${kind}.*`],
    recordCountQuery(name, filter).queryKey,
    () => true,
    DERIVED_MS,
  );
