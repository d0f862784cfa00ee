import { AuditEntry } from '../../db/models/AuditEntry.ts';
import type { Knex } from '../../db/core/knex.ts';
import { createdAtSql, LONGEST_COMMIT_MS } from '../../db/core/listConditions.ts';
import type { Sql } from '../../db/core/sql.ts';
import { readList, type ListSource } from '../../db/core/lists.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import {
  pageOf,
  type ListAnswer,
  type ListCondition,
  type ListKey,
  type ListRequest,
  type ListSort,
} from '../../domain/shared/lists.ts';
import { createPause } from '../../platform/turns.ts';
import type { Access } from '../access/access.ts';

export type AuditLog = ReturnType<typeof createAuditLog>;

/** Entries read per query by an export. */
const EXPORT_BATCH = 500;

/** The most by which the time in an entry's id is before its `at`: clocks of processes differ. */
const ID_TOLERANCE_MS = 60_000;

const OLDEST_FIRST: ListSort = { field: 'id', kind: 'text', nullable: false, descending: false };

const timeSql = (condition: ListCondition): Sql | undefined =>
  condition.field === 'at'
    ? createdAtSql('aud', condition, {
        toleranceMs: ID_TOLERANCE_MS,
        laterMs: LONGEST_COMMIT_MS,
        column: 'at',
      })
    : undefined;

/** Read access to the audit log. */
export function createAuditLog({ db, access }: { db: Knex; access: Access }) {
  const sourceFor = (caller: Caller): ListSource<AuditEntry> => ({
    db,
    visible() {
      const query = AuditEntry.query(db);
      whereInScope(query, access.scope(caller, 'audit:read'));
      return query;
    },
    condition: timeSql,
  });

  async function* readAll(
    caller: Caller,
    where: readonly ListCondition[],
    signal: AbortSignal,
  ): AsyncGenerator<AuditEntry> {
    for (let after: ListKey | undefined; ;) {
      // An error, not the end: readers must see that the export is incomplete.
      signal.throwIfAborted();
      const pause = createPause({ signal, isPatient: true });
      const { items, next } = await readList(sourceFor(caller), {
        ...pageOf(EXPORT_BATCH, after),
        where,
        sort: OLDEST_FIRST,
      });
      await pause();
      yield* items;
      if (!next) return;
      after = next;
    }
  }

  return {
    /** Entries inside the caller's scope. */
    list: (caller: Caller, request: ListRequest): Promise<ListAnswer<AuditEntry>> =>
      readList(sourceFor(caller), request),

    /** Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<AuditEntry> {
      const entry = await sourceFor(caller).visible().findById(id);
      if (!entry) throw notFound('audit entry', id);
      return entry;
    },

    /**
     * Every matching entry, oldest first, read in batches until `signal` aborts. Error: `permission_denied`
     * if the caller holds the permission at no tenant.
     */
    async stream(
      caller: Caller,
      where: readonly ListCondition[],
      signal: AbortSignal,
    ): Promise<AsyncGenerator<AuditEntry>> {
      await access.requireAtSomeTenant(caller, 'audit:read');
      return readAll(caller, where, signal);
    },
  };
}
