import { answer, api } from '../../../app/api.ts';
import { resourceKey } from '../inventoryQueries.ts';
import { SPACE_KEY } from '../space/spaceQueries.ts';

type Reading = { signal: AbortSignal };

/** The addresses and ranges in a prefix, or in a network of it. */
export const contentsQuery = (id: string, within?: string) => ({
  queryKey: [...SPACE_KEY, 'contents', id, within ?? 'all'],
  queryFn: ({ signal }: Reading) => {
    const query = within === undefined ? {} : { within };
    const params = { path: { id }, query };
    return answer(api.GET('/api/inventory/prefixes/{id}/contents', { params, signal }));
  },
});

const MAX_RECORDS = 20;

/** The records of an address in an address space: several interfaces may share one. */
export const recordsOfQuery = (address: string, vrf: string | undefined) => ({
  queryKey: [...resourceKey('ip-addresses'), 'at', address, vrf ?? 'none'],
  queryFn: ({ signal }: Reading) => {
    const query = {
      ...{ address: [address], vrfId: [vrf ?? 'none'] },
      ...{ limit: MAX_RECORDS, include: 'labels' },
    };
    return answer(api.GET('/api/inventory/ip-addresses', { params: { query }, signal }));
  },
  staleTime: 0,
});
