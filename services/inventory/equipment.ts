import {
  listConnections,
  listInterfaceAddresses,
  listMounts,
  type Connection,
  type InterfaceAddress,
  type Mount,
} from '../../db/inventory/equipment.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from '../access/access.ts';

/** Most addresses of an interface that are shown beside it. */
export const MAX_INTERFACE_ADDRESSES = 20;

export type Equipment = ReturnType<typeof createEquipment>;

/** What is in racks, and what interfaces are connected with. The caller has read the racks and interfaces. */
export function createEquipment({ db, access }: { db: Knex; access: Access }) {
  const scopeOf = (caller: Caller) => access.scope(caller, 'inventory:read');
  return {
    /** The units of racks that devices take. */
    mounts: (caller: Caller, rackIds: readonly string[]): Promise<Mount[]> =>
      listMounts(db, scopeOf(caller), rackIds),

    /** The other ends of the cables of interfaces. */
    connections: (caller: Caller, interfaceIds: readonly string[]): Promise<Connection[]> =>
      listConnections(db, scopeOf(caller), interfaceIds),

    /** The first addresses of interfaces. */
    addresses: (caller: Caller, interfaceIds: readonly string[]): Promise<InterfaceAddress[]> =>
      listInterfaceAddresses(db, scopeOf(caller), interfaceIds, MAX_INTERFACE_ADDRESSES),
  };
}
