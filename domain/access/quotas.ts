/** What a tenant may own is limited. Each quota has a default, which the configuration can change. */
export const QUOTAS = {
  schedules: { fallback: 500, counts: 'schedules' },
  webhooks: { fallback: 100, counts: 'webhooks' },
  unfinishedJobs: { fallback: 10_000, counts: 'queued and running jobs, deliveries excepted' },
  unfinishedImports: { fallback: 100, counts: 'queued and running imports' },
  openApprovals: { fallback: 2_000, counts: 'pending approval requests' },
  backups: { fallback: 200, counts: 'backups that are queued, running or stored' },
  users: { fallback: 10_000, counts: 'accounts' },
  grants: { fallback: 50_000, counts: 'role assignments and provider mappings' },
  customFields: { fallback: 200, counts: 'custom fields' },
  legalHolds: { fallback: 1_000, counts: 'legal holds that are not released' },
  secrets: { fallback: 500, counts: 'named secrets' },
  idempotencyKeys: { fallback: 200_000, counts: 'values of Idempotency-Key of the last day' },
  inventoryRecords: { fallback: 2_000_000, counts: 'inventory records of all kinds' },
} as const satisfies Record<string, { fallback: number; counts: string }>;

export type QuotaName = keyof typeof QUOTAS;

export const QUOTA_NAMES = Object.keys(QUOTAS) as readonly QuotaName[];

/** The largest limit that can be set. */
export const MAX_QUOTA = 1_000_000_000;

/** A value for each quota. */
export type QuotaValues = Readonly<Record<QuotaName, number>>;

/** A quota that a change would exceed. `used` is what the tenant owns without the change. */
export type ExceededQuota = { name: string; limit: number; used: number };

/** Says which quota of a tenant a change would exceed. */
export const quotaText = (tenantId: string, { name, limit, used }: ExceededQuota): string =>
  `This would exceed the quota of ${limit} that the tenant ${tenantId} has for ${isQuotaName(name) ? QUOTAS[name].counts : name}; it owns ${used}.`;

const isQuotaName = (name: string): name is QuotaName => Object.hasOwn(QUOTAS, name);

/** What the platform has set for a tenant; all other limits are the defaults. */
export type QuotaOverrides = Readonly<Partial<Record<QuotaName, number>>>;

/** A value for each quota, from a function of its name. */
export const forEachQuota = (valueOf: (name: QuotaName) => number): QuotaValues =>
  Object.fromEntries(QUOTA_NAMES.map((name) => [name, valueOf(name)])) as QuotaValues;
