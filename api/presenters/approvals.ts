import { APPLY } from '../../domain/approvals.ts';
import type { FrozenEffect, PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { ApprovalPage } from '../../services/approvalPage.ts';
import { mayStop, type Seen } from '../../services/approvals.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import type { ApprovalRecord, ApprovalSummary, DifferenceView, EffectView } from '../schemas/approvals.ts';
import { time } from './jobs.ts';

type Approval = Seen['approval'];

const effectView = ({ action, resource, id, label, reason, version, changes }: FrozenEffect): EffectView => ({ action, resource, id, label, reason, version, changes });

/** A difference as somebody sees it who may be told of some records only. */
function differenceView(difference: PlanDifference | null | undefined, { isTold, tellConflict }: ApprovalPage): DifferenceView | null {
  if (!difference) return null;
  const seen = (effect: FrozenEffect | null) => (effect && isTold(effect) ? effectView(effect) : null);
  return {
    errors: difference.errors, conflicts: difference.conflicts.map(tellConflict),
    effects: difference.effects.map(({ approved, now }) => ({ approved: seen(approved), now: seen(now) })).filter(({ approved, now }) => approved !== null || now !== null),
  };
}

/** What happens next, in words. */
function ifApproved(approval: Approval): string {
  const { status, execution, requiredApprovals, approvalCount, jobType, plan, executeAt, createdBy, jobId } = approval;
  if (execution === 'running') return `It is approved; its job ${jobId ?? ''} runs.`;
  if (status !== 'pending') return execution === 'queued' ? `It is approved, and begins ${executeAt ? `at ${executeAt.toISOString()}` : 'now'}.` : 'It is closed: nothing more happens.';
  const left = requiredApprovals - approvalCount;
  const needs = left === 1 ? 'One approval is needed.' : `${left} approvals are needed.`;
  if (jobType === null) return `${needs} Nothing runs then; the decision is recorded.`;
  const records = plan?.effects.length ?? 0;
  const does = jobType === APPLY ? `changes ${records === 1 ? 'the one record' : `all ${records} records`} below, or none,` : 'runs';
  return `${needs} Then, ${executeAt ? `at ${executeAt.toISOString()}` : 'at once'}, a job of the type ${jobType} ${does} with the rights that ${createdBy} has then.${plan ? ' If the records have changed by then, it does not run.' : ''}`;
}

/** Why the reader may not decide now; null when they may. */
const reasonNot = ({ approval: { status, expiresAt }, refusal, earlier }: Seen): string | null =>
  refusal ?? (earlier ? 'already_decided' : status !== 'pending' ? status : expiresAt <= new Date() ? 'expired' : null);

const summary = (seen: Seen): ApprovalSummary => {
  const { approval, assignees } = seen;
  return {
    id: approval.id, type: approval.type, title: approval.title, tenantId: approval.tenantId, siteId: approval.siteId, deviceId: approval.deviceId,
    status: approval.status, execution: approval.execution, createdBy: approval.createdBy, assignedUserIds: assignees.userIds, assignedRoleIds: assignees.roleIds,
    requiredApprovals: approval.requiredApprovals, approvals: approval.approvalCount, jobType: approval.jobType, jobId: approval.jobId, contentHash: approval.contentHash,
    expiresAt: approval.expiresAt.toISOString(), executeAt: time(approval.executeAt), closedBy: approval.closedBy, closedAt: time(approval.closedAt), executedAt: time(approval.executedAt),
    error: approval.error, workflowId: `approval:${approval.id}`, mayDecide: reasonNot(seen) === null,
    createdAt: approval.createdAt.toISOString(), updatedAt: approval.updatedAt.toISOString(), version: approval.version,
  };
};

/** Requests as callers see them. */
export const approvalPresenter = (jobTypes: JobTypes) => ({
  summary,
  record(page: ApprovalPage): ApprovalRecord {
    const { approval, requester, deciders, decisions, comments, isTold, hindrance } = page;
    const { status, execution, jobType, jobPayload, mutations, plan, createdBy } = approval;
    const effects = plan?.effects ?? [];
    const told = effects.filter(isTold);
    const stoppable = status === 'pending' || execution === 'queued';
    return {
      ...summary(page),
      payload: approval.payload, jobPayload: jobPayload && (jobTypes.find(jobType ?? '')?.redact(jobPayload) ?? {}),
      validationRequest: mutations && { mutations: mutations.map(({ resource, operation, record }) => ({ resource, operation, record })) },
      effects: told.map(effectView), hiddenEffects: effects.length - told.length, ifApproved: ifApproved(approval),
      changedSince: hindrance && { ...hindrance.error, difference: differenceView(hindrance.difference, page) },
      difference: differenceView(approval.difference, page), closeComment: approval.closeComment,
      requester: { id: createdBy, username: requester?.username ?? null, displayName: requester?.displayName ?? null },
      deciders: { users: deciders.users, roles: deciders.roles.map(({ id, name, permissions }) => ({ id, name, mayApprove: permissions.has('workflow:approve') })) },
      decisions: decisions.map(({ actorId: by, outcome, comment, contentHash, decidedAt }) => ({ actorId: by, outcome, comment, contentHash, decidedAt: decidedAt.toISOString() })),
      comments: comments.map(({ number, actorId: by, text, createdAt }) => ({ number, actorId: by, text, createdAt: createdAt.toISOString() })),
      you: {
        mayDecide: reasonNot(page) === null, reason: reasonNot(page),
        mayCancel: stoppable && mayStop(page),
      },
    };
  },
});
