import type { Knex } from './knex.ts';
import type { EventType } from '../domain/events.ts';

export type Subject = { type: string; id: string };

export type AuditOutcome = 'done' | 'denied' | 'failed';

export type AuditRow = {
  id: string; tenantId: string; actorId: string; via: string; action: string; outcome: AuditOutcome;
  subject: Subject; before: object | null; after: object | null; requestId: string; address: string | null; at: Date;
};
export type EventRow = {
  id: string; type: EventType; tenantId: string; subject: Subject; actorId: string; data: object; at: Date;
};
/** A call that is owed; what it says is the business of `temporal/`. */
export type OwedTask = { kind: string; workflowId: string };
export type OutboxRow = { id: string; task: OwedTask; availableAt: Date; at: Date };

/** What a commit writes beside its records. */
export type Trail = {
  audit: AuditRow[];
  events: EventRow[];
  outbox: OutboxRow[];
  /** Topics to notify on `CHANGES_CHANNEL` when the transaction commits. */
  topics: Set<string>;
};

/** PostgreSQL channel on which processes tell each other that a record changed. */
export const CHANGES_CHANNEL = 'holdfast_changes';

/** Topic on which relays hear of rows that no quick way will take. */
export const OUTBOX_TOPIC = 'outbox';

export const emptyTrail = (): Trail => ({ audit: [], events: [], outbox: [], topics: new Set() });

const json = (value: object | null) => (value === null ? null : JSON.stringify(value));

/** Collects one statement's parts and bindings. */
const statement = () => {
  const parts: string[] = [];
  const bindings: Knex.RawBinding[] = [];
  return {
    parts,
    bindings,
    insert(table: string, columns: string, rows: Knex.RawBinding[][]) {
      if (rows.length === 0) return;
      const tuples = rows.map((row) => `(${row.map(() => '?').join(', ')})`).join(', ');
      parts.push(`INSERT INTO ${table} (${columns}) VALUES ${tuples}`);
      bindings.push(...rows.flat());
    },
  };
};

/** Writes the trail in one statement: a commit costs one round trip for it, however much it holds. */
export async function writeTrail(trx: Knex.Transaction, trail: Trail): Promise<void> {
  const sql = statement();
  sql.insert(
    'audit_entries',
    'id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, before, after, request_id, address, at',
    trail.audit.map((a) => [
      a.id, a.tenantId, a.actorId, a.via, a.action, a.outcome, a.subject.type, a.subject.id,
      json(a.before), json(a.after), a.requestId, a.address, a.at,
    ]),
  );
  sql.insert(
    'events',
    'id, type, tenant_id, subject_type, subject_id, actor_id, data, created_at',
    trail.events.map((e) => [e.id, e.type, e.tenantId, e.subject.type, e.subject.id, e.actorId, json(e.data), e.at]),
  );
  sql.insert(
    'outbox',
    'id, workflow_id, task, available_at, created_at',
    trail.outbox.map((o) => [o.id, o.task.workflowId, json(o.task), o.availableAt, o.at]),
  );
  // Last, because PostgreSQL skips a SELECT in WITH that nothing refers to.
  if (trail.topics.size > 0) {
    sql.parts.push('SELECT pg_notify(?, topic) FROM unnest(?::text[]) AS topic');
    sql.bindings.push(CHANGES_CHANNEL, [...trail.topics]);
  }
  const last = sql.parts.pop();
  if (last === undefined) return;
  const before = sql.parts.map((part, i) => `t${i} AS (${part})`);
  await trx.raw(before.length > 0 ? `WITH ${before.join(', ')} ${last}` : last, sql.bindings);
}
