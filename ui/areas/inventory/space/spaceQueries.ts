import { answer, api, type Schemas } from '../../../app/api.ts';
import { resourceKey } from '../inventoryQueries.ts';
import type { MappedPrefix } from './mapModel.ts';
import { FIRST_PART, type Part } from './treeParts.ts';

export type Usage = Schemas['PrefixUsage'];
export type TreePage = Schemas['PrefixTree'];

/** A prefix as the tree shows it; without id and status where the user may not read it. */
export type SpacePrefix = MappedPrefix & { usage: Usage | undefined };

type Reading = { signal: AbortSignal };

/** Everything that is read of address spaces. */
export const SPACE_KEY = [...resourceKey('prefixes'), 'space'];

/** Why no address can be allocated from a prefix. */
export const NOT_A_POOL = 'Addresses are allocated from prefixes with the allocation mode pool.';

const PAGE = 200;

const GLOBAL = 'none';

/** The filter of lists for an address space: that of a VRF, or the global table. */
const inVrf = (vrf: string | undefined) => ({ vrfId: [vrf ?? GLOBAL] });

type PrefixList = Schemas['PrefixList'];

const prefixesOf = ({ items, included }: PrefixList): SpacePrefix[] =>
  items.map(({ id, cidr, status }) => ({ id, cidr, status, usage: included?.usage?.[id] }));

/** The prefixes of an address space that are in no other, by network, page by page. */
export const rootsQuery = (vrf: string | undefined) => ({
  queryKey: [...SPACE_KEY, 'roots', vrf ?? GLOBAL],
  queryFn: async ({ signal, pageParam: cursor }: Reading & { pageParam: string | null }) => {
    const query = {
      ...inVrf(vrf),
      ...{ parentPrefixId: [GLOBAL], sort: 'cidr' as const, limit: PAGE, include: 'usage' },
      ...(cursor !== null && { cursor }),
    };
    const page = await answer(api.GET('/api/inventory/prefixes', { params: { query }, signal }));
    return { rows: prefixesOf(page), nextCursor: page.nextCursor };
  },
  initialPageParam: null,
  getNextPageParam: ({ nextCursor }: { nextCursor: string | null }) => nextCursor,
});

/** A part of what is directly in a prefix. */
export const treeQuery = (id: string, part: Part = FIRST_PART) => ({
  queryKey: [...SPACE_KEY, 'tree', id, part],
  queryFn: ({ signal }: Reading): Promise<TreePage> => {
    const start = 'cursor' in part ? part.cursor !== null && { cursor: part.cursor } : part;
    const params = { path: { id }, query: { limit: PAGE, ...start } };
    return answer(api.GET('/api/inventory/prefixes/{id}/tree', { params, signal }));
  },
});

/** The map of a prefix, or of a network in it. */
export const mapQuery = (id: string, within?: string) => ({
  queryKey: [...SPACE_KEY, 'map', id, within ?? 'all'],
  queryFn: ({ signal }: Reading) => {
    const params = { path: { id }, query: { ...(within !== undefined && { within }) } };
    return answer(api.GET('/api/inventory/prefixes/{id}/map', { params, signal }));
  },
});

/**
 * The prefixes that contain a network, the outermost first: of those with one network in several address
 * spaces, the ones around the first of the innermost.
 */
export const pathQuery = (network: string, vrf: string | undefined) => ({
  queryKey: [...SPACE_KEY, 'path', network, vrf ?? GLOBAL],
  queryFn: async ({ signal }: Reading): Promise<SpacePrefix[]> => {
    const query = {
      ...inVrf(vrf),
      ...{ contains: network, sort: '-cidr' as const, limit: PAGE, include: 'usage' },
    };
    const page = await answer(api.GET('/api/inventory/prefixes', { params: { query }, signal }));
    const byId = new Map(page.items.map((record) => [record.id, record]));
    const path: PrefixList['items'] = [];
    let next = page.items[0];
    while (next) {
      path.unshift(next);
      next = next.parentPrefixId === null ? undefined : byId.get(next.parentPrefixId);
    }
    return prefixesOf({ ...page, items: path });
  },
});

/** The prefix on a path whose map is shown: the one with the id in the address, or the outermost one. */
export const rootOf = (path: readonly SpacePrefix[], map: string | undefined) =>
  path.find(({ id }) => id === map) ?? path[0];

/** How much of a prefix is used. */
export const usageQuery = (id: string) => ({
  queryKey: [...SPACE_KEY, 'usage', id],
  queryFn: ({ signal }: Reading): Promise<Usage> =>
    answer(api.GET('/api/inventory/prefixes/{id}/usage', { params: { path: { id } }, signal })),
});
