import type { Knex } from '../core/knex.ts';
import { cutPage, type Page, type PageRequest } from '../core/keyset.ts';
import {
  Approval,
  ApprovalAssignee,
  ApprovalComment,
  ApprovalDecision,
} from '../models/Approval.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import type { Change } from '../core/unitOfWork.ts';
import { normalName, type ApprovalStatus, type Execution } from '../../domain/approvals/approvals.ts';
import type { Scope } from '../../domain/access/scope.ts';

/** Topic of `Changes` on which the news of a request go. */
export const approvalChanged = (id: string): string => `approval:${id}`;

export type Assignees = { userIds: string[]; roleIds: string[] };

const PLACE = { tenant: 'a.tenant_id', site: 'a.site_id', device: 'a.device_id' };

/** What is read where the request itself is not needed: it may have a megabyte. */
export const APPROVAL_SUMMARY_COLUMNS = [
  'id',
  'tenant_id',
  'site_id',
  'device_id',
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

/** A request with its row locked until the transaction ends: whoever decides about it is alone. */
export const lockApproval = async (trx: Knex, id: string): Promise<Approval | undefined> =>
  Approval.query(trx).findById(id).forUpdate();

/** In which state a request must be for a change, by its columns; it may name how many reminders were sent. */
export type ApprovalGuard = { status: ApprovalStatus; execution?: Execution; reminders?: number };

/**
 * A change of a request in one state; in another it is left alone. Keys of `values` are column names. A reminder is no new
 * version (`newVersion`): the request is the same.
 */
export function approvalChange(
  id: string,
  guard: ApprovalGuard,
  values: Readonly<Record<string, Knex.RawBinding>>,
  { newVersion = true } = {},
): Change {
  const sets = [
    ...(newVersion ? ['version = version + 1'] : []),
    ...Object.keys(values).map((column) => `${column} = ?`),
  ];
  const conditions = ['id', ...Object.keys(guard)].map((column) => `${column} = ?`);
  return {
    topics: [approvalChanged(id)],
    sql: (name) =>
      `${name} AS (UPDATE approvals SET ${sets.join(', ')} WHERE ${conditions.join(' AND ')} RETURNING 1)`,
    bindings: [...Object.values(values), id, ...Object.values(guard)],
  };
}

/** Who may decide about these requests. */
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
    const own = rows.filter(({ approvalId }) => approvalId === id);
    const ofKind = (kind: 'user' | 'role') =>
      own.filter((row) => row.kind === kind).map(({ assigneeId }) => assigneeId);
    return { userIds: ofKind('user'), roleIds: ofKind('role') };
  };
}

/** The decisions about a request, earliest first. */
export const decisionsOf = async (db: Knex, id: string): Promise<ApprovalDecision[]> =>
  ApprovalDecision.query(db).where({ approval_id: id }).orderBy(['decided_at', 'actor_id']);

/** The decisions about some requests by whoever has one of these names. */
export const decisionsBy = async (
  db: Knex,
  ids: readonly string[],
  names: readonly string[],
): Promise<ApprovalDecision[]> =>
  ids.length === 0
    ? []
    : ApprovalDecision.query(db)
        .whereIn('approval_id', [...ids])
        .whereRaw('jsonb_exists_any(actor_names, ?::text[])', [[...names]]);

/** What was said about a request, earliest first. */
export const commentsOf = async (db: Knex, id: string): Promise<ApprovalComment[]> =>
  ApprovalComment.query(db).where({ approval_id: id }).orderBy('number');

/**
 * Whoever reads a list, as far as the list depends on it. `roles` are those that they hold, each with where. A request is
 * theirs to see when it is in `read`, is their own, or names them or a role of theirs inside `approve`.
 */
export type Reader = {
  actorId: string;
  /** Where what they made is theirs: a gateway's word for who they are holds at its tenant. Undefined is everywhere. */
  ownTenantId: string | undefined;
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

/** Rows of `approvals AS a`, by one of the ways in which a request can be somebody's to see. */
type Way = { from: string; where: Condition };

const ASSIGNED = 'approval_assignees AS s JOIN approvals AS a ON a.id = s.approval_id';

function waysOf(
  { actorId, ownTenantId, names, read, approve, roles }: Reader,
  assignedToMe: boolean,
): Way[] {
  // Nobody decides about what they asked for.
  const others: Condition = {
    sql: 'NOT jsonb_exists_any(a.requester_names, ?::text[])',
    bindings: [[...names]],
  };
  const mayApprove = scopeCondition(approve, PLACE);
  const named = (kind: string, id: string, scope: readonly Condition[]): Way => ({
    from: ASSIGNED,
    where: all([
      { sql: 's.kind = ? AND s.assignee_id = ?', bindings: [kind, id] },
      mayApprove,
      others,
      ...scope,
    ]),
  });
  const undecided: Condition = {
    sql: "NOT (a.status = 'pending' AND EXISTS (SELECT FROM approval_decisions AS d WHERE d.approval_id = a.id AND jsonb_exists_any(d.actor_names, ?::text[])))",
    bindings: [[...names]],
  };
  const mine = [
    named('user', actorId, []),
    ...roles.map(([roleId, scope]) => named('role', roleId, [scopeCondition(scope, PLACE)])),
  ];
  const readable: Way = { from: 'approvals AS a', where: scopeCondition(read, PLACE) };
  const own: Way = {
    from: 'approvals AS a',
    where: all([
      { sql: 'a.created_by = ?', bindings: [actorId] },
      ...equal('a.tenant_id', ownTenantId),
    ]),
  };
  if (assignedToMe)
    return mine.map(({ from, where }) => ({ from, where: all([where, undecided]) }));
  return read.kind === 'everywhere' ? [readable] : [readable, own, ...mine];
}

const conditionsOf = (
  { type, tenantId, execution, requestedByMe }: ApprovalFilter,
  { actorId, ownTenantId }: Reader,
): Condition[] => [
  ...equal('a.type', type),
  ...equal('a.tenant_id', tenantId),
  ...equal('a.execution', execution),
  ...(requestedByMe
    ? [...equal('a.created_by', actorId), ...equal('a.tenant_id', ownTenantId)]
    : []),
];

/** Each way is read from its own index, as far as the page goes. */
export async function pageOfApprovals(
  db: Knex,
  reader: Reader,
  filter: ApprovalFilter,
  { limit, after }: PageRequest,
): Promise<Page<Approval>> {
  const common = [
    ...conditionsOf(filter, reader),
    ...(filter.status
      ? [{ sql: 'a.status = ANY (?::text[])', bindings: [[...filter.status]] }]
      : []),
    ...(after === undefined ? [] : [{ sql: 'a.id < ?', bindings: [after] }]),
  ];
  const parts = waysOf(reader, filter.assignedToMe ?? false).map(({ from, where }) => {
    const { sql, bindings } = all([where, ...common]);
    return {
      sql: `(SELECT a.id FROM ${from} WHERE ${sql} ORDER BY a.id DESC LIMIT ?)`,
      bindings: [...bindings, limit + 1],
    };
  });
  const { rows }: { rows: { id: string }[] } = await db.raw(
    `SELECT id FROM (${parts.map(({ sql }) => sql).join(' UNION ')}) AS seen ORDER BY id DESC LIMIT ?`,
    [...parts.flatMap(({ bindings }) => bindings), limit + 1],
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

/** How many requests of each status there are in a list, whatever status it is narrowed to. */
export async function countApprovals(
  db: Knex,
  reader: Reader,
  filter: ApprovalFilter,
): Promise<Partial<Record<ApprovalStatus, number>>> {
  const common = conditionsOf(filter, reader);
  const parts = waysOf(reader, filter.assignedToMe ?? false).map(({ from, where }) => {
    const { sql, bindings } = all([where, ...common]);
    return { sql: `SELECT a.id, a.status FROM ${from} WHERE ${sql}`, bindings };
  });
  const { rows }: { rows: { status: ApprovalStatus; count: number }[] } = await db.raw(
    `SELECT status, count(*) AS count FROM (${parts.map(({ sql }) => sql).join(' UNION ')}) AS seen GROUP BY status`,
    parts.flatMap(({ bindings }) => bindings),
  );
  return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
}

/** Requests that are not settled and that nobody has looked at for a while, the longest first; says when to look again. */
export const takeUnsettledApprovals = (
  db: Knex,
  { now, pending, begun, limit }: { now: Date; pending: Date; begun: Date; limit: number },
): Promise<Approval[]> =>
  Approval.query(db)
    .patch({
      checkAt: Approval.raw(
        "CASE WHEN status = 'pending' AND expires_at > ? THEN LEAST(?, expires_at) ELSE ? END",
        [now, pending, begun],
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

/** Whatever an account can be called by; a gateway may say any of it. */
const CALLED = ['id', 'lower(username)', 'lower(email)', 'lower(external_id)'];

/**
 * Names by which each of these actors may be known: what they are called, and every name of the accounts that are called so.
 */
export async function namesOf(
  db: Knex,
  actorIds: readonly string[],
): Promise<(actorId: string) => string[]> {
  const ids = [...new Set(actorIds)];
  const accounts = CALLED.map(
    (called) => `SELECT id, username, email, external_id FROM users WHERE ${called} = asked.name`,
  );
  const {
    rows,
  }: {
    rows: {
      actor: string;
      id: string;
      username: string;
      email: string | null;
      external_id: string | null;
    }[];
  } = await db.raw(
    `SELECT asked.actor, u.* FROM unnest(?::text[], ?::text[]) AS asked (actor, name) CROSS JOIN LATERAL (${accounts.join(' UNION ')}) AS u`,
    [ids, ids.map(normalName)],
  );
  const names = new Map(ids.map((id) => [id, new Set([normalName(id)])]));
  for (const { actor, id, username, email, external_id } of rows) {
    for (const name of [id, username, email, external_id])
      if (name !== null && name !== '') names.get(actor)?.add(normalName(name));
  }
  return (actorId) => [...(names.get(actorId) ?? [])];
}
