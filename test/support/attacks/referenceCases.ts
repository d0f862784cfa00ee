import { writableFields } from '../../../domain/inventory/resource.ts';
import { RESOURCES } from '../../../domain/inventory/resources/index.ts';
import type { TestClient } from '../client.ts';
import { recordFactory, type InventoryRecord } from '../inventory.ts';
import { idOfNone } from './answers.ts';

/** A record that a tenant can create, for each resource of tenants. */
export type Bases = Readonly<Record<string, () => Record<string, unknown>>>;

type Own = { devices: string; sites: string };

/** Records for the tenant of `client`, which has these. */
export async function createBases(
  client: TestClient,
  own: Own,
  shared: { 'device-types': string },
): Promise<Bases> {
  const make = recordFactory(() => client);
  const ports = ['free1', 'free2'].map((name) =>
    make('interfaces', { deviceId: own.devices, name }),
  );
  const [a, b] = await Promise.all(ports);
  const atSite = { name: 'new', siteId: own.sites };
  return {
    regions: () => ({ name: 'new' }),
    sites: () => ({ name: 'new' }),
    locations: () => atSite,
    racks: () => atSite,
    devices: () => ({ ...atSite, deviceTypeId: shared['device-types'] }),
    interfaces: () => ({ name: 'new', deviceId: own.devices }),
    cables: () => ({ aInterfaceId: a?.id, bInterfaceId: b?.id }),
    vrfs: () => ({ name: 'new' }),
    'vlan-groups': () => ({ name: 'new' }),
    vlans: () => ({ name: 'new', vid: 77 }),
    prefixes: () => ({ cidr: '10.12.77.0/24' }),
    'ip-ranges': () => ({ startAddress: '10.12.78.1', endAddress: '10.12.78.9' }),
    'ip-addresses': () => ({ address: '10.12.79.1/24' }),
    'custom-fields': () => ({ resource: 'racks', name: 'new', type: 'text' }),
  };
}

/** The records of a tenant that references are to, by resource. */
export async function readTargets(
  owner: TestClient,
  estate: Readonly<Record<string, string>>,
  resources: readonly string[],
): Promise<Map<string, InventoryRecord>> {
  const targets = new Map<string, InventoryRecord>();
  for (const name of resources) {
    const path = `/api/inventory/${name}/${estate[name]}`;
    targets.set(name, await owner.get<InventoryRecord>(path).expect(200));
  }
  return targets;
}

/** Values of lookup fields that no record has. */
const NONE: Readonly<Record<string, string>> = {
  address: '10.250.0.9/24',
  cidr: '10.250.0.0/16',
  startAddress: '10.250.0.9',
};

/**
 * A reference to a record of another tenant, by its id or by a field, and the same to a record that nobody has.
 */
export type Reference = {
  resource: string;
  field: string;
  by: string | null;
  foreign: unknown;
  none: unknown;
};

/** The references of a resource to `targets`. Catalogues are for everybody. */
export function referencesOf(
  resource: string,
  targets: ReadonlyMap<string, InventoryRecord>,
): Reference[] {
  return writableFields(RESOURCES[resource as keyof typeof RESOURCES]).flatMap(
    ([field, { reference }]) => {
      if (reference === undefined || RESOURCES[reference].scopeKind === 'catalogue') return [];
      const record = targets.get(reference);
      if (!record) throw new Error(`there is none of ${reference}`);
      const byName = RESOURCES[reference].lookupFields.flatMap((by) => {
        const value = record[by];
        return typeof value === 'string'
          ? [{ by, foreign: { [by]: value }, none: { [by]: NONE[by] ?? 'nobody-has-it' } }]
          : [];
      });
      const byId = { by: null, foreign: record.id, none: idOfNone(record.id) };
      return [byId, ...byName].map((pair) => ({ resource, field, ...pair }));
    },
  );
}

/** The text in a reference that the client has sent. */
export const sentIn = (reference: unknown): string =>
  typeof reference === 'string' ? reference : String(Object.values(reference as object)[0]);
