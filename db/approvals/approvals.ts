import { claimChosen } from '../core/chosenRows.ts';
import type { Knex } from '../core/knex.ts';
import { columnOf, conditionSql, createdAtSql, sqlTypeOf } from '../core/listConditions.ts';
import { allOf, anyOf, type Sql } from '../core/sql.ts';
import { readCounts } from '../core/lists.ts';
import {
  Approval,
  ApprovalAssignee,
  ApprovalComment,
  ApprovalDecision,
} from '../models/Approval.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import type { RecordChange } from '../core/unitOfWork.ts';
import {
  DECISIONS,
  MAX_COUNTED_REQUESTS,
  type ApprovalStatus,
  type Execution,
} from '../../domain/approvals/approvals.ts';
import type { CommentData, DecisionData } from '../../domain/approvals/records.ts';
import {
  MAX_COUNTED,
  type ListAnswer,
  type ListCondition,
  type ListKey,
  type ListRequest,
} from '../../domain/shared/lists.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { PlanDifference } from '../../domain/inventory/frozenPlan.ts';

/** Topic of `Notifications` on which changes of a request are announced. */
export const approvalTopic = (id: string): string => `approval:${id}`;

export type Assignees = { userIds: string[]; roleIds: string[] };

const SCOPE_COLUMNS = {
  tenant: 'a.tenant_id',
  site: 'a.scope_site_id',
  device: 'a.scope_device_id',
};

/** A request is found where it belongs now, not where it was asked for. */
const columnOfField = (field: string): string =>
  field === 'siteId' || field === 'deviceId'
    ? `a.scope_${columnOf(field)}`
    : `a.${columnOf(field)}`;

/** All columns but the content (`payload`, `mutations`, `plan`), which may be a megabyte. */
export const APPROVAL_SUMMARY_COLUMNS = [
  'id',
  'tenant_id',
  'site_id',
  'device_id',
  'scope_site_id',
  'scope_device_id',
  'type',
  'title',
  'status',
  'execution',
  'required_approvals',
  'approval_count',
  'job_type',
  'job_target',
  'type_digest',
  'content_hash',
  'expires_at',
  'reminders',
  'restarts',
  'execute_at',
  'job_id',
  'error',
  'created_by',
  'authority',
  'requester_names',
  'closed_by',
  'closed_at',
  'executed_at',
  'created_at',
  'updated_at',
  'version',
] as const;

/** The open requests at these devices or sites, without their plans. Each of both conditions has an index. */
export const findOpenAt = async (
  trx: Knex,
  { deviceIds, siteIds }: { deviceIds: readonly string[]; siteIds: readonly string[] },
): Promise<Approval[]> =>
  Approval.query(trx)
    .whereRaw('(device_id = ANY (?::text[]) OR scope_site_id = ANY (?::text[]))', [
      deviceIds,
      siteIds,
    ])
    .where((is) => is.where({ status: 'pending' }).orWhereIn('execution', ['queued', 'running']))
    .select(...APPROVAL_SUMMARY_COLUMNS)
    .orderBy('id');

/** Reads a request and locks its row until the transaction ends. Decisions are serialized by it. */
export const lockApproval = async (trx: Knex, id: string): Promise<Approval | undefined> =>
  Approval.query(trx).findById(id).forUpdate();

/** The state that a request must be in for a change, by column. */
export type ApprovalGuard = {
  status: ApprovalStatus;
  execution?: Execution;
  reminders?: number;
  restarts?: number;
};

/**
 * An update of a request that applies only in the state that `guard` names; otherwise the commit
 * fails with `NoChange`. Keys of `values` are column names. `newVersion: false` keeps the version:
 * a reminder does not change what readers see.
 */
export function approvalChange(
  id: string,
  guard: ApprovalGuard,
  values: Readonly<Record<string, Knex.RawBinding>>,
  { newVersion = true } = {},
): RecordChange {
  const sets = [
    ...(newVersion ? ['version = version + 1'] : []),
    ...Object.keys(values).map((column) => `${column} = ?`),
  ];
  const conditions = ['id', ...Object.keys(guard)].map((column) => `${column} = ?`);
  return {
    topics: [approvalTopic(id)],
    sql: (name) =>
      `${name} AS (UPDATE approvals SET ${sets.join(', ')} WHERE ${conditions.join(' AND ')} RETURNING 1)`,
    bindings: [...Object.values(values), id, ...Object.values(guard)],
  };
}

/** The plan of a request that is executed; null if the request has no change. */
export const findApprovedPlan = async (
  db: Knex,
  id: string,
): Promise<Pick<Approval, 'id' | 'plan' | 'tenantId' | 'siteId' | 'deviceId'> | undefined> =>
  Approval.query(db).findById(id).select('id', 'plan', 'tenant_id', 'site_id', 'device_id');

/** Stores how the plan at execution differs from the approved one, while the job runs. */
export const storeDifferenceOf = (
  db: Knex,
  id: string,
  difference: PlanDifference,
): Promise<number> =>
  db('approvals')
    .where({ id, execution: 'running' })
    .update({ difference: JSON.stringify(difference) });

/**
 * Loads the assignees of requests. Returns a function from the id of a request to its assignees.
 */
export async function assigneesOf(
  db: Knex,
  ids: readonly string[],
): Promise<(id: string) => Assignees> {
  const rows =
    ids.length === 0
      ? []
      : await ApprovalAssignee.query(db)
          .whereIn('approval_id', [...ids])
          .orderBy(['approval_id', 'kind', 'assignee_id']);
  const byRequest = Map.groupBy(rows, ({ approvalId }) => approvalId);
  return (id) => {
    const assignees = byRequest.get(id) ?? [];
    const ofKind = (kind: 'user' | 'role') =>
      assignees.filter((row) => row.kind === kind).map(({ assigneeId }) => assigneeId);
    return { userIds: ofKind('user'), roleIds: ofKind('role') };
  };
}

/** The decisions on a request, earliest first, without a cancellation. */
export const decisionsOf = async (db: Knex, id: string): Promise<DecisionData[]> =>
  (await ApprovalDecision.query(db)
    .where({ approval_id: id })
    .whereIn('outcome', [...DECISIONS])
    .orderBy(['decided_at', 'id'])) as DecisionData[];

/** The row of `approval_decisions` with this id, if it belongs to the request. */
export const findDecision = async (
  db: Knex,
  approvalId: string,
  id: string,
): Promise<ApprovalDecision | undefined> =>
  ApprovalDecision.query(db).findOne({ id, approval_id: approvalId });

/** The latest approval of a request: the one that a lost signal would have carried. */
export const latestApproval = async (
  db: Knex,
  approvalId: string,
): Promise<ApprovalDecision | undefined> =>
  ApprovalDecision.query(db)
    .where({ approval_id: approvalId, outcome: 'approved' })
    .orderBy([
      { column: 'decided_at', order: 'desc' },
      { column: 'id', order: 'desc' },
    ])
    .first();

/**
 * The decisions on these requests by a person whom one of the recorded `names` means, without
 * cancellations.
 */
export const decisionsBy = async (
  db: Knex,
  ids: readonly string[],
  names: readonly string[],
): Promise<DecisionData[]> =>
  ids.length === 0
    ? []
    : ((await ApprovalDecision.query(db)
        .whereIn('approval_id', [...ids])
        .whereIn('outcome', [...DECISIONS])
        .whereRaw('jsonb_exists_any(actor_names, ?::text[])', [[...names]])) as DecisionData[]);

/** The number of the last comment on a request; 0 without comments. */
export async function lastCommentNumber(db: Knex, id: string): Promise<number> {
  const last = await ApprovalComment.query(db)
    .where({ approval_id: id })
    .max('number as number')
    .first();
  return last?.number ?? 0;
}

/** The comments on a request, earliest first. */
export const commentsOf = async (db: Knex, id: string): Promise<CommentData[]> =>
  ApprovalComment.query(db).where({ approval_id: id }).orderBy('number');

/**
 * The reader of a list, as far as the list depends on it. `roles` are the held roles, each with the
 * scope where it is held. A request is visible if it is in the scope `read`, was created by the
 * reader, or is in the scope `approve` and assigned to the reader or to a held role.
 */
export type ApprovalReader = {
  actorId: string;
  /** See `authorKeyOf`: requests with this key belong to the reader. */
  authorKey: string;
  /** With an API token: where the token lets its owner see the requests of the owner. */
  ownScope: Scope | undefined;
  /** The recorded names that mean the reader. */
  names: readonly string[];
  read: Scope;
  approve: Scope;
  roles: readonly (readonly [string, Scope])[];
};

export type ApprovalFilter = {
  assignedToMe?: boolean;
  requestedByMe?: boolean;
};

/** Requests of this reader. The second condition computes `storedAuthorKeyOf`. */
const isRequestedBy = ({ actorId, authorKey }: ApprovalReader): Sql => ({
  sql: `a.created_by = ? AND coalesce(a.authority->>'userId',
    concat(a.authority#>>'{grants,0,tenantId}', '/', a.authority->>'actorId')) = ?`,
  bindings: [actorId, authorKey],
});

/** Selects rows of `approvals AS a` that are visible for one reason. */
type VisibilityBranch = { from: string; where: Sql };

const ASSIGNED = 'approval_assignees AS s JOIN approvals AS a ON a.id = s.approval_id';

function visibilityBranches(reader: ApprovalReader, assignedToMe: boolean): VisibilityBranch[] {
  const { actorId, ownScope, names, read, approve, roles } = reader;
  // Requesters never decide on their own requests.
  const notRequester: Sql = {
    sql: 'NOT jsonb_exists_any(a.requester_names, ?::text[])',
    bindings: [[...names]],
  };
  const isInApproveScope = scopeCondition(approve, SCOPE_COLUMNS);
  const assignedTo = (kind: string, id: string, scope: readonly Sql[]): VisibilityBranch => ({
    from: ASSIGNED,
    where: allOf([
      { sql: 's.kind = ? AND s.assignee_id = ?', bindings: [kind, id] },
      isInApproveScope,
      notRequester,
      ...scope,
    ]),
  });
  const undecided: Sql = {
    sql: `NOT (a.status = 'pending' AND EXISTS (
      SELECT FROM approval_decisions AS d
      WHERE d.approval_id = a.id AND jsonb_exists_any(d.actor_names, ?::text[])))`,
    bindings: [[...names]],
  };
  const assigned = [
    assignedTo('user', actorId, []),
    ...roles.map(([roleId, scope]) =>
      assignedTo('role', roleId, [scopeCondition(scope, SCOPE_COLUMNS)]),
    ),
  ];
  const readable: VisibilityBranch = {
    from: 'approvals AS a',
    where: scopeCondition(read, SCOPE_COLUMNS),
  };
  const requested: VisibilityBranch = {
    from: 'approvals AS a',
    where: allOf([
      isRequestedBy(reader),
      ...(ownScope ? [scopeCondition(ownScope, SCOPE_COLUMNS)] : []),
    ]),
  };
  if (assignedToMe)
    return assigned.map(({ from, where }) => ({ from, where: allOf([where, undecided]) }));
  return read.kind === 'everywhere' ? [readable] : [readable, requested, ...assigned];
}

/** The reasons for which rows of `approvals AS a` are visible, each with its tables. */
export const visibleReasons = (reader: ApprovalReader): { from: string; where: Sql }[] =>
  visibilityBranches(reader, false);

/** Most milliseconds by which the time in an id differs from that of the request. */
const CREATED_AT = { toleranceMs: 60_000, column: 'a.created_at', id: 'a.id' };

const filterConditions = (
  { requestedByMe, assignedToMe }: ApprovalFilter,
  where: readonly ListCondition[],
  reader: ApprovalReader,
): Sql[] => [
  ...where.map(
    (condition) =>
      (condition.field === 'createdAt' ? createdAtSql('apr', condition, CREATED_AT) : undefined) ??
      conditionSql(columnOfField(condition.field), condition),
  ),
  ...(requestedByMe === true ? [isRequestedBy(reader)] : []),
  ...(requestedByMe === false ? [isNot(isRequestedBy(reader))] : []),
  ...(assignedToMe === false ? [isNot(isAssignedTo(reader))] : []),
];

/** False for null, too. */
const isNot = ({ sql, bindings }: Sql): Sql => ({ sql: `(${sql}) IS NOT TRUE`, bindings });

/** Requests that this reader is to decide on. */
function isAssignedTo(reader: ApprovalReader): Sql {
  return anyOf(
    visibilityBranches(reader, true).map(({ where }) => ({
      // One row of each request that is considered, and not all that were ever assigned.
      sql: `EXISTS (SELECT FROM approval_assignees AS s WHERE s.approval_id = a.id AND ${where.sql})`,
      bindings: where.bindings,
    })),
  );
}

/** The first records by a column and then by id, or by id only. */
type Order = { column?: string; direction: 'ASC' | 'DESC'; limit: number };

const orderSql = ({ column, direction }: Order, id: string): string =>
  [...(column === undefined ? [] : [column]), id].map((each) => `${each} ${direction}`).join(', ');

/** The visible requests, or the first of them in an order; each reason reads its own index. */
function selectVisible(
  reader: ApprovalReader,
  { assignedToMe = false }: ApprovalFilter,
  common: readonly Sql[],
  { columns, order }: { columns: string; order?: Order },
): Sql {
  const selects = visibilityBranches(reader, assignedToMe).map(({ from, where }): Sql => {
    const { sql, bindings } = allOf([where, ...common]);
    const select = `SELECT ${columns} FROM ${from} WHERE ${sql}`;
    if (!order) return { sql: select, bindings };
    return {
      sql: `(${select} ORDER BY ${orderSql(order, 'a.id')} LIMIT ?)`,
      bindings: [...bindings, order.limit],
    };
  });
  const union = `SELECT * FROM (${selects.map(({ sql }) => sql).join(' UNION ')}) AS visible`;
  const bindings = selects.flatMap((select) => select.bindings);
  if (!order) return { sql: union, bindings };
  const outer = order.column === undefined ? order : { ...order, column: 'key' };
  return {
    sql: `${union} ORDER BY ${orderSql(outer, 'id')} LIMIT ?`,
    bindings: [...bindings, order.limit],
  };
}

/** The order of a request, with what its rows select and the condition of the next page. */
function orderOf({ sort, after, limit }: ListRequest): {
  columns: string;
  follows: Sql[];
  order: Order;
} {
  const direction = sort && !sort.descending ? 'ASC' : 'DESC';
  const operator = direction === 'ASC' ? '>' : '<';
  if (!sort || sort.field === 'id')
    return {
      columns: 'a.id, NULL AS value',
      follows: after ? [{ sql: `a.id ${operator} ?`, bindings: [after.id] }] : [],
      order: { direction, limit: limit + 1 },
    };
  const column = columnOfField(sort.field);
  const key = `(${column}, a.id) ${operator} (?::${sqlTypeOf(sort.kind)}, ?)`;
  return {
    columns: `a.id, ${column} AS key, ${column}::text AS value`,
    follows: after ? [{ sql: key, bindings: [after.value, after.id] }] : [],
    order: { column, direction, limit: limit + 1 },
  };
}

/** Answers a request for a list of the visible requests. */
export async function listApprovals(
  db: Knex,
  reader: ApprovalReader,
  filter: ApprovalFilter,
  request: ListRequest,
): Promise<ListAnswer<Approval>> {
  const { where, limit } = request;
  const { columns, follows, order } = orderOf(request);
  const conditions = [...filterConditions(filter, where, reader), ...follows];
  const page = selectVisible(reader, filter, conditions, { columns, order });
  const { rows } = await db.raw<{ rows: ListKey[] }>(page.sql, page.bindings);
  const ids = rows.slice(0, limit).map(({ id }) => id);
  const found = await Approval.query(db)
    .select(...APPROVAL_SUMMARY_COLUMNS)
    .whereIn('id', ids);
  const byId = new Map(found.map((approval) => [approval.id, approval]));
  const items = ids.flatMap((id) => byId.get(id) ?? []);
  const last = rows.length > limit ? rows[limit - 1] : undefined;
  const counts = await readCounts(db, request, (asked, field) => {
    const { sql, bindings } = selectVisible(
      reader,
      filter,
      filterConditions(filter, asked, reader),
      {
        columns: field === undefined ? 'a.id' : `a.id, ${columnOfField(field)} AS value`,
        order: { direction: 'DESC', limit: MAX_COUNTED + 1 },
      },
    );
    return db.raw(sql, bindings);
  });
  return { items, next: last ? { value: last.value, id: last.id } : null, ...counts };
}

/** `exact: false`: there are more pending requests, or more of all others, than are counted. */
export type ApprovalCounts = { byStatus: Partial<Record<ApprovalStatus, number>>; exact: boolean };

/**
 * The number of visible requests per status, of at most the newest `MAX_COUNTED_REQUESTS` that are pending and as many others.
 * Conditions on the status are not applied.
 */
export async function countApprovals(
  db: Knex,
  reader: ApprovalReader,
  filter: ApprovalFilter,
  where: readonly ListCondition[],
): Promise<ApprovalCounts> {
  const others = where.filter(({ field }) => field !== 'status');
  const conditions = filterConditions(filter, others, reader);
  const groups = ["a.status = 'pending'", "a.status <> 'pending'"].map((group) =>
    selectVisible(reader, filter, [...conditions, { sql: group, bindings: [] }], {
      columns: 'a.id, a.status',
      order: { direction: 'DESC', limit: MAX_COUNTED_REQUESTS + 1 },
    }),
  );
  const numbered = groups.map(
    ({ sql }) => `SELECT status, row_number() OVER () AS n FROM (${sql}) AS newest`,
  );
  const { rows } = await db.raw<{
    rows: { status: ApprovalStatus; count: number; exact: boolean }[];
  }>(
    `SELECT status, count(*) FILTER (WHERE n <= ${MAX_COUNTED_REQUESTS})::int AS count,
       bool_and(n <= ${MAX_COUNTED_REQUESTS}) AS exact
     FROM (${numbered.join(' UNION ALL ')}) AS numbered GROUP BY status`,
    groups.flatMap(({ bindings }) => bindings),
  );
  return {
    byStatus: Object.fromEntries(rows.map(({ status, count }) => [status, count])),
    exact: rows.every(({ exact }) => exact),
  };
}

/** The newest request that waits for decisions. */
export const newestPending = async (db: Knex): Promise<Approval | undefined> =>
  Approval.query(db).select('id').where({ status: 'pending' }).orderBy('id', 'desc').first();

/** Lets the reconciler check all requests that wait for decisions, not only those that are due. */
export const checkAllPending = async (db: Knex, now: Date): Promise<void> =>
  void (await Approval.query(db)
    .patch({ checkAt: now })
    .where({ status: 'pending' })
    .where('check_at', '>', now));

/**
 * Claims up to `limit` unfinished requests whose `check_at` has passed, those that waited longest
 * first. Sets their next check: a pending request at `nextPendingCheckAt` or at its expiry,
 * whichever is earlier, any other at `nextCheckAt`.
 */
export const claimApprovalsToReconcile = (
  db: Knex,
  {
    now,
    nextPendingCheckAt,
    nextCheckAt,
    limit,
  }: { now: Date; nextPendingCheckAt: Date; nextCheckAt: Date; limit: number },
): Promise<Approval[]> =>
  claimChosen(
    Approval.query(db).patch({
      checkAt: Approval.raw(
        "CASE WHEN status = 'pending' AND expires_at > ? THEN LEAST(?, expires_at) ELSE ? END",
        [now, nextPendingCheckAt, nextCheckAt],
      ),
    }),
    Approval.query(db)
      .where('check_at', '<=', now)
      .where((open) =>
        open.where('status', 'pending').orWhereIn('execution', ['queued', 'running']),
      )
      .orderBy('check_at')
      .limit(limit),
    APPROVAL_SUMMARY_COLUMNS,
  );
