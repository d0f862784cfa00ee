import { pointerTo } from '../../domain/shared/jsonPointer.ts';
import { lockTenant } from '../../db/access/quotas.ts';
import type { Commit } from '../../db/core/commit.ts';
import type { KeysetPage, PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import {
  findRetention,
  listRetention,
  saveRetention,
  type RetentionRow,
} from '../../db/retention/settings.ts';
import { RBAC_READERS } from '../../domain/access/permissions.ts';
import {
  daysOf,
  MAX_JOB_TYPES,
  NO_OVERRIDES,
  PERIOD_NAMES,
  type Days,
  type JobKind,
  type RetentionDays,
  type PeriodName,
  type RetentionOverrides,
} from '../../domain/retention/retention.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { checkVersion, invalidField, notFound } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';
import { createCommitAccessChange } from '../access/commitAccessChange.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

export type RetentionSettings = ReturnType<typeof createRetentionSettings>;

/** The periods of a tenant. `overridden` names those that are not the defaults. */
export type TenantRetention = {
  tenantId: string;
  days: RetentionDays;
  overridden: PeriodName[];
  jobTypes: RetentionOverrides['jobTypes'];
  version: number;
};

/** New periods: a number of days, null to keep for ever, or a return to the default. */
export type NewDays = Days | 'default';
export type RetentionChange = {
  days?: Readonly<Partial<Record<PeriodName, NewDays>>>;
  /** Sent back as it was read. Periods in it that have their present value stay what they are. */
  overridden?: readonly PeriodName[];
  jobTypes?: Readonly<Record<string, Readonly<Partial<Record<JobKind, NewDays>>> | 'default'>>;
};

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  jobTypes: JobTypes;
  config: { retention: RetentionDays };
};

/** How long the records of tenants are kept. Administrators of a tenant set it for the tenant. */
export function createRetentionSettings({
  db,
  commit,
  access,
  jobTypes,
  config: { retention: defaults },
}: Deps) {
  const commitChange = createCommitAccessChange({ commit, access });
  const readableScope = (caller: Caller) => access.scope(caller, ...RBAC_READERS);

  const viewOf = (row: RetentionRow): TenantRetention => ({
    tenantId: row.tenantId,
    days: daysOf(defaults, row),
    overridden: PERIOD_NAMES.filter((name) => row.days[name] !== undefined),
    jobTypes: row.jobTypes,
    version: row.version,
  });

  async function find(on: Knex, caller: Caller, tenantId: string): Promise<RetentionRow> {
    const row = await findRetention(on, readableScope(caller), tenantId);
    if (!row) throw notFound('tenant', tenantId);
    return row;
  }

  /**
   * Checks the job types that have periods after a change. Those that had some before are not checked
   * again: a deleted type still has records. Error: `invalid_request` for job types that do not exist,
   * or too many.
   */
  function checkJobTypes(
    before: RetentionOverrides['jobTypes'],
    after: RetentionOverrides['jobTypes'],
  ): void {
    const names = Object.keys(after);
    for (const name of names)
      if (!Object.hasOwn(before, name)) jobTypes.get(name, pointerTo(['jobTypes', name]));
    if (names.length > MAX_JOB_TYPES)
      throw invalidField(
        'body',
        '/jobTypes',
        'maxProperties',
        `at most ${MAX_JOB_TYPES} job types have periods of their own`,
      );
  }

  const refreshTypes = (change: RetentionChange | null): Promise<void> =>
    jobTypes.refreshUnknown(...Object.keys(change?.jobTypes ?? {}));

  /** What differs from the defaults after a change. Error: `invalid_request`. */
  function overridesAfter(row: RetentionRow, change: RetentionChange): RetentionOverrides {
    const unchanged = change.overridden && daysOf(defaults, row);
    const days = changedDays(row.days, change.days ?? {}, unchanged);
    const types = new Map(Object.entries(row.jobTypes));
    for (const [name, wanted] of Object.entries(change.jobTypes ?? {})) {
      const before = types.get(name) ?? {};
      const after = wanted === 'default' ? {} : changedDays(before, wanted);
      if (Object.keys(after).length === 0) types.delete(name);
      else types.set(name, after);
    }
    const after = { days, jobTypes: Object.fromEntries(types) };
    checkJobTypes(row.jobTypes, after.jobTypes);
    return after;
  }

  return {
    /** The tenants whose grants the caller may read, in the order of their ids. */
    async list(caller: Caller, page: PageRequest): Promise<KeysetPage<TenantRetention>> {
      const { items, nextKey } = await listRetention(db, readableScope(caller), page);
      return { items: items.map(viewOf), nextKey };
    },

    /** Error: `not_found`. */
    read: async (caller: Caller, tenantId: string): Promise<TenantRetention> =>
      viewOf(await find(db, caller, tenantId)),

    /** What would differ from the defaults after a change that is not made. Error: `not_found`. */
    async overridesWith(
      caller: Caller,
      tenantId: string,
      change: RetentionChange,
    ): Promise<RetentionOverrides> {
      await refreshTypes(change);
      return overridesAfter(await find(db, caller, tenantId), change);
    },

    /**
     * Sets periods of a tenant; others stay as they are. Null for `change` returns to all defaults.
     * Errors: `not_found`, `permission_denied` (`rbac:write` at the tenant, and `audit:archive` to
     * change `auditArchive`), `version_conflict`, `invalid_request`.
     */
    async update(
      caller: Caller,
      tenantId: string,
      change: RetentionChange | null,
      expectedVersion?: number,
    ): Promise<TenantRetention> {
      await find(db, caller, tenantId);
      await access.require(caller, 'rbac:write', { tenantId });
      await refreshTypes(change);
      return commitChange(caller, 'rbac:write', { tenantId }, async (work, current, trx) => {
        await lockTenant(trx, tenantId);
        const row = await find(trx, current, tenantId);
        checkVersion(row, expectedVersion);
        const overrides = change === null ? NO_OVERRIDES : overridesAfter(row, change);
        // What is archived by itself is what a job of the type `audit.archive` would archive.
        if (daysOf(defaults, overrides).auditArchive !== daysOf(defaults, row).auditArchive)
          access.assertPermission(current, 'audit:archive', { tenantId });
        const after = { ...row, ...overrides, version: row.version + 1 };
        await saveRetention(trx, after, work.now);
        retentionRecord.updated(work, asRecord(viewOf(row)), asRecord(viewOf(after)), {
          tenantId,
        });
        return viewOf(after);
      });
    },
  };
}

/**
 * The periods that are set after a change. Those that have their value of `unchanged` stay what they
 * are: a default, or set.
 */
function changedDays<K extends string>(
  set: Readonly<Partial<Record<K, Days>>>,
  change: Readonly<Partial<Record<K, NewDays>>>,
  unchanged?: Readonly<Partial<Record<K, Days>>>,
): Partial<Record<K, Days>> {
  const after = new Map<string, Days>(Object.entries<Days>(set as Record<string, Days>));
  for (const kind of Object.keys(change) as K[]) {
    const wanted: NewDays | undefined = change[kind];
    if (wanted === 'default') after.delete(kind);
    else if (wanted !== undefined && wanted !== unchanged?.[kind]) after.set(kind, wanted);
  }
  return Object.fromEntries(after) as Partial<Record<K, Days>>;
}

const asRecord = (retention: TenantRetention) => ({ id: retention.tenantId, ...retention });

const retentionRecord = recordOf<ReturnType<typeof asRecord>, 'retention.updated'>({
  type: 'retention',
  auditView: ({ tenantId, days, overridden, jobTypes }) => ({
    tenantId,
    days,
    overridden,
    jobTypes,
  }),
  events: { updated: 'retention.updated' },
  eventData: ({ tenantId, days, jobTypes }) => ({
    tenantId,
    days: { ...days },
    jobTypes: { ...jobTypes },
  }),
});
