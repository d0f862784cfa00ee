import type { QueryBuilder } from 'objection';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { HeldSubject, HoldStatus } from '../../domain/retention/holds.ts';
import { lockKeySql } from '../core/advisoryLocks.ts';
import type { Knex } from '../core/knex.ts';
import { anyOf } from '../core/sql.ts';
import { tableOf } from '../inventory/tables.ts';
import type { LegalHold } from '../models/LegalHold.ts';

/** A hold, and the tenant where it may be read. */
export type HoldRef = { id: string; tenantId: string };

/** SQL of each status, as `holdStatusAt` computes it. */
const STATUS_SQL: Readonly<Record<HoldStatus, string>> = {
  released: 'released_at IS NOT NULL',
  planned: 'released_at IS NULL AND starts_at > now()',
  ended: 'released_at IS NULL AND (starts_at IS NULL OR starts_at <= now()) AND ends_at <= now()',
  in_force:
    'released_at IS NULL AND (starts_at IS NULL OR starts_at <= now()) AND (ends_at IS NULL OR ends_at > now())',
};

/** Holds that have one of these statuses. */
export const whereHoldStatus = (
  query: QueryBuilder<LegalHold>,
  statuses: readonly HoldStatus[],
): void =>
  void query.whereRaw(anyOf(statuses.map((each) => ({ sql: STATUS_SQL[each], bindings: [] }))).sql);

/** SQL: the hold `h` names this record; both are SQL expressions or literals. */
const names = (type: string, id: string): string =>
  `(h.subject_type = '${type}' AND h.subject_id = ${id})`;

/** SQL: the hold `h` names the user who has done this. An actor at another tenant is another person. */
const namesActor = (actor: string, tenant: string): string =>
  `(${names('user', actor)} AND h.tenant_id IN (${tenant}, '${PLATFORM}'))`;

const namesJob = (job: string): string =>
  `(${names('job', `${job}.id`)} OR ${namesActor(`${job}.created_by`, `${job}.tenant_id`)}
    OR (${job}.source_id = h.subject_id AND h.subject_type =
      CASE ${job}.source_kind WHEN 'approval' THEN 'workflow' ELSE ${job}.source_kind END))`;

/** SQL: the hold `h` names what an event or an audit entry is about. Users are those of the tenant. */
const namesSubject = (t: string): string =>
  `(h.subject_type = ${t}.subject_type AND h.subject_id = ${t}.subject_id
    AND (h.subject_type <> 'user' OR h.tenant_id IN (${t}.tenant_id, '${PLATFORM}')))`;

const namesEvent = (event: string): string =>
  `(${names('event', `${event}.id`)} OR ${namesActor(`${event}.actor_id`, `${event}.tenant_id`)}
    OR ${namesSubject(event)})`;

const inForceOver = (tenant: string, subject: string): string =>
  `EXISTS (SELECT FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)
    AND ((h.subject_id IS NULL AND h.tenant_id IN (${tenant}, '${PLATFORM}')) OR ${subject}))`;

/** SQL: a hold is in force over a row, by the kind of history; `t` is its alias. */
const HELD: Readonly<Record<HistoryKind, (t: string) => string>> = {
  audit_entries: (t) =>
    inForceOver(
      `${t}.tenant_id`,
      `(${namesSubject(t)} OR ${namesActor(`${t}.actor_id`, `${t}.tenant_id`)})`,
    ),
  jobs: (t) => inForceOver(`${t}.tenant_id`, namesJob(t)),
  job_logs: (t) =>
    `EXISTS (SELECT FROM jobs AS held_job WHERE held_job.id = ${t}.job_id AND ${HELD.jobs('held_job')})`,
  schedule_runs: (t) => inForceOver(`${t}.tenant_id`, names('schedule', `${t}.schedule_id`)),
  events: (t) => inForceOver(`${t}.tenant_id`, namesEvent(t)),
  deliveries: (t) =>
    `(${inForceOver(`${t}.tenant_id`, names('webhook', `${t}.webhook_id`))}
      OR EXISTS (SELECT FROM events AS held_event
        WHERE held_event.id = ${t}.event_id AND ${HELD.events('held_event')}))`,
  imports: (t) =>
    `(${inForceOver(`${t}.tenant_id`, namesActor(`${t}.created_by`, `${t}.tenant_id`))}
      OR EXISTS (SELECT FROM jobs AS held_job
        WHERE held_job.id = ${t}.job_id AND ${HELD.jobs('held_job')}))`,
  import_rows: (t) =>
    `EXISTS (SELECT FROM imports AS held_import
      WHERE held_import.id = ${t}.import_id AND ${HELD.imports('held_import')})`,
};

/** The kinds of history that expire, by table. */
export type HistoryKind =
  | 'audit_entries'
  | 'jobs'
  | 'job_logs'
  | 'schedule_runs'
  | 'events'
  | 'deliveries'
  | 'imports'
  | 'import_rows';

/**
 * SQL condition for rows that no legal hold keeps; `alias` is the alias of the table. It is evaluated
 * when the statement starts: `shareHoldLock` must be called before.
 */
export const notHeld = (kind: HistoryKind, alias: string): string => `NOT ${HELD[kind](alias)}`;

/**
 * Until the transaction ends, no hold is created for these tenants: what it deletes was not held. Waits
 * for holds that are just being created.
 */
export const shareHoldLock = async (trx: Knex, tenantIds: readonly string[]): Promise<void> =>
  void (await trx.raw('SELECT share_hold_lock(?::text[])', [[...tenantIds]]));

/**
 * Waits for transactions that delete records of some tenants, and lets later ones wait until the commit.
 * The locks are taken in the order of `share_hold_lock` in the schema, which is that of the database.
 */
export const lockToHold = async (trx: Knex, tenantIds: readonly string[]): Promise<void> =>
  void (await trx.raw(
    `SELECT pg_advisory_xact_lock(${lockKeySql('legalHold', 't.id')})
     FROM (SELECT DISTINCT id FROM unnest(?::text[]) AS d (id) ORDER BY id) AS t`,
    [[...tenantIds]],
  ));

/** A table of records that holds keep: the kind of the record, and SQL of its tenant; `t` is its alias. */
export type HeldTable = { type: string; table: string; tenantOf(t: string): string };

const inventoryTable = (name: ResourceName): HeldTable => {
  const resource = RESOURCES[name];
  return {
    type: resource.kind,
    table: tableOf(resource),
    tenantOf: (t) =>
      resource.scopeKind === 'isTenant'
        ? `${t}.id`
        : resource.scopeKind === 'catalogue'
          ? `'${PLATFORM}'`
          : `${t}.tenant_id`,
  };
};

const ownTable = (type: string, table: string): HeldTable => ({
  type,
  table,
  tenantOf: (t) => `${t}.tenant_id`,
});

/** Tables whose records can be deleted, or changed by a restore. */
export const HELD_TABLES: readonly HeldTable[] = [
  ...(Object.keys(RESOURCES) as ResourceName[]).map(inventoryTable),
  ownTable('webhook', 'webhooks'),
  ownTable('schedule', 'schedules'),
];

/** SQL: a hold is in force over the record `t` of a table. */
export const heldRecord = ({ type, tenantOf }: HeldTable, t: string): string =>
  inForceOver(tenantOf(t), names(type, `${t}.id`));

/** All tables with records that a hold can name; a user can have acted without an account. */
const SUBJECT_TABLES: readonly HeldTable[] = [
  ...HELD_TABLES,
  ownTable('job', 'jobs'),
  ownTable('event', 'events'),
  ownTable('workflow', 'approvals'),
  ownTable('backup', 'backups'),
];

/** True when a tenant has, or has had, the record that a hold names. */
export async function hasSubject(
  db: Knex,
  tenantId: string,
  { type, id }: HeldSubject,
): Promise<boolean> {
  if (type === 'user' || (await tenantsOfSubject(db, { type, id })).includes(tenantId)) return true;
  const { rows } = await db.raw<{ rows: object[] }>(
    `SELECT FROM audit_entries AS a
     WHERE a.subject_type = ? AND a.subject_id = ? AND a.tenant_id = ? LIMIT 1`,
    [type, id, tenantId],
  );
  return rows.length > 0;
}

/** The tenants whose record it is now: a record that has moved can be held where it was before. */
export async function tenantsOfSubject(db: Knex, { type, id }: HeldSubject): Promise<string[]> {
  const tables = SUBJECT_TABLES.filter((each) => each.type === type);
  if (tables.length === 0) return [];
  const parts = tables.map(
    ({ table, tenantOf }) =>
      `SELECT ${tenantOf('t')} AS tenant FROM ${table} AS t WHERE t.id = :id`,
  );
  const { rows } = await db.raw<{ rows: { tenant: string }[] }>(parts.join(' UNION '), { id });
  return rows.map(({ tenant }) => tenant);
}

/** SQL: the hold in force over a record of a type, by its id and tenant; on whole tenants first. */
export const holdOver = (t: string, type: string, tenant: string): string =>
  `SELECT h.id, h.tenant_id FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)
     AND (h.subject_id IS NULL AND h.tenant_id IN (${tenant}, '${PLATFORM}')
       OR ${names(type, `${t}.id`)})
   ORDER BY h.subject_id NULLS FIRST, h.id LIMIT 1`;

/** The table of an inventory resource, as holds see it. */
export const heldTableOf = (name: ResourceName): HeldTable => inventoryTable(name);

/** The hold that keeps a record, if one is in force. */
export async function findHold(
  db: Knex,
  tenantId: string,
  { type, id }: HeldSubject,
): Promise<HoldRef | undefined> {
  const { rows } = await db.raw<{ rows: HoldRef[] }>(
    `SELECT h.id, h.tenant_id AS "tenantId"
     FROM (VALUES (:id::text, :type::text, :tenantId::text)) AS r (id, type, tenant_id)
       CROSS JOIN LATERAL (${holdOver('r', type, 'r.tenant_id')}) AS h`,
    { type, id, tenantId },
  );
  return rows[0];
}

/** The hold because of which a backup of a tenant is kept: any over what the backup can contain. */
export async function findHoldOnBackups(db: Knex, tenantId: string): Promise<HoldRef | undefined> {
  const { rows } = await db.raw<{ rows: HoldRef[] }>(
    `SELECT h.id, h.tenant_id AS "tenantId" FROM legal_holds AS h
     WHERE h.released_at IS NULL AND is_in_force(h)
       AND (:tenantId = '${PLATFORM}' OR h.tenant_id IN (:tenantId, '${PLATFORM}'))
     ORDER BY h.id LIMIT 1`,
    { tenantId },
  );
  return rows[0];
}

/** Those of these tenants over whose backups a legal hold is in force. */
export async function findHeldTenants(
  db: Knex,
  tenantIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await db.raw<{ rows: { id: string }[] }>(
    `SELECT t.id FROM unnest(?::text[]) AS t (id)
     WHERE EXISTS (SELECT FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)
       AND (t.id = '${PLATFORM}' OR h.tenant_id IN (t.id, '${PLATFORM}')))`,
    [[...tenantIds]],
  );
  return new Set(rows.map(({ id }) => id));
}

/** True while any legal hold is in force: whole months of log lines are dropped only without one. */
export async function hasHolds(db: Knex): Promise<boolean> {
  const { rows } = await db.raw<{ rows: { found: boolean }[] }>(
    'SELECT EXISTS (SELECT FROM legal_holds AS h WHERE h.released_at IS NULL AND is_in_force(h)) AS found',
  );
  return rows[0]?.found === true;
}
