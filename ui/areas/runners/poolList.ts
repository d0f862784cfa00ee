import type { Filter, ListSearch } from '../../parts/list/search.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Pool = { name: string; description: string; runners: number; queuedJobs: number };

export const POOL_FILTERS = [
  { id: 'text', label: 'Pool or description', kind: 'text', example: 'ams' },
  { id: 'without', label: 'Without runners', kind: 'flag', on: true },
] as const satisfies readonly Filter[];

/** The pools that pass the filters of an address: those whose jobs wait for a runner first, then by name. */
export function listedPools<P extends Pool>(pools: readonly P[], search: ListSearch): P[] {
  const text = (search.text ?? '').trim().toLowerCase();
  const isStuck = ({ runners, queuedJobs }: Pool): number =>
    Number(runners === 0 && queuedJobs > 0);
  return pools
    .filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(text))
    .filter(({ runners }) => search.without === undefined || runners === 0)
    .sort((one, other) => isStuck(other) - isStuck(one) || (one.name < other.name ? -1 : 1));
}
