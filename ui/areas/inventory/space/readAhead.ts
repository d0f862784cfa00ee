import { formatBlock } from '../../../../domain/inventory/cidr.ts';
import { queryClient } from '../../../app/queryClient.ts';
import { networkOf } from './networks.ts';
import { mapQuery, pathQuery, rootOf, rootsQuery, type SpacePrefix } from './spaceQueries.ts';

/** An address space, the prefix whose map is shown, and what is chosen, as in the address of the page. */
type Place = { vrf?: string; map?: string; at?: string };

/** What was read before is good enough: the page reads it again if it is old. */
const KNOWN = { staleTime: 'static' } as const;

/** The prefixes that lead to the map: those around what is chosen, or the first of all. */
async function readPath({ vrf, at }: Place): Promise<readonly SpacePrefix[]> {
  if (at === undefined) {
    const { pages } = await queryClient.infiniteQuery({ ...rootsQuery(vrf), ...KNOWN });
    return pages[0]?.rows ?? [];
  }
  const network = networkOf(at);
  return network ? queryClient.query({ ...pathQuery(formatBlock(network), vrf), ...KNOWN }) : [];
}

/**
 * Reads what the page of an address space shows first while its code is being loaded and the page before it is still
 * there. Errors: those of the requests, which the page has, too.
 */
export async function readAhead(place: Place): Promise<void> {
  const id = rootOf(await readPath(place), place.map)?.id;
  if (typeof id === 'string') await queryClient.query({ ...mapQuery(id), ...KNOWN });
}
