/** Where a grant holds, as a form has it. */
export type ScopeLevel = 'platform' | 'tenant' | 'site' | 'device';
export type ScopeDraft = {
  level: ScopeLevel;
  tenantId: string;
  siteId: string | undefined;
  deviceId: string | undefined;
};

type ScopeText = {
  tenantId?: string | undefined;
  siteId?: string | undefined;
  deviceId?: string | undefined;
};

export const SCOPE_LEVELS: readonly { value: ScopeLevel; label: string }[] = [
  { value: 'platform', label: 'Everywhere' },
  { value: 'tenant', label: 'A tenant' },
  { value: 'site', label: 'A site' },
  { value: 'device', label: 'A device' },
];

/** The scope that an address names; the narrowest id counts. */
export function scopeOfText({ tenantId, siteId, deviceId }: ScopeText): ScopeDraft {
  const level =
    deviceId !== undefined
      ? 'device'
      : siteId !== undefined
        ? 'site'
        : tenantId === undefined || tenantId === 'platform'
          ? 'platform'
          : 'tenant';
  return { level, tenantId: level === 'tenant' ? (tenantId ?? '') : '', siteId, deviceId };
}

/** The ids of a request for the scope. */
export function scopeIds({ level, tenantId, siteId, deviceId }: ScopeDraft): {
  tenantId?: string;
  siteId?: string;
  deviceId?: string;
} {
  if (level === 'platform') return { tenantId: 'platform' };
  if (level === 'tenant') return { tenantId: tenantId.trim() };
  if (level === 'site') return siteId === undefined ? {} : { siteId };
  return deviceId === undefined ? {} : { deviceId };
}

/** What is missing before the scope can be sent. */
export function missingOfScope({
  level,
  tenantId,
  siteId,
  deviceId,
}: ScopeDraft): string | undefined {
  if (level === 'tenant' && tenantId.trim() === '') return 'Choose a tenant.';
  if (level === 'site' && siteId === undefined) return 'Choose a site.';
  if (level === 'device' && deviceId === undefined) return 'Choose a device.';
  return undefined;
}
