import type { Model } from 'objection';
import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';
import type { EventType } from '../../domain/events/events.ts';

export type Subject = { type: string; id: string };

export type AuditOutcome = 'done' | 'denied' | 'failed';

export type AuditRow = {
  id: string;
  tenantId: string;
  actorId: string;
  via: string;
  action: string;
  outcome: AuditOutcome;
  subject: Subject;
  before: object | null;
  after: object | null;
  requestId: string;
  address: string | null;
  at: Date;
};
export type EventRow = {
  id: string;
  type: EventType;
  tenantId: string;
  subject: Subject;
  actorId: string;
  data: object;
  at: Date;
};
/** A call that is owed; what it says is the business of `temporal/`. */
export type OwedTask = { kind: string; workflowId: string };
export type OutboxRow = { id: string; task: OwedTask; availableAt: Date; at: Date };

/**
 * A change of one record as part of a larger statement. `sql(name)` is a list of common table expressions, the
 * one called `name` with a row when the record was in the state that the change is for.
 */
export type Change = {
  sql(name: string): string;
  bindings: readonly Knex.RawBinding[];
  topics: readonly string[];
  /** The commit stands whether or not there was something to change. */
  optional?: true;
};

/** What a commit writes. */
export type Trail = {
  changes: Change[];
  inserts: Model[];
  audit: AuditRow[];
  events: EventRow[];
  outbox: OutboxRow[];
  /** Topics to notify on `CHANGES_CHANNEL` when the transaction commits. */
  topics: Set<string>;
};

/** PostgreSQL channel on which processes tell each other that a record changed. */
const CHANGES_CHANNEL = 'holdfast_changes';
export const LISTEN_TO_CHANGES = `LISTEN ${CHANGES_CHANNEL}`;

/** Topic on which relays hear of rows that no quick way will take. */
export const OUTBOX_TOPIC = 'outbox';

/** SQLSTATE of a change that found nothing to change; see `must_change` in the schema. */
export const NOTHING_CHANGED = 'HF001';

export const emptyTrail = (): Trail => ({
  changes: [],
  inserts: [],
  audit: [],
  events: [],
  outbox: [],
  topics: new Set(),
});

/** The statement of a commit of many records is seldom seen twice. */
const MAX_PREPARED_BINDINGS = 200;

/** From this many rows on they travel as one JSON text: so many bindings cost more than the rows themselves. */
const MANY_ROWS = 20;

/** A value of a row: an object is one of a column of the type `json`. */
type Value = string | number | boolean | Date | object | null;

const bindingOf = (value: Value): Knex.RawBinding =>
  typeof value === 'object' && value !== null && !(value instanceof Date)
    ? JSON.stringify(value)
    : value;

/** Part of a SELECT that notifies; `topics` are its bindings. */
export const notifying = (
  topics: Iterable<string>,
): { sql: string; bindings: Knex.RawBinding[] } => ({
  sql: '(SELECT count(pg_notify(?, topic)) FROM unnest(?::text[]) AS topic)',
  bindings: [CHANGES_CHANNEL, [...topics]],
});

/** Collects one statement's parts and bindings. */
function statement() {
  const parts: string[] = [];
  const bindings: Knex.RawBinding[] = [];
  return {
    parts,
    bindings,
    insert(table: string, columns: string, rows: readonly (readonly Value[])[]) {
      if (rows.length === 0) return;
      if (rows.length >= MANY_ROWS) {
        const names = columns.split(', ');
        parts.push(
          `i${parts.length} AS (INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, ?::json))`,
        );
        bindings.push(
          JSON.stringify(
            rows.map((row) => Object.fromEntries(names.map((name, i) => [name, row[i]]))),
          ),
        );
        return;
      }
      const tuples = rows.map((row) => `(${row.map(() => '?').join(', ')})`).join(', ');
      parts.push(`i${parts.length} AS (INSERT INTO ${table} (${columns}) VALUES ${tuples})`);
      bindings.push(...rows.flat().map(bindingOf));
    },
  };
}

/**
 * Writes a trail in one statement: without a transaction around it, it is one. Whatever a commit holds, it costs
 * one round trip. Errors: SQLSTATE `NOTHING_CHANGED`, with nothing written.
 */
export async function writeTrail(db: Knex, trail: Trail): Promise<void> {
  const sql = statement();
  const checks = trail.changes.flatMap((change, i) => {
    sql.parts.push(change.sql(`c${i}`));
    sql.bindings.push(...change.bindings);
    return change.optional ? [] : [`must_change((SELECT count(*) FROM c${i}))`];
  });
  for (const record of trail.inserts) {
    const row = record.$toDatabaseJson() as Record<string, Value>;
    const { tableName } = record.constructor as typeof Model;
    sql.insert(tableName, Object.keys(row).join(', '), [Object.values(row)]);
  }
  insertTrail(sql, trail);
  const notify = notifying([...trail.topics, ...trail.changes.flatMap((change) => change.topics)]);
  const text = `WITH ${sql.parts.join(', ')} SELECT ${[...checks, notify.sql].join(', ')}`;
  const bindings = [...sql.bindings, ...notify.bindings];
  await (bindings.length <= MAX_PREPARED_BINDINGS
    ? prepared(db, text, bindings)
    : db.raw(text, bindings));
}

function insertTrail(sql: ReturnType<typeof statement>, { audit, events, outbox }: Trail): void {
  sql.insert(
    'audit_entries',
    'id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, before, after, request_id, address, at',
    audit.map((a) => [
      a.id,
      a.tenantId,
      a.actorId,
      a.via,
      a.action,
      a.outcome,
      a.subject.type,
      a.subject.id,
      a.before,
      a.after,
      a.requestId,
      a.address,
      a.at,
    ]),
  );
  sql.insert(
    'events',
    'id, type, tenant_id, subject_type, subject_id, actor_id, data, created_at',
    events.map((e) => [
      e.id,
      e.type,
      e.tenantId,
      e.subject.type,
      e.subject.id,
      e.actorId,
      e.data,
      e.at,
    ]),
  );
  sql.insert(
    'outbox',
    'id, workflow_id, task, available_at, created_at',
    outbox.map((o) => [o.id, o.task.workflowId, o.task, o.availableAt, o.at]),
  );
}
