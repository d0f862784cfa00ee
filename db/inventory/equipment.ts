import type { Scope } from '../../domain/access/scope.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Knex } from '../core/knex.ts';
import type { Sql } from '../core/sql.ts';
import { readableCondition } from './readable.ts';
import { canonicalText } from './tables.ts';

/**
 * Units of a rack that a device takes. Outside the scope of the reader only the units are known: they
 * are not free.
 */
export type Mount = {
  rackId: string;
  position: number;
  uHeight: number;
  /** The faces whose units it takes. */
  front: boolean;
  rear: boolean;
  deviceId: string | null;
  name: string | null;
  status: string | null;
  face: string | null;
  deviceTypeId: string | null;
  model: string | null;
};

/** What a cable connects an interface with; without names where the reader may not know them. */
export type Connection = {
  ofId: string;
  cableId: string;
  cableStatus: string;
  interfaceId: string;
  interfaceName: string | null;
  deviceId: string | null;
  deviceName: string | null;
};

/** An address of an interface. */
export type InterfaceAddress = {
  ofId: string;
  id: string;
  address: string;
  status: string;
  role: string | null;
  dnsName: string | null;
};

const readable = (name: keyof typeof RESOURCES, scope: Scope): Sql =>
  readableCondition(RESOURCES[name], scope);

/** Lists the units that devices take in racks, also those outside the scope, from the bottom up. */
export async function listMounts(
  db: Knex,
  scope: Scope,
  rackIds: readonly string[],
): Promise<Mount[]> {
  const { sql, bindings } = readable('devices', scope);
  const { rows } = await db.raw<{ rows: Mount[] }>(
    `SELECT rack_id AS "rackId", position, upper(units) - lower(units) AS "uHeight", 0 <@ depth AS front,
        1 <@ depth AS rear, CASE WHEN is_readable THEN id END AS "deviceId",
        CASE WHEN is_readable THEN name END AS name, CASE WHEN is_readable THEN status END AS status,
        CASE WHEN is_readable THEN face END AS face,
        CASE WHEN is_readable THEN device_type_id END AS "deviceTypeId",
        CASE WHEN is_readable THEN (SELECT model FROM device_types AS t WHERE t.id = device_type_id) END AS model
      FROM (SELECT *, (${sql}) AS is_readable FROM devices
            WHERE rack_id = ANY (?::text[]) AND units IS NOT NULL) AS mounted
      ORDER BY rack_id, position, depth, id`,
    [...bindings, [...rackIds]],
  );
  return rows;
}

/** Lists what the cables of interfaces lead to, as far as the reader may read the cables. */
export async function listConnections(
  db: Knex,
  scope: Scope,
  interfaceIds: readonly string[],
): Promise<Connection[]> {
  const [cable, far, device] = (['cables', 'interfaces', 'devices'] as const).map((name) =>
    readable(name, scope),
  ) as [Sql, Sql, Sql];
  const { rows } = await db.raw<{ rows: Connection[] }>(
    `SELECT own.interface_id AS "ofId", cable.id AS "cableId", cable.status AS "cableStatus",
        other.interface_id AS "interfaceId", far.name AS "interfaceName", device.id AS "deviceId",
        device.name AS "deviceName"
      FROM cable_ends AS own
      JOIN LATERAL (SELECT id, status FROM cables WHERE id = own.cable_id AND (${cable.sql})) AS cable ON TRUE
      JOIN cable_ends AS other ON other.cable_id = own.cable_id AND other.interface_id <> own.interface_id
      LEFT JOIN LATERAL (SELECT name, device_id FROM interfaces
        WHERE id = other.interface_id AND (${far.sql})) AS far ON TRUE
      LEFT JOIN LATERAL (SELECT id, name FROM devices WHERE id = far.device_id AND (${device.sql})) AS device ON TRUE
      WHERE own.interface_id = ANY (?::text[])`,
    [...cable.bindings, ...far.bindings, ...device.bindings, [...interfaceIds]],
  );
  return rows;
}

/** Lists the addresses of interfaces in the scope, up to `limit` of each, by address. */
export async function listInterfaceAddresses(
  db: Knex,
  scope: Scope,
  interfaceIds: readonly string[],
  limit: number,
): Promise<InterfaceAddress[]> {
  const resource = RESOURCES['ip-addresses'];
  const { sql, bindings } = readable('ip-addresses', scope);
  const { rows } = await db.raw<{ rows: InterfaceAddress[] }>(
    `SELECT of_id AS "ofId", found.*
      FROM unnest(?::text[]) AS of_id
      JOIN LATERAL (SELECT id, concat(address) AS address, status, role, dns_name AS "dnsName" FROM ip_addresses
        WHERE interface_id = of_id AND (${sql}) ORDER BY host, id LIMIT ?) AS found ON TRUE`,
    [[...interfaceIds], ...bindings, limit],
  );
  return rows.map((row) => ({ ...row, address: canonicalText(resource, 'address', row.address) }));
}
