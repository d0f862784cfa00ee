import { Type, type Static } from 'typebox';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import type { AddressSpace } from '../../services/inventory/addressSpace.ts';
import { MAX_INTERFACE_ADDRESSES, type Equipment } from '../../services/inventory/equipment.ts';
import type { Extra } from '../http/route.ts';
import { closed, Nullable } from '../http/schemas.ts';
import { usageView } from './presenter.ts';
import { UsageView } from './schemas.ts';

export type ExtraSources = { addressSpace: Pick<AddressSpace, 'usages'>; equipment: Equipment };

/** The ids of the records of a response: a list, or one record. */
const idsOf = (body: unknown): string[] => {
  const { items = [body as Row] } = body as { items?: Row[] };
  return items.map(({ id }) => id);
};

/** Values by an id of theirs; each id has a list. */
function grouped<Found extends object, Shown>(
  ids: readonly string[],
  found: readonly Found[],
  idOf: (each: Found) => string,
  show: (each: Found) => Shown,
): Record<string, Shown[]> {
  const groups: Record<string, Shown[]> = Object.fromEntries(ids.map((id) => [id, []]));
  for (const each of found) groups[idOf(each)]?.push(show(each));
  return groups;
}

const NullableText = Nullable(Type.String());

const MountView = Type.Object(
  {
    position: Type.Integer({ description: 'The lowest rack unit; 1 is at the bottom.' }),
    uHeight: Type.Integer({ description: 'How many rack units it takes.' }),
    front: Type.Boolean({ description: 'It takes these units of the front.' }),
    rear: Type.Boolean({ description: 'It takes these units of the rear.' }),
    deviceId: Nullable(
      Type.String({
        description: 'null when you may not read the device, as are the fields below.',
      }),
    ),
    name: NullableText,
    status: NullableText,
    face: Nullable(Type.String({ description: 'The face that it is mounted on.' })),
    deviceTypeId: NullableText,
    model: NullableText,
  },
  { title: 'RackMount', ...closed },
);
const ConnectionView = Type.Object(
  {
    cableId: Type.String(),
    cableStatus: Type.String(),
    interfaceId: Type.String({ description: 'The interface at the other end.' }),
    interfaceName: Nullable(
      Type.String({ description: 'null when you may not read the interface, as is its device.' }),
    ),
    deviceId: NullableText,
    deviceName: NullableText,
  },
  { title: 'Connection', ...closed },
);
const InterfaceAddressView = Type.Object(
  {
    id: Type.String(),
    address: Type.String(),
    status: Type.String(),
    role: NullableText,
    dnsName: NullableText,
  },
  { title: 'InterfaceAddress', ...closed },
);

/** The usage of prefixes. */
const usage = ({ addressSpace }: ExtraSources): Extra => ({
  schema: Type.Record(Type.String(), UsageView, {
    description: 'The usage of prefixes now, by their ids.',
  }),
  load: async (_, body) => {
    const usages = await addressSpace.usages(idsOf(body));
    return Object.fromEntries([...usages].map(([id, each]) => [id, usageView(each)]));
  },
});

/** The units that devices take in racks. */
const mounts = ({ equipment }: ExtraSources): Extra => ({
  schema: Type.Record(Type.String(), Type.Array(MountView), {
    description:
      'The units that devices take in racks now, by the ids of the racks, from the bottom up. The units of devices that you may not read are not free, and have no names.',
  }),
  load: async ({ caller }, body) => {
    const ids = idsOf(body);
    return grouped(
      ids,
      await equipment.mounts(caller, ids),
      ({ rackId }) => rackId,
      ({ rackId, ...mount }): Static<typeof MountView> => mount,
    );
  },
});

/** What cables connect interfaces with. */
const connections = ({ equipment }: ExtraSources): Extra => ({
  schema: Type.Record(Type.String(), ConnectionView, {
    description:
      'The other ends of the cables of interfaces now, by the ids of the interfaces. Those without a cable that you may read have none.',
  }),
  load: async ({ caller }, body) =>
    Object.fromEntries(
      (await equipment.connections(caller, idsOf(body))).map(
        ({ ofId, ...connection }): [string, Static<typeof ConnectionView>] => [ofId, connection],
      ),
    ),
});

/** The addresses of interfaces. */
const addresses = ({ equipment }: ExtraSources): Extra => ({
  schema: Type.Record(Type.String(), Type.Array(InterfaceAddressView), {
    description: `The addresses of interfaces now, by the ids of the interfaces: the first ${MAX_INTERFACE_ADDRESSES} of each, by address.`,
  }),
  load: async ({ caller }, body) => {
    const ids = idsOf(body);
    return grouped(
      ids,
      await equipment.addresses(caller, ids),
      ({ ofId }) => ofId,
      ({ ofId, ...address }): Static<typeof InterfaceAddressView> => address,
    );
  },
});

/** What `include` can add to records of a resource besides names: each is one query. */
export function extrasOf(
  { name }: Resource,
  sources: ExtraSources,
): Record<string, Extra> | undefined {
  if (name === 'prefixes') return { usage: usage(sources) };
  if (name === 'racks') return { mounts: mounts(sources) };
  if (name !== 'interfaces') return undefined;
  return { connections: connections(sources), addresses: addresses(sources) };
}
