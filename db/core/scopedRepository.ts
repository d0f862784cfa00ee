import type { Model, QueryBuilder } from 'objection';
import type { Permission } from '../../domain/access/permissions.ts';
import type { ResourceScope, Scope } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { checkVersion, notFound, type AppError } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Commit, Work } from './commit.ts';
import type { Knex } from './knex.ts';
import { readList, type ListSource } from './lists.ts';
import { whereInScope, type ScopeColumns } from './scopeSql.ts';

/** The checks that a repository asks for; `services/access` implements them. */
type AccessChecks = {
  scope(caller: Caller, ...permissions: readonly Permission[]): Scope;
  requireToAct<R extends ResourceScope>(
    caller: Caller,
    record: R | undefined,
    rights: { permission: Permission; readPermission: Permission; missing: () => AppError },
  ): Promise<R>;
};

type ScopedRecord = Model & ResourceScope & { id: string; version: number };

type Options<R extends ScopedRecord> = {
  db: Knex;
  commit: Commit;
  access: AccessChecks;
  /** The record in error messages, for example `job`. */
  kind: string;
  /** Callers see the records where they hold this permission. */
  readPermission: Permission;
  /** Columns that reads return; all of them without this. */
  columns?: readonly string[];
  /** Columns that hold the resource scope of a row; `tenant_id` without this. */
  scopeColumns?: ScopeColumns;
  /** True for tables with `deleted_at`: deleted rows are never found. */
  softDelete?: boolean;
  /** Narrows every query: one table may have several kinds of records. */
  only?(query: QueryBuilder<R>): void;
  /** Takes other locks that must come before the lock of the row itself. */
  lockBefore?(work: Work, record: R): Promise<unknown>;
};

type ListOptions<R extends Model> = Pick<ListSource<R>, 'columns' | 'condition'> & {
  refine?(query: QueryBuilder<R>): void;
};

export type ScopedRepository<R extends ScopedRecord> = {
  /**
   * A record that the caller may read. With `actedWith`, also one that the caller has just acted on
   * with this permission: the response to an action shows the record. Error: `not_found`, for an
   * unknown id and for one outside the caller's scope alike.
   */
  find(caller: Caller, id: string, actedWith?: Permission): Promise<R>;
  /**
   * A record that the caller acts on with `permission`, which suffices. Errors: `not_found` for a
   * caller who may not read the record either, otherwise `permission_denied`.
   */
  findToAct(caller: Caller, id: string, permission: Permission): Promise<R>;
  /** Answers a request for a list of the visible records. `refine` adds filters of this list. */
  list(caller: Caller, request: ListRequest, options?: ListOptions<R>): Promise<ListAnswer<R>>;
  /**
   * Commits a change of a record while its row is locked. The audit entries belong to the tenant of
   * the record, not to the tenant of the caller. `change` gets all columns of the row as locked.
   * Errors: `not_found` when the record was deleted, `version_conflict` when its version is not
   * `expectedVersion`.
   */
  commitLocked<T>(
    caller: Caller,
    record: R,
    expectedVersion: number | undefined,
    change: (work: Work, before: R, trx: Knex) => Promise<T> | T,
  ): Promise<T>;
};

type RecordClass<R extends ScopedRecord> = (new () => R) & Pick<typeof Model, 'query'>;

function refined<Q>(query: Q, refine: ((query: Q) => void) | undefined): Q {
  refine?.(query);
  return query;
}

/** Reads and locked changes of records that belong to a resource scope. */
export function scopedRepository<R extends ScopedRecord>(
  model: RecordClass<R>,
  options: Options<R>,
): ScopedRepository<R> {
  const { db, commit, access, kind, readPermission, columns, scopeColumns } = options;

  /** All rows that are not deleted. */
  function live(executor: Knex): QueryBuilder<R> {
    const query = model.query(executor) as unknown as QueryBuilder<R>;
    options.only?.(query);
    return options.softDelete ? query.whereNull('deleted_at') : query;
  }

  function visible(caller: Caller, ...others: readonly Permission[]): QueryBuilder<R> {
    const query = live(db);
    whereInScope(query, access.scope(caller, readPermission, ...others), scopeColumns);
    return columns ? query.select([...columns]) : query;
  }

  async function find(caller: Caller, id: string, actedWith = readPermission): Promise<R> {
    const record = await visible(caller, actedWith).findById(id);
    if (!record) throw notFound(kind, id);
    return record;
  }

  async function findToAct(caller: Caller, id: string, permission: Permission): Promise<R> {
    const record: R | undefined = await visible(caller, permission).findById(id);
    return access.requireToAct(caller, record, {
      permission,
      readPermission,
      missing: () => notFound(kind, id),
    });
  }

  const list = (
    caller: Caller,
    request: ListRequest,
    { refine, ...source }: ListOptions<R> = {},
  ): Promise<ListAnswer<R>> =>
    readList({ db, visible: () => refined(visible(caller), refine), ...source }, request);

  function commitLocked<T>(
    caller: Caller,
    record: R,
    expectedVersion: number | undefined,
    change: (work: Work, before: R, trx: Knex) => Promise<T> | T,
  ): Promise<T> {
    return commit({ ...caller, tenantId: record.tenantId }, async (work) => {
      await options.lockBefore?.(work, record);
      const trx = await work.trx();
      const before = await live(trx).findById(record.id).forUpdate();
      if (!before) throw notFound(kind, record.id);
      checkVersion(before, expectedVersion);
      return change(work, before, trx);
    });
  }

  return { find, findToAct, list, commitLocked };
}
