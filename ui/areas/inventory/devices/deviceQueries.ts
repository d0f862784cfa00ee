import { answer, api, type Schemas } from '../../../app/api.ts';
import { mergeNames, type Names } from '../../../parts/names.ts';
import { recordKey } from '../inventoryQueries.ts';

type Reading = { signal: AbortSignal };

/** An interface with what its cable leads to and its addresses. */
export type DeviceInterface = {
  record: Schemas['Interface'];
  connection: Schemas['Connection'] | undefined;
  addresses: readonly Schemas['InterfaceAddress'][];
};

export type DeviceInterfaces = {
  interfaces: readonly DeviceInterface[];
  names: Names;
  /** There are more than these. */
  hasMore: boolean;
};

const PAGE_SIZE = 200;
/** A chassis has some hundred; what has more is shown as a list of its own. */
const MAX_INTERFACES = 1_000;

/** As people count: Ethernet2 before Ethernet10. */
const byName = new Intl.Collator('en', { numeric: true });

type InterfaceList = Schemas['InterfaceList'];

const interfacesOf = ({ items, included }: InterfaceList): DeviceInterface[] =>
  items.map((record) => ({
    record,
    connection: included?.connections?.[record.id],
    addresses: included?.addresses?.[record.id] ?? [],
  }));

/** The key of everything that is read of the equipment of a device. */
export const equipmentKey = (deviceId: string) =>
  [...recordKey('devices', deviceId), 'equipment'] as const;

/** All interfaces of a device by name, as far as a page can show them. */
export const deviceInterfacesQuery = (deviceId: string) => ({
  queryKey: [...equipmentKey(deviceId), 'interfaces'],
  queryFn: async ({ signal }: Reading): Promise<DeviceInterfaces> => {
    const pages: InterfaceList[] = [];
    let cursor: string | null = null;
    do {
      const query = {
        ...{ deviceId: [deviceId], limit: PAGE_SIZE, include: 'labels,connections,addresses' },
        ...(cursor !== null && { cursor }),
      };
      const page: InterfaceList = await answer(
        api.GET('/api/inventory/interfaces', { params: { query }, signal }),
      );
      pages.push(page);
      cursor = page.nextCursor;
    } while (cursor !== null && pages.length * PAGE_SIZE < MAX_INTERFACES);
    const interfaces = pages.flatMap(interfacesOf);
    interfaces.sort((one, other) => byName.compare(one.record.name, other.record.name));
    const names = mergeNames(pages.map(({ included }) => included));
    return { interfaces, names, hasMore: cursor !== null };
  },
  staleTime: 0,
});

const SHOWN_JOBS = 5;

/** The newest jobs about a device. */
export const deviceJobsQuery = (deviceId: string) => ({
  queryKey: [...recordKey('devices', deviceId), 'jobs'],
  queryFn: ({ signal }: Reading) => {
    const query = { deviceId: [deviceId], internal: false, limit: SHOWN_JOBS, include: 'labels' };
    return answer(api.GET('/api/jobs', { params: { query }, signal }));
  },
  staleTime: 0,
});
