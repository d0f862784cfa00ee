import type { Model } from 'objection';
import type { Knex } from './knex.ts';
import { jsonArrays } from './jsonArrays.ts';
import { prepared } from './prepared.ts';
import { storableJson } from './storableJson.ts';
import type { OutboxTask } from '../../domain/dispatch/tasks.ts';
import type { EventType } from '../../domain/events/events.ts';
import type { IdempotencyClaim } from '../../domain/shared/caller.ts';

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
};
/** `delayMs`: how long the relay leaves the task to the process that wrote it. */
export type OutboxRow = { id: string; task: OutboxTask; delayMs: number; at: Date };

/**
 * A change of one record, as part of a larger statement. `sql(name)` is a list of common table
 * expressions. The one called `name` returns a row if the record had the required state.
 */
export type RecordChange = {
  sql(name: string): string;
  bindings: readonly Knex.RawBinding[];
  topics: readonly string[];
  /** True: the commit succeeds even if there was nothing to change. */
  optional?: true;
};

/** Everything that one commit writes. */
export type UnitOfWork = {
  changes: RecordChange[];
  inserts: Model[];
  audit: AuditRow[];
  events: EventRow[];
  outbox: OutboxRow[];
  /** True: jobs wait for a slot since this commit. */
  awaitsSlot?: boolean;
  /** Called after the commit. */
  reports: (() => void)[];
  /** The record that the commit creates for each request with an `Idempotency-Key`. */
  results: Map<IdempotencyClaim, string>;
  /** Topics to notify on `CHANGES_CHANNEL` when the transaction commits. */
  topics: Set<string>;
};

/** PostgreSQL channel for notifications about changed records. */
const CHANGES_CHANNEL = 'holdfast_changes';
export const LISTEN_TO_CHANGES = `LISTEN ${CHANGES_CHANNEL}`;

/** Topic for outbox tasks that are not dispatched inline. It wakes the relays. */
export const OUTBOX_TOPIC = 'outbox';

/** SQLSTATE that the function `must_change` of the schema raises for a change without effect. */
export const NO_CHANGE = 'HF001';

export const emptyUnitOfWork = (): UnitOfWork => ({
  changes: [],
  inserts: [],
  audit: [],
  events: [],
  outbox: [],
  reports: [],
  results: new Map(),
  topics: new Set(),
});

/** Larger statements are not prepared: the same one rarely occurs twice. */
const MAX_PREPARED_BINDINGS = 200;

/**
 * From this number of rows, an insert sends one JSON text: the statement is then the same for any
 * number, so that it is prepared, and bindings cost more than the rows.
 */
const MANY_ROWS = 4;

/** The value of a column. Objects are values of `json` columns. */
type ColumnValue = string | number | boolean | Date | object | null;

const bindingOf = (value: ColumnValue): Knex.RawBinding =>
  typeof value === 'object' && value !== null && !(value instanceof Date)
    ? JSON.stringify(value)
    : value;

/** SQL of a SELECT column that notifies about `topics`. */
export const notifySql = (
  topics: Iterable<string>,
): { sql: string; bindings: Knex.RawBinding[] } => ({
  sql: '(SELECT count(pg_notify(?, topic)) FROM unnest(?::text[]) AS topic)',
  bindings: [CHANGES_CHANNEL, [...topics]],
});

/** Notifies about topics without a change. */
export async function notifyTopics(db: Knex, topics: readonly string[]): Promise<void> {
  const { sql, bindings } = notifySql(topics);
  await prepared(db, `SELECT ${sql}`, bindings);
}

/** SQL: inserts rows that come as one JSON text. */
const insertionOf = (table: string, columns: string): string =>
  `INSERT INTO ${table} (${columns}) SELECT ${columns} FROM json_populate_recordset(NULL::${table}, ?::json)`;

/** A row as an object of its columns. */
const namedValues = (columns: string, row: readonly ColumnValue[]): object =>
  Object.fromEntries(columns.split(', ').map((name, i) => [name, row[i]]));

/** Collects the common table expressions and bindings of one statement. */
function createStatement() {
  const ctes: string[] = [];
  const bindings: Knex.RawBinding[] = [];
  function insertText(table: string, columns: string, text: string) {
    ctes.push(`i${ctes.length} AS (${insertionOf(table, columns)})`);
    bindings.push(text);
  }
  return {
    ctes,
    bindings,
    insertText,
    insert(table: string, columns: string, rows: readonly (readonly ColumnValue[])[]) {
      if (rows.length === 0) return;
      if (rows.length >= MANY_ROWS) {
        insertText(table, columns, storableJson(rows.map((row) => namedValues(columns, row))));
        return;
      }
      const tuples = rows.map((row) => `(${row.map(() => '?').join(', ')})`).join(', ');
      ctes.push(`i${ctes.length} AS (INSERT INTO ${table} (${columns}) VALUES ${tuples})`);
      bindings.push(...rows.flat().map(bindingOf));
    },
  };
}

/**
 * Writes a unit of work in one statement, so in one round trip. Without a transaction around it,
 * the statement is a transaction itself. With `isLast`, COMMIT may be sent with it: the transaction has
 * to be committed next; audit entries that are large together are written before. Error: SQLSTATE
 * `NO_CHANGE`, with nothing written.
 */
export async function writeUnitOfWork(
  db: Knex,
  unitOfWork: UnitOfWork,
  { isLast = false }: { isLast?: boolean } = {},
): Promise<void> {
  const sql = createStatement();
  const checks = unitOfWork.changes.flatMap((change, i) => {
    sql.ctes.push(change.sql(`c${i}`));
    sql.bindings.push(...change.bindings);
    return change.optional ? [] : [`must_change((SELECT count(*) FROM c${i}))`];
  });
  for (const record of unitOfWork.inserts) {
    const row = record.$toDatabaseJson() as Record<string, ColumnValue>;
    const { tableName } = record.constructor as typeof Model;
    sql.insert(tableName, Object.keys(row).join(', '), [Object.values(row)]);
  }
  await insertAudit(db, sql, unitOfWork.audit, isLast);
  insertLogRows(sql, unitOfWork);
  const notify = notifySql([
    ...unitOfWork.topics,
    ...unitOfWork.changes.flatMap((change) => change.topics),
  ]);
  const ctes = sql.ctes.length > 0 ? `WITH ${sql.ctes.join(', ')} ` : '';
  const text = `${ctes}SELECT ${[...checks, notify.sql].join(', ')}`;
  const bindings = [...sql.bindings, ...notify.bindings];
  await (bindings.length <= MAX_PREPARED_BINDINGS
    ? prepared(db, text, bindings, { isLast })
    : db.raw(text, bindings));
}

/**
 * Makes changes in one statement, which is a transaction without one around it. Returns false, with
 * nothing written, if one of the records was not in the state that its change requires.
 */
export async function writeChanges(db: Knex, changes: RecordChange[]): Promise<boolean> {
  try {
    await writeUnitOfWork(db, { ...emptyUnitOfWork(), changes });
    return true;
  } catch (error) {
    if ((error as { code?: unknown }).code === NO_CHANGE) return false;
    throw error;
  }
}

const AUDIT_COLUMNS =
  'id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, before, after, request_id, address, at';

const auditValues = (a: AuditRow): ColumnValue[] => [
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
];

/**
 * Adds the audit entries to a statement. One change can have thousands, each with its record before and
 * after it: what is too large for one text is inserted right away `inTransaction`.
 */
async function insertAudit(
  db: Knex,
  sql: ReturnType<typeof createStatement>,
  audit: readonly AuditRow[],
  inTransaction: boolean,
): Promise<void> {
  if (audit.length < MANY_ROWS)
    return void sql.insert('audit_entries', AUDIT_COLUMNS, audit.map(auditValues));
  const rowOf = (each: AuditRow) => namedValues(AUDIT_COLUMNS, auditValues(each));
  for (const { text, isFull } of jsonArrays(audit, rowOf)) {
    if (isFull && inTransaction)
      await prepared(db, insertionOf('audit_entries', AUDIT_COLUMNS), [text]);
    else sql.insertText('audit_entries', AUDIT_COLUMNS, text);
  }
}

function insertLogRows(
  sql: ReturnType<typeof createStatement>,
  { events, outbox }: UnitOfWork,
): void {
  // Not when the use case began: who asks for the events since a time must find those that came into being later.
  const writtenAt = new Date();
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
      writtenAt,
    ]),
  );
  if (outbox.length > 0) insertOutbox(sql, outbox);
}

/** By the clock of the database, as the relay of any process decides what is due. */
function insertOutbox(
  { ctes, bindings }: ReturnType<typeof createStatement>,
  outbox: readonly OutboxRow[],
): void {
  ctes.push(`i${ctes.length} AS (
    INSERT INTO outbox (id, workflow_id, task, available_at, created_at)
    SELECT o.id, o.workflow_id, o.task::json, clock_timestamp() + o.delay_ms * interval '1 ms', o.created_at
    FROM unnest(?::text[], ?::text[], ?::text[], ?::double precision[], ?::timestamptz[])
      AS o (id, workflow_id, task, delay_ms, created_at))`);
  bindings.push(
    outbox.map(({ id }) => id),
    outbox.map(({ task }) => task.workflowId),
    outbox.map(({ task }) => JSON.stringify(task)),
    outbox.map(({ delayMs }) => delayMs),
    outbox.map(({ at }) => at),
  );
}
