import {
  findQuotas,
  listQuotas,
  lockTenant,
  saveOverrides,
  type QuotaRow,
} from '../../db/access/quotas.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import type { KeysetPage, PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import { TenantQuota } from '../../db/models/TenantQuota.ts';
import { RBAC_READERS } from '../../domain/access/permissions.ts';
import {
  forEachQuota,
  QUOTA_NAMES,
  type QuotaName,
  type QuotaOverrides,
  type QuotaValues,
} from '../../domain/access/quotas.ts';
import { PLATFORM_SCOPE } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { checkVersion, notFound } from '../../domain/shared/errors.ts';
import type { Access } from './access.ts';
import { createCommitAccessChange } from './commitAccessChange.ts';

export type Quotas = ReturnType<typeof createQuotas>;

/** What a tenant owns and may own. `overridden` names the limits that are not the defaults. */
export type TenantQuotas = {
  tenantId: string;
  limits: QuotaValues;
  overridden: QuotaName[];
  used: QuotaValues;
  version: number;
};

/** New limits; null returns to the default. */
export type QuotaChange = {
  limits?: Readonly<Partial<Record<QuotaName, number | null>>>;
  /** Sent back as it was read. Limits in it that have their present value stay what they are. */
  overridden?: readonly QuotaName[];
};

type Deps = { db: Knex; commit: Commit; access: Access; config: { quotas: QuotaValues } };

/** The limits of what tenants own. Only the platform sets them. */
export function createQuotas({ db, commit, access, config: { quotas: defaults } }: Deps) {
  const commitChange = createCommitAccessChange({ commit, access });

  const viewOf = (row: QuotaRow) => quotasOf(row, defaults);

  const readableScope = (caller: Caller) => access.scope(caller, ...RBAC_READERS);

  async function read(caller: Caller, tenantId: string): Promise<TenantQuotas> {
    const row = await findQuotas(db, readableScope(caller), tenantId);
    if (!row) throw notFound('tenant', tenantId);
    return viewOf(row);
  }

  /** What differs from the defaults after a change. */
  function overridesAfter(row: QuotaRow, { limits = {}, overridden }: QuotaChange): QuotaOverrides {
    const unchanged: Partial<QuotaValues> = overridden ? viewOf(row).limits : {};
    const names = QUOTA_NAMES.flatMap((name): [QuotaName, number][] => {
      const kept = row.overrides[name];
      const wanted = limits[name];
      const value = wanted === undefined || wanted === unchanged[name] ? kept : wanted;
      return value === undefined || value === null ? [] : [[name, value]];
    });
    return Object.fromEntries(names);
  }

  return {
    /** The tenants whose grants the caller may read, in the order of their ids. */
    async list(caller: Caller, page: PageRequest): Promise<KeysetPage<TenantQuotas>> {
      const { items, nextKey } = await listQuotas(db, readableScope(caller), page);
      return { items: items.map(viewOf), nextKey };
    },

    /** Error: `not_found`. */
    read,

    /**
     * Sets limits of a tenant; others stay as they are. A limit may be lower than what the tenant
     * owns: it then adds nothing until it owns less. Null for `change` returns to all defaults.
     * Errors: `not_found`, `permission_denied` (`rbac:write` at the platform), `version_conflict`.
     */
    async update(
      caller: Caller,
      tenantId: string,
      change: QuotaChange | null,
      expectedVersion?: number,
    ): Promise<TenantQuotas> {
      await read(caller, tenantId);
      await access.require(caller, 'rbac:write', PLATFORM_SCOPE);
      return commitChange(caller, 'rbac:write', PLATFORM_SCOPE, async (work, current, trx) => {
        await lockTenant(trx, tenantId);
        const row = await findQuotas(trx, readableScope(current), tenantId);
        if (!row) throw notFound('tenant', tenantId);
        checkVersion(row, expectedVersion);
        const overrides = change === null ? {} : overridesAfter(row, change);
        const after = { ...row, overrides, version: row.version + 1 };
        await saveOverrides(trx, tenantId, {
          limits: overrides,
          version: after.version,
          now: work.now,
        });
        quotaRecord.updated(work, asRecord(viewOf(row)), asRecord(viewOf(after)), { tenantId });
        return viewOf(after);
      });
    },
  };
}

const quotasOf = (
  { tenantId, overrides, used, version }: QuotaRow,
  defaults: QuotaValues,
): TenantQuotas => ({
  tenantId,
  limits: forEachQuota((name) => overrides[name] ?? defaults[name]),
  overridden: QUOTA_NAMES.filter((name) => overrides[name] !== undefined),
  used: forEachQuota((name) => used[name] ?? 0),
  version,
});

/** Returns to the defaults for a tenant that is deleted. */
export async function resetQuotas(
  work: Work,
  trx: Knex,
  tenantId: string,
  defaults: QuotaValues,
): Promise<void> {
  const row = await findQuotas(trx, { kind: 'everywhere' }, tenantId);
  if (!row || row.version === 0) return;
  await TenantQuota.query(trx).deleteById(tenantId);
  const before = asRecord(quotasOf(row, defaults));
  const after = asRecord(quotasOf({ ...row, overrides: {} }, defaults));
  if (before.overridden.length > 0) quotaRecord.updated(work, before, after, { tenantId });
}

const asRecord = (quotas: TenantQuotas) => ({ id: quotas.tenantId, ...quotas });

const quotaRecord = recordOf<ReturnType<typeof asRecord>, 'quota.updated'>({
  type: 'quota',
  auditView: ({ tenantId, limits, overridden }) => ({ tenantId, limits, overridden }),
  events: { updated: 'quota.updated' },
  eventData: ({ tenantId, limits }) => ({ tenantId, limits: { ...limits } }),
});
