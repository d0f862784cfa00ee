import { PLATFORM } from '../access/scope.ts';
import { GLOBAL_VRF, vrfKeyOf, type PlanSnapshot } from './planSnapshot.ts';
import type { Row } from './resource.ts';

/**
 * The address space of a record. The global table and the VRFs of the platform are shared: each
 * tenant has a space of its own there, and sees the prefixes of the platform as parents besides. A
 * VRF of a tenant is one space, whose records may belong to several tenants. The column
 * `space_key` identifies the same spaces.
 */
export type Space = { vrf: string; tenantId: string; isShared: boolean };

/** The address space that a prefix, a range or an address is in. */
export function spaceOf(snapshot: PlanSnapshot, row: Row): Space {
  const vrf = vrfKeyOf(row);
  return {
    vrf,
    tenantId: String(row.tenantId),
    isShared: vrf === GLOBAL_VRF || snapshot.get('vrfs', vrf)?.tenantId === PLATFORM,
  };
}

/** True when a record with this VRF and tenant is in a space. */
export const isIn = (space: Space, row: Row): boolean =>
  vrfKeyOf(row) === space.vrf && (!space.isShared || row.tenantId === space.tenantId);

/** True when a prefix is a parent in a space: one of the space, or of the platform. */
export const isParentIn = (space: Space, prefix: Row): boolean =>
  vrfKeyOf(prefix) === space.vrf &&
  (!space.isShared || prefix.tenantId === space.tenantId || prefix.tenantId === PLATFORM);

/** True for the space of the platform, whose prefixes are parents in the spaces of all tenants. */
export const isOfPlatform = (space: Space): boolean =>
  space.isShared && space.tenantId === PLATFORM;
