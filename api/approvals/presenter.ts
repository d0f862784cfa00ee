import { INVENTORY_APPLY, type Execution } from '../../domain/approvals/approvals.ts';
import { HIDDEN_CHANGE, mayReadChanges } from '../../domain/approvals/jobContent.ts';
import { scopeOfApproval, type ApprovalData } from '../../domain/approvals/records.ts';
import { approvalWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { maskText } from '../../domain/shared/credentials.ts';
import type { FrozenEffect, PlanDifference } from '../../domain/inventory/frozenPlan.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import type { ApprovalDetails } from '../../services/approvals/details.ts';
import { NOT_EVALUATED } from '../../services/approvals/evaluations.ts';
import { canCancel } from '../../services/approvals/approvals.ts';
import type { ApprovalView } from '../../services/approvals/views.ts';
import type { JobTypes } from '../../services/jobTypes/registry.ts';
import { maskInTurns } from '../../platform/maskInTurns.ts';
import type { ApprovalRecord, ApprovalSummary, DifferenceView, EffectView } from './schemas.ts';
import { isoOrNull, jobReference } from '../jobs/presenter.ts';
import { counted } from '../../domain/shared/counted.ts';

const presentEffect = ({
  action,
  resource,
  id,
  label,
  reason,
  version,
  changes,
}: FrozenEffect): EffectView => ({ action, resource, id, label, reason, version, changes });

/** A difference without the effects that the reader may not see, and with redacted messages. */
function presentDifference(
  difference: PlanDifference | null | undefined,
  { canSeeEffect, redactConflict, hasSentContent, canSeePlan }: ApprovalDetails,
): DifferenceView | null {
  if (!difference) return null;
  const visibleEffect = (effect: FrozenEffect | null) =>
    effect && canSeeEffect(effect) ? presentEffect(effect) : null;
  return {
    // Errors were found with the rights of the requester. They may name records that others cannot
    // see.
    errors:
      hasSentContent && canSeePlan
        ? difference.errors
        : difference.errors.map((error) => ({ ...error, message: 'is no longer valid' })),
    conflicts: difference.conflicts.map(redactConflict),
    effects: difference.effects
      .map(({ approved, now }) => ({ approved: visibleEffect(approved), now: visibleEffect(now) }))
      .filter(({ approved, now }) => approved !== null || now !== null),
  };
}

/** The text of a closed request, by its execution. */
const EXECUTION_TEXTS: Record<Execution, (approval: ApprovalData) => string> = {
  none: ({ status }) => `The request is ${status}. Nothing runs.`,
  queued: ({ executeAt }) => `Approved. The job starts ${futureTime(executeAt) ?? 'now'}.`,
  running: ({ jobId }) => `Approved. Job ${assertDefined(jobId, 'approval.jobId')} is running.`,
  succeeded: () => 'Approved and executed.',
  failed: () => 'Approved. The execution failed.',
  stale: () => 'Approved, but not executed: the change would do something else than was approved.',
};

/** The sentences about a pending request. */
const PENDING_TEXTS = {
  needs: (missing: number) => `Needs ${counted(missing, 'approval')}.`,
  noJob: 'Then the decision is recorded and nothing runs.',
  runs: (job: string, when: string, rights: string) => `Then ${job} ${when}, with ${rights}.`,
  appliesChange: (records: number | null) =>
    `a job of the type ${INVENTORY_APPLY} changes all records of the plan${records === null ? '' : ` (${records})`}, or none,`,
  runsJob: (jobType: string) => `a job of the type ${jobType} runs`,
  immediately: 'immediately',
  overdue: (executeAt: Date) =>
    `immediately, because executeAt (${executeAt.toISOString()}) has passed`,
  userRights: (userId: string) => `the rights that ${userId} has at that time`,
  gatewayRights: (actorId: string) =>
    `the rights that the gateway sent for ${actorId} with the request`,
  guardsPlan: 'If the change would then do anything else, the job does not run.',
  appliesNothing: 'The job does not apply the change itself.',
};

/** A time in the future as text; null if there is none or it has passed. */
const futureTime = (at: Date | null): string | null =>
  at !== null && at > new Date() ? `at ${at.toISOString()}` : null;

/** What happens after the last required approval, in sentences. */
function pendingText({ approval, canSeePlan }: ApprovalDetails): string {
  const { requiredApprovals, approvalCount, jobType, plan, executeAt, createdBy } = approval;
  const needs = PENDING_TEXTS.needs(requiredApprovals - approvalCount);
  if (jobType === null) return `${needs} ${PENDING_TEXTS.noJob}`;
  const appliesChange = jobType === INVENTORY_APPLY;
  const job = appliesChange
    ? PENDING_TEXTS.appliesChange(
        canSeePlan ? assertDefined(plan, 'approval.plan').effects.length : null,
      )
    : PENDING_TEXTS.runsJob(jobType);
  const passed = executeAt ? PENDING_TEXTS.overdue(executeAt) : PENDING_TEXTS.immediately;
  const rights =
    'userId' in approval.authority
      ? PENDING_TEXTS.userRights(createdBy)
      : PENDING_TEXTS.gatewayRights(createdBy);
  const sentences = [needs, PENDING_TEXTS.runs(job, futureTime(executeAt) ?? passed, rights)];
  if (plan) sentences.push(PENDING_TEXTS.guardsPlan);
  if (plan && !appliesChange) sentences.push(PENDING_TEXTS.appliesNothing);
  return sentences.join(' ');
}

/** The field `ifApproved`: what happens next, and what would block it now. */
function nextStepText(details: ApprovalDetails): string {
  const { approval, blocker } = details;
  const { status, execution } = approval;
  const text = status === 'pending' ? pendingText(details) : EXECUTION_TEXTS[execution](approval);
  if (!blocker) return text;
  const { code, message } = blocker.error;
  return code === NOT_EVALUATED
    ? `${message}. ${text}`
    : `The request could not be executed now: ${message}. ${text}`;
}

/** Why the reader may not decide now; null if the reader may. */
const refusalReason = ({
  approval: { status, expiresAt },
  refusal,
  priorDecision,
}: ApprovalView): string | null =>
  refusal ??
  (priorDecision
    ? 'already_decided'
    : status !== 'pending'
      ? status
      : expiresAt <= new Date()
        ? 'expired'
        : null);

/** `canSeeMutations`: the reader may know what a change of the inventory is about. */
const summary = (view: ApprovalView, canSeeMutations: boolean): ApprovalSummary => {
  const { approval, assignees } = view;
  return {
    id: approval.id,
    type: approval.type,
    title: approval.title,
    tenantId: approval.tenantId,
    siteId: approval.scopeSiteId,
    deviceId: approval.scopeDeviceId,
    status: approval.status,
    execution: approval.execution,
    createdBy: approval.createdBy,
    assignedUserIds: assignees.userIds,
    assignedRoleIds: assignees.roleIds,
    requiredApprovals: approval.requiredApprovals,
    approvals: approval.approvalCount,
    jobType: approval.jobType,
    jobTarget: approval.jobTarget,
    typeDigest: approval.typeDigest,
    jobId: approval.jobId,
    job: jobReference(approval.jobId, view),
    contentHash: approval.contentHash,
    expiresAt: approval.expiresAt.toISOString(),
    executeAt: isoOrNull(approval.executeAt),
    closedBy: approval.closedBy,
    closedAt: isoOrNull(approval.closedAt),
    executedAt: isoOrNull(approval.executedAt),
    error: approval.error && {
      code: approval.error.code,
      message:
        canSeeMutations || approval.jobType !== INVENTORY_APPLY
          ? maskText(approval.error.message)
          : HIDDEN_CHANGE,
    },
    workflowId: approvalWorkflowId(approval.id),
    mayDecide: refusalReason(view) === null,
    createdAt: approval.createdAt.toISOString(),
    updatedAt: approval.updatedAt.toISOString(),
    version: approval.version,
  };
};

/** The requested mutations, the plan and what has changed since, as far as the reader may see them. */
function presentChange(details: ApprovalDetails) {
  const { approval, blocker, labels, canSeeEffect, canSeeMutations, canSeePlan } = details;
  const { mutations, plan } = approval;
  const effects = plan?.effects ?? [];
  const visibleEffects = effects.filter(canSeeEffect);
  const present = ({ resource, operation, record }: Mutation) => ({ resource, operation, record });
  return {
    validationRequest: mutations && canSeeMutations ? { mutations: mutations.map(present) } : null,
    effects: visibleEffects.map(presentEffect),
    hiddenEffects: canSeePlan ? effects.length - visibleEffects.length : null,
    warnings: canSeePlan ? (plan?.warnings ?? []) : [],
    labels: Object.fromEntries(labels),
    blocker: blocker && {
      ...blocker.error,
      difference: presentDifference(blocker.difference, details),
    },
    difference: presentDifference(approval.difference, details),
  };
}

/** The requester, the deciders, and the names of all users involved. */
function presentUsers({ approval: { createdBy }, deciders, people }: ApprovalDetails) {
  const requester = people.get(createdBy);
  return {
    requester: {
      id: createdBy,
      username: requester?.username ?? null,
      displayName: requester?.displayName ?? null,
      provider: requester?.provider ?? null,
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
      [...people].map(([id, { username, displayName, provider }]) => [
        id,
        { username, displayName, provider },
      ]),
    ),
  };
}

/** Presents requests as their readers may see them. */
export const approvalPresenter = (jobTypes: JobTypes) => ({
  summary: (view: ApprovalView, caller: Caller): ApprovalSummary =>
    summary(
      view,
      view.hasSentContent ||
        view.refusal === null ||
        mayReadChanges(caller, scopeOfApproval(view.approval)),
    ),
  async record(details: ApprovalDetails): Promise<ApprovalRecord> {
    const { approval, decisions, comments, hasSentContent } = details;
    const { status, execution, jobType, jobPayload } = approval;
    const isCancellable = status === 'pending' || execution === 'queued';
    return {
      ...summary(details, details.canSeeMutations),
      ...presentChange(details),
      ...presentUsers(details),
      payload: hasSentContent ? approval.payload : await maskInTurns(approval.payload),
      jobPayload:
        jobPayload && jobType !== null
          ? await jobTypes.show(jobType, jobPayload, { isAuthor: hasSentContent })
          : null,
      jobTargetName: details.jobTargetName,
      ifApproved: nextStepText(details),
      closeComment: approval.closeComment,
      decisions: decisions.map(({ actorId, outcome, comment, contentHash, decidedAt }) => ({
        actorId,
        outcome,
        comment,
        contentHash,
        decidedAt: decidedAt.toISOString(),
      })),
      comments: comments.map(({ number, actorId, text, createdAt }) => ({
        number,
        actorId,
        text,
        createdAt: createdAt.toISOString(),
      })),
      you: {
        mayDecide: refusalReason(details) === null,
        reason: refusalReason(details),
        mayCancel: isCancellable && canCancel(details),
      },
    };
  },
});
