import { AuditEntry } from '../../db/models/AuditEntry.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  keysetPage,
  whereDefined,
  type KeysetPage,
  type PageRequest,
} from '../../db/core/keyset.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import { sameScope } from '../../domain/access/scope.ts';
import { minIdAt } from '../../platform/ids.ts';
import { createPause } from '../../platform/turns.ts';
import type { Access } from '../access/access.ts';

export type AuditLog = ReturnType<typeof createAuditLog>;

export type AuditFilter = {
  tenantId?: string;
  actorId?: string;
  action?: string;
  outcome?: string;
  subjectType?: string;
  subjectId?: string;
  requestId?: string;
  since?: Date;
  until?: Date;
};

/** Entries read per query by an export. */
const EXPORT_BATCH = 500;

/** Maximum difference between the time in an entry's id and its `at`. */
const ID_SLACK_MS = 60_000;

/** Read access to the audit log. */
export function createAuditLog({ db, access }: { db: Knex; access: Access }) {
  function matchingEntries(caller: Caller, filter: AuditFilter) {
    const query = AuditEntry.query(db);
    whereInScope(query, access.scope(caller, 'audit:read'));
    whereDefined(query, {
      tenant_id: filter.tenantId,
      actor_id: filter.actorId,
      action: filter.action,
      outcome: filter.outcome,
      subject_type: filter.subjectType,
      subject_id: filter.subjectId,
      request_id: filter.requestId,
    });
    const idBound = (time: Date, slackMs: number) =>
      minIdAt('aud', new Date(time.getTime() + slackMs));
    if (filter.since)
      void query
        .where('at', '>=', filter.since)
        .where('id', '>=', idBound(filter.since, -ID_SLACK_MS));
    if (filter.until)
      void query
        .where('at', '<', filter.until)
        .where('id', '<', idBound(filter.until, ID_SLACK_MS));
    return query;
  }

  return {
    /** Entries inside the caller's scope, newest first. */
    list: (
      caller: Caller,
      filter: AuditFilter,
      page: PageRequest,
    ): Promise<KeysetPage<AuditEntry>> => keysetPage(matchingEntries(caller, filter), page),

    /** Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<AuditEntry> {
      const entry = await matchingEntries(caller, {}).findById(id);
      if (!entry) throw notFound('audit entry', id);
      return entry;
    },

    /** Throws `permission_denied` if the caller's scope has changed since `initialCaller`. */
    assertSameScope(caller: Caller, initialCaller: Caller): void {
      if (sameScope(access.scope(caller, 'audit:read'), access.scope(initialCaller, 'audit:read')))
        return;
      throw new AppError('permission_denied', 'Your permission to read the audit log has changed.');
    },

    /** Every matching entry, oldest first, read in batches until `signal` aborts. */
    async *stream(
      caller: Caller,
      filter: AuditFilter,
      signal: AbortSignal,
    ): AsyncGenerator<AuditEntry> {
      for (let after = ''; ;) {
        // An error, not the end: readers must see that the export is incomplete.
        signal.throwIfAborted();
        const pause = createPause({ signal, isPatient: true });
        const batch = await matchingEntries(caller, filter)
          .where('id', '>', after)
          .orderBy('id')
          .limit(EXPORT_BATCH);
        await pause();
        yield* batch;
        const last = batch.at(-1);
        if (!last || batch.length < EXPORT_BATCH) return;
        after = last.id;
      }
    },
  };
}
