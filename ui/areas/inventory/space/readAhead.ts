import { queryClient } from '../../../app/queryClient.ts';
import { mapQuery, pathQuery, rootOf, rootsQuery, type SpacePrefix } from './spaceQueries.ts';

/** An address space, the prefix whose map is shown, and what is chosen, as in the address of the page. */
type Search = { vrf?: string; map?: string; at?: string };

/** What was read before is good enough: the page reads it again if it is old. */
const KNOWN = { staleTime: 'static' } as const;

/** `at` as a network, if it is written as links write it. In any other form it is read by the page only. */
const linkedNetwork = (at: string): string =>
  at.includes('/') ? at : `${at}/${at.includes(':') ? 128 : 32}`;

/** The prefixes that lead to the map: those around what is chosen, or the first of all. */
async function readPath({ vrf, at }: Search): Promise<readonly SpacePrefix[]> {
  if (at === undefined) {
    const { pages } = await queryClient.infiniteQuery({ ...rootsQuery(vrf), ...KNOWN });
    return pages[0]?.rows ?? [];
  }
  return queryClient.query({ ...pathQuery(linkedNetwork(at), vrf), ...KNOWN });
}

/**
 * Reads what the page of an address space shows first while its code is being loaded and the page before it is still
 * there. Errors: those of the requests, which the page has, too.
 */
export async function readAhead(search: Search): Promise<void> {
  const id = rootOf(await readPath(search), search.map)?.id;
  if (typeof id === 'string') await queryClient.query({ ...mapQuery(id), ...KNOWN });
}
