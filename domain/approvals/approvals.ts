import { createHmac } from 'node:crypto';
import type { Mutation } from '../inventory/planning.ts';
import type { FrozenPlan } from '../inventory/frozenPlan.ts';
import { scopeOfRole, scopeOf, covers, type Place, type Rights } from '../access/scope.ts';

/** The life of a request: `pending → approved | rejected | expired | cancelled`. */
export const APPROVAL_STATUSES = [
  'pending',
  'approved',
  'rejected',
  'expired',
  'cancelled',
] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

/** What became of what was bound to it: `none → queued → running → succeeded | failed | stale`. */
export const EXECUTIONS = ['none', 'queued', 'running', 'succeeded', 'failed', 'stale'] as const;
export type Execution = (typeof EXECUTIONS)[number];

export const DECISIONS = ['approved', 'rejected'] as const;
export type DecisionOutcome = (typeof DECISIONS)[number];

/** The job that carries out a change of the inventory. */
export const APPLY = 'inventory.apply';

/** Why a request is not carried out whose change would do something else than was approved. */
export const STALE_PLAN = 'stale_plan';

export const MAX_REQUIRED_APPROVALS = 5;
export const MAX_ASSIGNEES = 50;
export const MAX_COMMENTS = 500;
/** Records that one request may change: somebody has to read it. */
export const MAX_PLANNED_EFFECTS = 2_000;

const DAY_MS = 86_400_000;
export const DEFAULT_EXPIRY_MS = 14 * DAY_MS;
/** How far ahead a request may expire or be carried out. */
export const MAX_AHEAD_MS = 366 * DAY_MS;

/** Parts of the time between the request and its expiry after which those who may decide are reminded. */
const REMINDERS_AFTER = [0.5, 0.9] as const;

/** When reminders of a request are due, in order. */
export const reminderTimes = ({
  createdAt,
  expiresAt,
}: {
  createdAt: Date;
  expiresAt: Date;
}): Date[] =>
  REMINDERS_AFTER.map(
    (part) => new Date(createdAt.getTime() + part * (expiresAt.getTime() - createdAt.getTime())),
  );

/**
 * Names by which somebody may be known: a session is a user's id, a gateway may say the user name or the e-mail address.
 * Whoever has one of them in common is taken for the same person.
 */
export const normalName = (name: string): string => name.normalize('NFKC').trim().toLowerCase();
export const isSamePerson = (names: readonly string[], others: readonly string[]): boolean =>
  names.some((name) => others.includes(name));

/** What decides about who may decide. */
type Decidable = {
  place: Place;
  requesterNames: readonly string[];
  userIds: readonly string[];
  roleIds: readonly string[];
};
type Decider = { actorId: string; names: readonly string[]; rights: Rights };

export type DecisionRefusal = 'self_approval' | 'permission_denied' | 'not_assigned';

/** True when somebody is named, or holds a named role where the request stands. */
export const isAssigned = (
  { place, userIds, roleIds }: Pick<Decidable, 'place' | 'userIds' | 'roleIds'>,
  { actorId, rights }: Pick<Decider, 'actorId' | 'rights'>,
): boolean =>
  userIds.includes(actorId) || roleIds.some((roleId) => covers(scopeOfRole(rights, roleId), place));

/** Why somebody may not decide about a request; null when they may. Nobody decides about what they asked for. */
export function refusalToDecide(request: Decidable, decider: Decider): DecisionRefusal | null {
  if (isSamePerson(request.requesterNames, decider.names)) return 'self_approval';
  if (!covers(scopeOf(decider.rights, 'workflow:approve'), request.place))
    return 'permission_denied';
  return isAssigned(request, decider) ? null : 'not_assigned';
}

/** What is approved, and so is what runs. */
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
  mutations: readonly Mutation[] | null;
  plan: FrozenPlan | null;
  requiredApprovals: number;
  executeAt: Date | null;
};

/** The hash of what is approved: HMAC-SHA256 in hexadecimal, over its JSON in a fixed order of fields. */
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
    mutations,
    plan,
    requiredApprovals,
    executeAt,
  } = content;
  const parts = [
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
  ];
  return createHmac('sha256', Buffer.from(key, 'base64'))
    .update(JSON.stringify(parts))
    .digest('hex');
}
