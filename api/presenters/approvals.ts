import { APPLY } from '../../domain/approvals/approvals.ts';
import type { FrozenEffect, PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import { NOT_LOOKED_AT, type ApprovalPage } from '../../services/approvalPage.ts';
import { mayStop, type Seen } from '../../services/approvals.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type {
  ApprovalRecord,
  ApprovalSummary,
  DifferenceView,
  EffectView,
} from '../approvals/schemas.ts';
import { time } from '../jobs/presenter.ts';

type Approval = Seen['approval'];

const effectView = ({
  action,
  resource,
  id,
  label,
  reason,
  version,
  changes,
}: FrozenEffect): EffectView => ({ action, resource, id, label, reason, version, changes });

/** A difference as somebody sees it who may be told of some records only. */
function differenceView(
  difference: PlanDifference | null | undefined,
  { isTold, tellConflict, own }: ApprovalPage,
): DifferenceView | null {
  if (!difference) return null;
  const seen = (effect: FrozenEffect | null) =>
    effect && isTold(effect) ? effectView(effect) : null;
  return {
    // What is wrong was found with the requester's eyes, and may name what others cannot see.
    errors: own
      ? difference.errors
      : difference.errors.map((error) => ({ ...error, message: 'is not valid any more' })),
    conflicts: difference.conflicts.map(tellConflict),
    effects: difference.effects
      .map(({ approved, now }) => ({ approved: seen(approved), now: seen(now) }))
      .filter(({ approved, now }) => approved !== null || now !== null),
  };
}

const OUTCOMES = {
  succeeded: 'It is approved and was carried out.',
  failed: 'It is approved, and failed.',
  stale: 'It is approved, and was not carried out: it would have done something else.',
} as const;

/** What has become of a request that waits for nobody. */
function outcomeOf({ status, execution, executeAt, jobId }: Approval): string {
  if (execution === 'running') return `It is approved; its job ${jobId ?? ''} runs.`;
  if (execution === 'queued') return `It is approved, and begins ${aheadOf(executeAt) ?? 'now'}.`;
  return execution === 'none' ? `It is ${status}; nothing runs.` : OUTCOMES[execution];
}

/** A time that has not come yet, in words; null when there is none or it has passed. */
const aheadOf = (at: Date | null): string | null =>
  at !== null && at > new Date() ? `at ${at.toISOString()}` : null;

const countOf = (count: number, one: string, many: string): string =>
  count === 1 ? one : `all ${count} ${many}`;

/** What happens next, in words. */
function ifApproved({ approval, hindrance }: ApprovalPage): string {
  const {
    status,
    requiredApprovals,
    approvalCount,
    jobType,
    plan,
    executeAt,
    createdBy,
    authority,
  } = approval;
  const why = hindrance?.error;
  const not = !why
    ? ''
    : why.code === NOT_LOOKED_AT
      ? `${why.message}. `
      : `As the world is now it would not be carried out: ${why.message}. `;
  if (status !== 'pending') return `${not}${outcomeOf(approval)}`;
  const left = requiredApprovals - approvalCount;
  const needs = left === 1 ? 'One approval is needed.' : `${left} approvals are needed.`;
  if (jobType === null) return `${needs} Nothing runs then; the decision is recorded.`;
  const when =
    aheadOf(executeAt) ??
    `at once${executeAt ? `, since ${executeAt.toISOString()} has passed` : ''}`;
  const does =
    jobType === APPLY
      ? `changes ${countOf(plan?.effects.length ?? 0, 'the one record', 'records')} of the plan, or none,`
      : 'runs';
  const rights =
    'userId' in authority
      ? `with the rights that ${createdBy} has then`
      : `with the rights that the gateway gave ${createdBy} for the request`;
  const guard = plan
    ? ` If it would change anything else by then, it does not run.${jobType === APPLY ? '' : ' It does not make the change itself.'}`
    : '';
  return `${not}${needs} Then, ${when}, a job of the type ${jobType} ${does} ${rights}.${guard}`;
}

/** Why the reader may not decide now; null when they may. */
const reasonNot = ({ approval: { status, expiresAt }, refusal, earlier }: Seen): string | null =>
  refusal ??
  (earlier
    ? 'already_decided'
    : status !== 'pending'
      ? status
      : expiresAt <= new Date()
        ? 'expired'
        : null);

const summary = (seen: Seen): ApprovalSummary => {
  const { approval, assignees } = seen;
  return {
    id: approval.id,
    type: approval.type,
    title: approval.title,
    tenantId: approval.tenantId,
    siteId: approval.siteId,
    deviceId: approval.deviceId,
    status: approval.status,
    execution: approval.execution,
    createdBy: approval.createdBy,
    assignedUserIds: assignees.userIds,
    assignedRoleIds: assignees.roleIds,
    requiredApprovals: approval.requiredApprovals,
    approvals: approval.approvalCount,
    jobType: approval.jobType,
    jobId: approval.jobId,
    contentHash: approval.contentHash,
    expiresAt: approval.expiresAt.toISOString(),
    executeAt: time(approval.executeAt),
    closedBy: approval.closedBy,
    closedAt: time(approval.closedAt),
    executedAt: time(approval.executedAt),
    error: approval.error,
    workflowId: `approval:${approval.id}`,
    mayDecide: reasonNot(seen) === null,
    createdAt: approval.createdAt.toISOString(),
    updatedAt: approval.updatedAt.toISOString(),
    version: approval.version,
  };
};

/** Requests as callers see them. */
export const approvalPresenter = (jobTypes: JobTypes) => ({
  summary,
  record(page: ApprovalPage): ApprovalRecord {
    const {
      approval,
      deciders,
      decisions,
      comments,
      people,
      labels,
      isTold,
      isToldPlan,
      hindrance,
    } = page;
    const { status, execution, jobType, jobPayload, mutations, plan, createdBy } = approval;
    const requester = people.get(createdBy);
    const effects = plan?.effects ?? [];
    const told = effects.filter(isTold);
    const stoppable = status === 'pending' || execution === 'queued';
    return {
      ...summary(page),
      payload: approval.payload,
      jobPayload: jobPayload && (jobTypes.find(jobType ?? '')?.redact(jobPayload) ?? {}),
      validationRequest:
        mutations && isToldPlan
          ? {
              mutations: mutations.map(({ resource, operation, record }) => ({
                resource,
                operation,
                record,
              })),
            }
          : null,
      effects: told.map(effectView),
      hiddenEffects: effects.length - told.length,
      warnings: isToldPlan ? (plan?.warnings ?? []) : [],
      labels: Object.fromEntries(labels),
      ifApproved: ifApproved(page),
      changedSince: hindrance && {
        ...hindrance.error,
        difference: differenceView(hindrance.difference, page),
      },
      difference: differenceView(approval.difference, page),
      closeComment: approval.closeComment,
      requester: {
        id: createdBy,
        username: requester?.username ?? null,
        displayName: requester?.displayName ?? null,
      },
      deciders: {
        users: deciders.users,
        roles: deciders.roles.map(({ id, name, permissions }) => ({
          id,
          name,
          mayApprove: permissions.has('workflow:approve'),
        })),
      },
      people: Object.fromEntries(
        [...people].map(([id, { username, displayName }]) => [id, { username, displayName }]),
      ),
      decisions: decisions.map(({ actorId: by, outcome, comment, contentHash, decidedAt }) => ({
        actorId: by,
        outcome,
        comment,
        contentHash,
        decidedAt: decidedAt.toISOString(),
      })),
      comments: comments.map(({ number, actorId: by, text, createdAt }) => ({
        number,
        actorId: by,
        text,
        createdAt: createdAt.toISOString(),
      })),
      you: {
        mayDecide: reasonNot(page) === null,
        reason: reasonNot(page),
        mayCancel: stoppable && mayStop(page),
      },
    };
  },
});
