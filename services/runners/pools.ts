import type { Commit, Work } from '../../db/core/commit.ts';
import { conflictIfTaken, isForeignKeyViolation } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { recordOf } from '../../db/core/recordAudit.ts';
import { Pool } from '../../db/models/Pool.ts';
import { Runner } from '../../db/models/Runner.ts';
import { countRunners, readPoolLoads } from '../../db/runners/runners.ts';
import { PLATFORM, PLATFORM_SCOPE } from '../../domain/access/scope.ts';
import { MODULES_POOL } from '../../domain/runners/definition.ts';
import type { PoolData, PoolLoad } from '../../domain/runners/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, invalidField, notFound } from '../../domain/shared/errors.ts';
import type { Access } from '../access/access.ts';

export type Pools = ReturnType<typeof createPools>;

export type PoolFields = {
  description?: string;
  acceptTypes?: readonly string[];
  tenantSharePercent?: number | null;
};

/** A pool, how many of its runners are alive, and how busy it is. */
export type PoolView = { pool: PoolData; runners: number; load: PoolLoad };

const IDLE: PoolLoad = { slots: 0, runningJobs: 0, queuedJobs: 0 };

/** Pools that an installation can have; the list has one page. */
export const MAX_POOLS = 200;

const poolRecord = recordOf<Pool, 'pool.created' | 'pool.updated' | 'pool.deleted'>({
  type: 'pool',
  auditView: ({ name, description, acceptTypes, tenantSharePercent }) => ({
    name,
    description,
    acceptTypes,
    tenantSharePercent,
  }),
  events: { created: 'pool.created', updated: 'pool.updated', deleted: 'pool.deleted' },
  eventData: ({ name, acceptTypes }) => ({ pool: name, acceptTypes }),
});

/** Pools of runners. They belong to the platform. */
export function createPools({ db, commit, access }: { db: Knex; commit: Commit; access: Access }) {
  async function withRunners(pools: readonly PoolData[]): Promise<PoolView[]> {
    const names = pools.map(({ name }) => name);
    const runners = await countRunners(db, names);
    const loads = await readPoolLoads(db, names);
    return pools.map((pool) => ({
      pool,
      runners: runners.get(pool.name) ?? 0,
      load: loads.get(pool.name) ?? IDLE,
    }));
  }

  /** Error: `not_found`. */
  async function read(name: string): Promise<PoolView> {
    const pool = await Pool.query(db).findById(name);
    const [view] = pool ? await withRunners([pool]) : [];
    if (!view) throw notFound('pool', name);
    return view;
  }

  const requireWrite = (caller: Caller) => access.require(caller, 'jobtype:write', PLATFORM_SCOPE);

  /** Changes a pool while its row is locked. Errors: `not_found`, `version_conflict`. */
  const changeLocked = <T>(
    caller: Caller,
    name: string,
    expectedVersion: number | undefined,
    change: (work: Work, before: Pool, trx: Knex) => Promise<T>,
  ): Promise<T> =>
    commit({ ...caller, tenantId: PLATFORM }, async (work) => {
      const trx = await work.trx();
      const before = await Pool.query(trx).findById(name).forUpdate();
      if (!before) throw notFound('pool', name);
      checkVersion(before, expectedVersion);
      return change(work, before, trx);
    });

  return {
    list: async (): Promise<PoolView[]> =>
      withRunners(await Pool.query(db).orderBy('name').limit(MAX_POOLS)),

    read,

    /**
     * Errors: `permission_denied`; `invalid_request` for the name of the workers; `conflict`, if the name
     * exists; `limit_reached`.
     */
    async create(caller: Caller, name: string, fields: PoolFields): Promise<PoolView> {
      await requireWrite(caller);
      if (name === MODULES_POOL)
        throw invalidField('body', '/name', 'reserved', 'is the name of the workers themselves');
      return commit({ ...caller, tenantId: PLATFORM }, async (work) => {
        const trx = await work.trx();
        if ((await Pool.query(trx).resultSize()) >= MAX_POOLS)
          throw new AppError('limit_reached', `The limit of ${MAX_POOLS} pools is reached.`);
        const pool = await Pool.query(trx)
          .insertAndFetch({
            name,
            description: fields.description ?? '',
            acceptTypes: [...new Set(fields.acceptTypes)],
            tenantSharePercent: fields.tenantSharePercent ?? null,
            createdBy: caller.actorId,
            createdAt: work.now,
            updatedAt: work.now,
            version: 1,
          })
          .catch(conflictIfTaken(`There is a pool ${name} already.`));
        poolRecord.created(work, pool);
        work.result(name);
        return { pool, runners: 0, load: IDLE };
      });
    },

    /** Errors: `permission_denied`, `not_found`, `version_conflict`. */
    async update(
      caller: Caller,
      name: string,
      { description, acceptTypes, tenantSharePercent }: PoolFields,
      expectedVersion?: number,
    ): Promise<PoolView> {
      await requireWrite(caller);
      await changeLocked(caller, name, expectedVersion, async (work, before, trx) => {
        const after = await Pool.query(trx).patchAndFetchById(name, {
          ...(description !== undefined && { description }),
          ...(acceptTypes && { acceptTypes: [...new Set(acceptTypes)] }),
          ...(tenantSharePercent !== undefined && { tenantSharePercent }),
          updatedAt: work.now,
          version: before.version + 1,
        });
        poolRecord.updated(work, before, after);
      });
      return read(name);
    },

    /** Errors: `permission_denied`, `not_found`, `version_conflict`; `in_use` while it has types. */
    async remove(caller: Caller, name: string, expectedVersion?: number): Promise<void> {
      await requireWrite(caller);
      await changeLocked(caller, name, expectedVersion, async (work, before, trx) => {
        await Runner.query(trx).where({ pool: name }).delete();
        await Pool.query(trx)
          .deleteById(name)
          .catch((error: unknown) => {
            throw isForeignKeyViolation(error)
              ? new AppError('in_use', `The pool ${name} has job types; delete those first.`)
              : error;
          });
        poolRecord.deleted(work, before);
      });
    },
  };
}
