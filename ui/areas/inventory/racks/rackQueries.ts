import { answer, api, type Schemas } from '../../../app/api.ts';
import { recordKey, resourceKey } from '../inventoryQueries.ts';
import type { Mount } from './rackModel.ts';

type Reading = { signal: AbortSignal };

/** A rack with what is in it. */
export type MountedRack = { rack: Schemas['Rack']; mounts: readonly Mount[] };

/** What records of other resources change is read again when the page is opened again. */
const CHANGING = { staleTime: 0 };

const withMounts = (
  rack: Schemas['Rack'],
  included: Schemas['Included'] | undefined,
): MountedRack => ({ rack, mounts: included?.mounts?.[rack.id] ?? [] });

/** Events after which other units of racks may be taken. */
export const MOUNT_EVENTS = ['inventory.rack.*', 'inventory.device.*', 'inventory.device-type.*'];

/** A rack and the units that devices take in it. */
export const rackQuery = (id: string) => ({
  queryKey: [...recordKey('racks', id), 'mounts'],
  queryFn: async ({ signal }: Reading) => {
    const params = { path: { id }, query: { include: 'mounts' } };
    const rack = await answer(api.GET('/api/inventory/racks/{id}', { params, signal }));
    return withMounts(rack, rack.included);
  },
  ...CHANGING,
});

/** Drawings of more racks take more space than a page has. */
export const MAX_RACKS = 24;

/** The first racks of a site or a location, by name. */
export const racksOfQuery = (field: 'siteId' | 'locationId', id: string) => ({
  queryKey: [...resourceKey('racks'), 'mounts', field, id],
  queryFn: async ({ signal }: Reading) => {
    const query = { [field]: [id], sort: 'name' as const, limit: MAX_RACKS, include: 'mounts' };
    const page = await answer(api.GET('/api/inventory/racks', { params: { query }, signal }));
    return {
      racks: page.items.map((rack) => withMounts(rack, page.included)),
      hasMore: page.nextCursor !== null,
    };
  },
  ...CHANGING,
});

const MAX_LOOSE = 100;

/** Devices in a rack that have no position there. */
export const looseDevicesQuery = (rackId: string) => ({
  queryKey: [...resourceKey('devices'), 'loose', rackId],
  queryFn: ({ signal }: Reading) => {
    const query = {
      ...{ rackId: [rackId], position: ['none' as const], sort: 'name' as const },
      ...{ limit: MAX_LOOSE, include: 'labels' },
    };
    return answer(api.GET('/api/inventory/devices', { params: { query }, signal }));
  },
  ...CHANGING,
});
