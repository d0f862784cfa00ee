import type { Knex } from '../core/knex.ts';
import { cutPage, type KeysetPage, type PageRequest } from '../core/keyset.ts';
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
  type ApprovalStatus,
  type Execution,
} from '../../domain/approvals/approvals.ts';
import type { CommentData, DecisionData } from '../../domain/approvals/records.ts';
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
  'content_hash',
  'expires_at',
  'reminders',
  'execute_at',
  'job_id',
  'error',
  'created_by',
  'requester_names',
  'closed_by',
  'closed_at',
  'executed_at',
  'created_at',
  'updated_at',
  'version',
] as const;

/** Reads a request and locks its row until the transaction ends. Decisions are serialized by it. */
export const lockApproval = async (trx: Knex, id: string): Promise<Approval | undefined> =>
  Approval.query(trx).findById(id).forUpdate();

/** The state that a request must be in for a change, by column. */
export type ApprovalGuard = { status: ApprovalStatus; execution?: Execution; reminders?: number };

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
): Promise<Pick<Approval, 'id' | 'plan'> | undefined> =>
  Approval.query(db).findById(id).select('id', 'plan');

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
  return (id) => {
    const assignees = rows.filter(({ approvalId }) => approvalId === id);
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
  /**
   * The tenant where requests created under `actorId` belong to the reader; undefined means every
   * tenant. An actor id from a gateway identifies a person within the tenant of the gateway only.
   */
  ownTenantId: string | undefined;
  /** The recorded names that mean the reader. */
  names: readonly string[];
  read: Scope;
  approve: Scope;
  roles: readonly (readonly [string, Scope])[];
};

export type ApprovalFilter = {
  status?: readonly ApprovalStatus[];
  type?: string;
  tenantId?: string;
  execution?: Execution;
  assignedToMe?: boolean;
  requestedByMe?: boolean;
};

type Condition = { sql: string; bindings: Knex.RawBinding[] };

const all = (conditions: readonly Condition[]): Condition => ({
  sql: conditions.map(({ sql }) => `(${sql})`).join(' AND ') || 'TRUE',
  bindings: conditions.flatMap(({ bindings }) => bindings),
});

const equal = (column: string, value: string | undefined): Condition[] =>
  value === undefined ? [] : [{ sql: `${column} = ?`, bindings: [value] }];

/** Selects rows of `approvals AS a` that are visible for one reason. */
type VisibilityBranch = { from: string; where: Condition };

const ASSIGNED = 'approval_assignees AS s JOIN approvals AS a ON a.id = s.approval_id';

function visibilityBranches(
  { actorId, ownTenantId, names, read, approve, roles }: ApprovalReader,
  assignedToMe: boolean,
): VisibilityBranch[] {
  // Requesters never decide on their own requests.
  const notRequester: Condition = {
    sql: 'NOT jsonb_exists_any(a.requester_names, ?::text[])',
    bindings: [[...names]],
  };
  const isInApproveScope = scopeCondition(approve, SCOPE_COLUMNS);
  const assignedTo = (kind: string, id: string, scope: readonly Condition[]): VisibilityBranch => ({
    from: ASSIGNED,
    where: all([
      { sql: 's.kind = ? AND s.assignee_id = ?', bindings: [kind, id] },
      isInApproveScope,
      notRequester,
      ...scope,
    ]),
  });
  const undecided: Condition = {
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
    where: all([
      { sql: 'a.created_by = ?', bindings: [actorId] },
      ...equal('a.tenant_id', ownTenantId),
    ]),
  };
  if (assignedToMe)
    return assigned.map(({ from, where }) => ({ from, where: all([where, undecided]) }));
  return read.kind === 'everywhere' ? [readable] : [readable, requested, ...assigned];
}

/** The condition under which a row of `approvals AS a` is visible. */
export function visibleCondition(reader: ApprovalReader): Condition {
  const conditions = visibilityBranches(reader, false).map(({ from, where: { sql, bindings } }) =>
    from === ASSIGNED
      ? {
          sql: `EXISTS (SELECT FROM approval_assignees AS s WHERE s.approval_id = a.id AND ${sql})`,
          bindings,
        }
      : { sql, bindings },
  );
  return {
    sql: conditions.map(({ sql }) => `(${sql})`).join(' OR '),
    bindings: conditions.flatMap(({ bindings }) => bindings),
  };
}

const filterConditions = (
  { type, tenantId, execution, requestedByMe }: ApprovalFilter,
  { actorId, ownTenantId }: ApprovalReader,
): Condition[] => [
  ...equal('a.type', type),
  ...equal('a.tenant_id', tenantId),
  ...equal('a.execution', execution),
  ...(requestedByMe
    ? [...equal('a.created_by', actorId), ...equal('a.tenant_id', ownTenantId)]
    : []),
];

/**
 * A page of the visible requests, newest first. Each reason for visibility reads its own index, up
 * to the size of the page.
 */
export async function listApprovals(
  db: Knex,
  reader: ApprovalReader,
  filter: ApprovalFilter,
  { limit, after }: PageRequest,
): Promise<KeysetPage<Approval>> {
  const common = [
    ...filterConditions(filter, reader),
    ...(filter.status
      ? [{ sql: 'a.status = ANY (?::text[])', bindings: [[...filter.status]] }]
      : []),
    ...(after === undefined ? [] : [{ sql: 'a.id < ?', bindings: [after] }]),
  ];
  const selects = visibilityBranches(reader, filter.assignedToMe ?? false).map(
    ({ from, where }) => {
      const { sql, bindings } = all([where, ...common]);
      return {
        sql: `(SELECT a.id FROM ${from} WHERE ${sql} ORDER BY a.id DESC LIMIT ?)`,
        bindings: [...bindings, limit + 1],
      };
    },
  );
  const { rows }: { rows: { id: string }[] } = await db.raw(
    `SELECT id FROM (${selects.map(({ sql }) => sql).join(' UNION ')}) AS visible
     ORDER BY id DESC LIMIT ?`,
    [...selects.flatMap(({ bindings }) => bindings), limit + 1],
  );
  const ids = rows.map(({ id }) => id);
  return cutPage(
    await Approval.query(db)
      .select(...APPROVAL_SUMMARY_COLUMNS)
      .whereIn('id', ids)
      .orderBy('id', 'desc'),
    limit,
    ({ id }) => id,
  );
}

/** The number of visible requests per status. The filter `status` is not applied. */
export async function countApprovals(
  db: Knex,
  reader: ApprovalReader,
  filter: ApprovalFilter,
): Promise<Partial<Record<ApprovalStatus, number>>> {
  const common = filterConditions(filter, reader);
  const selects = visibilityBranches(reader, filter.assignedToMe ?? false).map(
    ({ from, where }) => {
      const { sql, bindings } = all([where, ...common]);
      return { sql: `SELECT a.id, a.status FROM ${from} WHERE ${sql}`, bindings };
    },
  );
  const { rows }: { rows: { status: ApprovalStatus; count: number }[] } = await db.raw(
    `SELECT status, count(*) AS count
     FROM (${selects.map(({ sql }) => sql).join(' UNION ')}) AS visible GROUP BY status`,
    selects.flatMap(({ bindings }) => bindings),
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

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
  Approval.query(db)
    .patch({
      checkAt: Approval.raw(
        "CASE WHEN status = 'pending' AND expires_at > ? THEN LEAST(?, expires_at) ELSE ? END",
        [now, nextPendingCheckAt, nextCheckAt],
      ),
    })
    .whereIn('id', (query) =>
      query
        .select('id')
        .from('approvals')
        .where('check_at', '<=', now)
        .where((open) =>
          open.where('status', 'pending').orWhereIn('execution', ['queued', 'running']),
        )
        .orderBy('check_at')
        .limit(limit)
        .forUpdate()
        .skipLocked(),
    )
    .returning([...APPROVAL_SUMMARY_COLUMNS]) as unknown as Promise<Approval[]>;
