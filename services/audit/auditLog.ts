import { AuditEntry } from '../../db/models/AuditEntry.ts';
import type { Knex } from '../../db/core/knex.ts';
import { keysetPage, whereGiven, type Page, type PageRequest } from '../../db/core/keyset.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import { sameScope } from '../../domain/access/scope.ts';
import { firstIdAt } from '../../platform/ids.ts';
import type { Access } from '../access.ts';

export type AuditTrail = ReturnType<typeof createAuditTrail>;

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

/** Entries read at once for an export. */
const EXPORT_BATCH = 500;

/** An id and its entry's time are made at nearly the same time; so much may lie between. */
const ID_SLACK_MS = 60_000;

/** The audit trail as callers read it. */
export function createAuditTrail({ db, access }: { db: Knex; access: Access }) {
  function matching(caller: Caller, filter: AuditFilter) {
    const query = AuditEntry.query(db);
    whereInScope(query, access.scope(caller, 'audit:read'));
    whereGiven(query, {
      tenant_id: filter.tenantId,
      actor_id: filter.actorId,
      action: filter.action,
      outcome: filter.outcome,
      subject_type: filter.subjectType,
      subject_id: filter.subjectId,
      request_id: filter.requestId,
    });
    const bound = (time: Date, slackMs: number) =>
      firstIdAt('aud', new Date(time.getTime() + slackMs));
    if (filter.since)
      void query
        .where('at', '>=', filter.since)
        .where('id', '>=', bound(filter.since, -ID_SLACK_MS));
    if (filter.until)
      void query.where('at', '<', filter.until).where('id', '<', bound(filter.until, ID_SLACK_MS));
    return query;
  }

  return {
    /** Entries inside the caller's scope, newest first. */
    list: (caller: Caller, filter: AuditFilter, page: PageRequest): Promise<Page<AuditEntry>> =>
      keysetPage(matching(caller, filter), page),

    /** Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<AuditEntry> {
      const entry = await matching(caller, {}).findById(id);
      if (!entry) throw notFound('audit entry', id);
      return entry;
    },

    /** Throws `permission_denied` when the scope of a caller is not what it was. */
    checkUnchanged(caller: Caller, began: Caller): void {
      if (sameScope(access.scope(caller, 'audit:read'), access.scope(began, 'audit:read'))) return;
      throw new AppError('permission_denied', 'What you may see has changed.');
    },

    /** Every matching entry, oldest first, a batch at a time. */
    async *all(
      caller: Caller,
      filter: AuditFilter,
      signal: AbortSignal,
    ): AsyncGenerator<AuditEntry> {
      for (let after = ''; !signal.aborted;) {
        const batch = await matching(caller, filter)
          .where('id', '>', after)
          .orderBy('id')
          .limit(EXPORT_BATCH);
        yield* batch;
        const last = batch.at(-1);
        if (!last || batch.length < EXPORT_BATCH) return;
        after = last.id;
      }
    },
  };
}
