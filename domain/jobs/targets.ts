import type { ResourceScope } from '../access/scope.ts';

/** What a job of a type belongs to: nothing but its tenant, a site, or a device. */
export const TARGET_KINDS = ['none', 'site', 'device'] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

/** The record that a job is about, as a request names it. */
export type TargetRef = { kind: Exclude<TargetKind, 'none'>; id: string };

/** That record as it is now. `siteId` is the site of a device if both belong to one tenant. */
export type Target = TargetRef & { name: string; tenantId: string; siteId: string | null };

/** The columns of a job that say what it is about. A job about a device has the site of the device, too. */
export type TargetColumns = { targetSiteId: string | null; targetDeviceId: string | null };

/** What a job is about; null for a job without a target. */
export function targetOf({ targetSiteId, targetDeviceId }: TargetColumns): TargetRef | null {
  if (targetDeviceId !== null) return { kind: 'device', id: targetDeviceId };
  return targetSiteId === null ? null : { kind: 'site', id: targetSiteId };
}

/** The resource scope of a record that jobs can be about. */
export const scopeOfTarget = ({ kind, id, tenantId, siteId }: Target): ResourceScope => ({
  tenantId,
  siteId,
  ...(kind === 'device' && { deviceId: id }),
});

/** The columns of a new job. */
export const targetColumns = (target: Target | null): TargetColumns => ({
  targetSiteId: target?.siteId ?? null,
  targetDeviceId: target?.kind === 'device' ? target.id : null,
});
