import type { ResourceScope } from '../../domain/access/scope.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';

/**
 * A simple model of what inventory records belong to: it searches all records. Networks are IPv4
 * and compared as numbers.
 */
export type ScopeEstate = Readonly<Record<ResourceName, Row[]>>;

/** Resources whose records belong to sites and devices through others. */
export type ScopedResource = 'prefixes' | 'ip-ranges' | 'ip-addresses' | 'vlans' | 'cables';

type Bounds = { first: number; last: number; length: number };

const numberOf = (address: string): number =>
  address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);

function boundsOf(row: Row): Bounds {
  if (typeof row.cidr === 'string') {
    const [address = '', length = ''] = row.cidr.split('/');
    const first = numberOf(address);
    return { first, last: first + 2 ** (32 - Number(length)) - 1, length: Number(length) };
  }
  const host = (value: unknown) => numberOf(String(value).split('/')[0] ?? '');
  return {
    first: host(row.startAddress ?? row.address),
    last: host(row.endAddress ?? row.address),
    length: 32,
  };
}

/** The site of the smallest prefix of the same tenant and VRF around a record that has a site. */
function siteAround({ prefixes }: ScopeEstate, row: Row): unknown {
  const { first, last } = boundsOf(row);
  const around = prefixes
    .filter((each) => each.id !== row.id && each.siteId !== null)
    .filter((each) => each.tenantId === row.tenantId && each.vrfId === row.vrfId)
    .map((each) => ({ ...boundsOf(each), id: each.id, siteId: each.siteId }))
    .filter((each) => each.first <= first && last <= each.last);
  around.sort((a, b) => b.length - a.length || (a.id < b.id ? -1 : 1));
  return around[0]?.siteId ?? null;
}

const find = (rows: readonly Row[], id: unknown): Row | undefined =>
  rows.find((row) => row.id === id);

/** The device of an interface; nothing when it is of another tenant. */
function deviceScope({ interfaces }: ScopeEstate, row: Row, interfaceId: unknown) {
  const port = find(interfaces, interfaceId);
  return port?.tenantId === row.tenantId
    ? { siteId: port?.siteId ?? null, deviceId: port?.deviceId ?? null }
    : { siteId: null, deviceId: null };
}

type Part = { siteId: unknown; deviceId?: unknown };

function partsOf(estate: ScopeEstate, resource: ScopedResource, row: Row): Part[] {
  switch (resource) {
    case 'prefixes':
      return [{ siteId: row.siteId ?? siteAround(estate, row) }];
    case 'ip-ranges':
      return [{ siteId: siteAround(estate, row) }];
    case 'vlans': {
      const group = find(estate['vlan-groups'], row.groupId);
      return [{ siteId: row.siteId ?? (group?.tenantId === row.tenantId ? group?.siteId : null) }];
    }
    case 'cables':
      return [row.aInterfaceId, row.bInterfaceId].map((end) => deviceScope(estate, row, end));
    case 'ip-addresses': {
      const space = { siteId: siteAround(estate, row) };
      if (row.interfaceId === null) return [space];
      const device = deviceScope(estate, row, row.interfaceId);
      return space.siteId === null || space.siteId === device.siteId ? [device] : [device, space];
    }
  }
}

/** Everything that a record belongs to. */
export const expectedScopes = (
  estate: ScopeEstate,
  resource: ScopedResource,
  row: Row,
): ResourceScope[] =>
  partsOf(estate, resource, row).map((part) => ({
    tenantId: String(row.tenantId),
    siteId: (part.siteId ?? null) as string | null,
    deviceId: (part.deviceId ?? null) as string | null,
  }));

/** Where writing a record needs permission: a site of another tenant does not count. */
export const expectedWriteScopes = (
  estate: ScopeEstate,
  resource: ScopedResource,
  row: Row,
): ResourceScope[] =>
  expectedScopes(estate, resource, row).map((scope) =>
    find(estate.sites, scope.siteId)?.tenantId === scope.tenantId
      ? scope
      : { ...scope, siteId: null },
  );
