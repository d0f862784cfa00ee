import { createHmac } from 'node:crypto';
import type { Mutation } from '../inventory/planning.ts';
import type { FrozenPlan } from '../inventory/frozenPlan.ts';
import type { TargetRef } from '../jobs/targets.ts';
import { isSamePerson } from './names.ts';
import { scopeOfRole, scopeOf, covers, type ResourceScope, type Rights } from '../access/scope.ts';
import { DAY_MS } from '../shared/durations.ts';

/** Statuses of a request: `pending → approved | rejected | expired | cancelled`. */
export const APPROVAL_STATUSES = [
  'pending',
  'approved',
  'rejected',
  'expired',
  'cancelled',
] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

/** Most pending requests that a list counts, and most others: every page and every badge has these counts. */
export const MAX_COUNTED_REQUESTS = 1_000;

/**
 * Execution of the bound job: `none → queued → running → succeeded | failed | stale`. `stale`: the
 * job did not run, because it would no longer have done what was approved.
 */
export const EXECUTIONS = ['none', 'queued', 'running', 'succeeded', 'failed', 'stale'] as const;
export type Execution = (typeof EXECUTIONS)[number];

export const DECISIONS = ['approved', 'rejected'] as const;
export type DecisionOutcome = (typeof DECISIONS)[number];

/**
 * What a row of `approval_decisions` records. A cancellation is recorded like a decision, so that
 * the signal to the workflow can name it.
 */
export type RecordedOutcome = DecisionOutcome | 'cancelled';

/** The job type that applies a change of the inventory. */
export const INVENTORY_APPLY = 'inventory.apply';

/** Error code of an execution whose change would do something else than what was approved. */
export const STALE_PLAN = 'stale_plan';

/** The job type of a request has another version than the one that was requested. */
export const STALE_TYPE = 'stale_type';

export const MAX_REQUIRED_APPROVALS = 5;
export const MAX_ASSIGNEES = 50;
export const MAX_COMMENTS = 500;
/** Records that one request may change. An approver has to read all of them. */
export const MAX_PLANNED_EFFECTS = 2_000;
/** The size of a plan as JSON: each read of the request has it. */
export const MAX_PLAN_BYTES = 8 * 1_048_576;

export const DEFAULT_EXPIRY_MS = 14 * DAY_MS;
/** How far in the future `expiresAt` and `executeAt` may be. */
export const MAX_AHEAD_MS = 366 * DAY_MS;

/** Reminders are sent after these fractions of the time between creation and expiry. */
const REMINDER_FRACTIONS = [0.5, 0.9] as const;

/** The times at which reminders of a request are sent, earliest first. */
export const reminderTimes = ({
  createdAt,
  expiresAt,
}: {
  createdAt: Date;
  expiresAt: Date;
}): Date[] =>
  REMINDER_FRACTIONS.map(
    (fraction) =>
      new Date(createdAt.getTime() + fraction * (expiresAt.getTime() - createdAt.getTime())),
  );

/** The parts of a request that determine who may decide on it. */
type DecisionTarget = {
  resourceScope: ResourceScope;
  /** See `recordedNames`. */
  requesterNames: readonly string[];
  userIds: readonly string[];
  roleIds: readonly string[];
};
/** `names`: see `namesMeaning`. */
type Decider = { actorId: string; names: readonly string[]; rights: Rights };

export type DecisionRefusal = 'self_approval' | 'permission_denied' | 'not_assigned';

/** True when the actor is assigned by id, or holds an assigned role at the scope of the request. */
export const isAssigned = (
  {
    resourceScope,
    userIds,
    roleIds,
  }: Pick<DecisionTarget, 'resourceScope' | 'userIds' | 'roleIds'>,
  { actorId, rights }: Pick<Decider, 'actorId' | 'rights'>,
): boolean =>
  userIds.includes(actorId) ||
  roleIds.some((roleId) => covers(scopeOfRole(rights, roleId), resourceScope));

/**
 * Why an actor may not decide on a request; null when the actor may. Requesters never decide on
 * their own requests.
 */
export function refusalToDecide(request: DecisionTarget, decider: Decider): DecisionRefusal | null {
  if (isSamePerson(request.requesterNames, decider.names)) return 'self_approval';
  if (!covers(scopeOf(decider.rights, 'workflow:approve'), request.resourceScope))
    return 'permission_denied';
  return isAssigned(request, decider) ? null : 'not_assigned';
}

/** The content of a request: what is approved, and therefore what is executed. */
export type ApprovalContent = {
  type: string;
  title: string;
  payload: object;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
  createdBy: string;
  jobType: string | null;
  jobPayload: object | null;
  /** What the bound job is about; null for a job type without targets. */
  jobTarget: TargetRef | null;
  /** The version of a job type of runners; null for other types. */
  typeDigest: string | null;
  mutations: readonly Mutation[] | null;
  plan: FrozenPlan | null;
  requiredApprovals: number;
  executeAt: Date | null;
};

/**
 * The hash of a request's content: HMAC-SHA256 in hexadecimal, over the JSON of its fields in a
 * fixed order. `key` is in base64. A plain hash would let readers guess secrets in the payload.
 */
export function contentHash(key: string, content: ApprovalContent): string {
  const {
    type,
    title,
    payload,
    tenantId,
    siteId,
    deviceId,
    createdBy,
    jobType,
    jobPayload,
    jobTarget,
    typeDigest,
    mutations,
    plan,
    requiredApprovals,
    executeAt,
  } = content;
  const values = [
    type,
    title,
    payload,
    tenantId,
    siteId,
    deviceId,
    createdBy,
    jobType,
    jobPayload,
    mutations,
    plan,
    requiredApprovals,
    executeAt?.toISOString() ?? null,
    // Requests from before there were targets and versions keep their hash.
    ...(jobTarget ? [jobTarget.kind, jobTarget.id] : []),
    ...(typeDigest === null ? [] : ['digest', typeDigest]),
  ];
  return createHmac('sha256', Buffer.from(key, 'base64'))
    .update(JSON.stringify(values))
    .digest('hex');
}
