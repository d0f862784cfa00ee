import {
  approvalChange,
  approvalTopic,
  lockApproval,
  lastCommentNumber,
} from '../../db/approvals/approvals.ts';
import type { Notifications } from '../../db/core/notifications.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import type { Knex } from '../../db/core/knex.ts';
import { ApprovalComment, ApprovalDecision } from '../../db/models/Approval.ts';
import {
  MAX_COMMENTS,
  type DecisionOutcome,
  type DecisionRefusal,
  type RecordedOutcome,
} from '../../domain/approvals/approvals.ts';
import {
  scopeOfApproval,
  withChanges,
  type ApprovalData,
  type DecisionData,
} from '../../domain/approvals/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../../domain/shared/errors.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import { describeResourceScope } from '../../domain/access/scope.ts';
import type { Ids } from '../../platform/ids.ts';
import { signalApprovalTask } from '../../domain/dispatch/tasks.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import { approvalEventData, approvalSubject, approvalSnapshot } from './approvalAudit.ts';
import { closeApproval, emitClosed } from './closeApproval.ts';
import type { DeniedAttempts } from '../audit/deniedAttempts.ts';
import { createWaitForEnd, type WaitLimits } from '../shared/waitForEnd.ts';
import { createApprovalViews, type ApprovalView } from './views.ts';

export type Approvals = ReturnType<typeof createApprovals>;

/** The body of a decision. `contentHash` is the hash of the content that the caller has read. */
export type DecisionInput = {
  comment?: string | null;
  contentHash?: string;
  version?: number | undefined;
};

type Deps = {
  db: Knex;
  commit: Commit;
  access: Access;
  deniedAttempts: DeniedAttempts;
  ids: Ids;
  notifications: Notifications;
  slots: { waits: Slots };
  /** How soon the reconciler checks an approved request, in milliseconds. */
  graceMs: number;
};

/** An action is not allowed. Thrown inside the transaction; audited after it was rolled back. */
class ActionDenied extends Error {
  readonly reason: DecisionRefusal | 'not_requester';
  /** The missing permission, for the reason `permission_denied`. */
  readonly permission: Permission;

  constructor(
    reason: DecisionRefusal | 'not_requester',
    permission: Permission = 'workflow:approve',
  ) {
    super(reason);
    this.reason = reason;
    this.permission = permission;
  }
}

/** The signal, and the audit action, of each outcome. */
const SIGNALS = { approved: 'approve', rejected: 'reject', cancelled: 'cancel' } as const;

/** Reading, deciding, cancelling and commenting on approval requests. */
export function createApprovals({
  db,
  commit,
  access,
  deniedAttempts,
  ids,
  notifications,
  slots,
  graceMs,
}: Deps) {
  const waitForEnd = createWaitForEnd({ notifications, slots });
  const { find, list, toViews, readerFor } = createApprovalViews({ db, access });

  /**
   * Changes a request that the caller may see, or on which the caller holds the permission of the
   * action, with its row locked. A denied attempt is audited. Errors: `not_found`, and those of
   * `change`.
   */
  async function changeLocked(
    caller: Caller,
    id: string,
    { action, permission }: { action: string; permission?: Permission },
    change: (work: Work, view: ApprovalView, trx: Knex) => Promise<void> | void,
  ): Promise<void> {
    const { approval } = await find(caller, id, permission);
    const tenantCaller = { ...caller, tenantId: approval.tenantId };
    try {
      await commit(tenantCaller, async (work) => {
        const trx = await work.trx();
        const locked = await lockApproval(trx, id);
        const [view] = await toViews(
          await access.withCurrentRights(caller, trx),
          locked ? [locked] : [],
          trx,
        );
        if (!view) throw notFound('approval request', id);
        work.result(id);
        await change(work, view, trx);
      });
    } catch (error) {
      if (!(error instanceof ActionDenied)) throw error;
      await deniedAttempts.record(
        tenantCaller,
        action,
        { reason: error.reason },
        { subject: approvalSubject(approval) },
      );
      throw denialError(error, approval);
    }
  }

  /** Records a decision or a cancellation, and signals its id to the workflow of the request. */
  function recordDecision(
    work: Work,
    { approval, viewerNames }: ApprovalView,
    { actorId }: Caller,
    outcome: RecordedOutcome,
    comment: string | null,
  ): void {
    const { id } = work.insert(ApprovalDecision, {
      id: ids.next('dec'),
      approvalId: approval.id,
      actorId,
      actorNames: viewerNames,
      outcome,
      comment,
      contentHash: approval.contentHash,
      decidedAt: work.now,
    });
    work.dispatch(signalApprovalTask(approval, SIGNALS[outcome], id));
  }

  /**
   * Counts an approval, or closes the request if the decision is decisive. Returns it as it is
   * then.
   */
  function applyDecision(
    work: Work,
    approval: ApprovalData,
    { actorId }: Caller,
    status: DecisionOutcome,
    comment: string | null,
  ): ApprovalData {
    const approvalCount = approval.approvalCount + 1;
    if (status === 'rejected' || approvalCount >= approval.requiredApprovals)
      return closeApproval(work, approval, { status, closedBy: actorId, comment, graceMs });
    const values = { approval_count: approvalCount, updated_at: work.now };
    work.change(approvalChange(approval.id, { status: 'pending' }, values));
    return withChanges(approval, { approvalCount });
  }

  /** Error: `content_mismatch`. */
  function assertContent(approval: ApprovalData, contentHash: string | undefined): void {
    if (contentHash !== undefined && contentHash !== approval.contentHash)
      throw new AppError(
        'content_mismatch',
        'The contentHash does not match the request. Read the request again before you decide.',
      );
  }

  /** Error: `already_decided`. */
  function assertUndecided(priorDecision: DecisionData | undefined): void {
    if (priorDecision)
      throw new AppError(
        'already_decided',
        `You ${priorDecision.outcome} the request at ${priorDecision.decidedAt.toISOString()}.`,
      );
  }

  /** Error: `already_decided`, `approval_closed`. */
  function assertPending({ status, closedBy, closedAt, expiresAt }: ApprovalData, now: Date): void {
    if (status === 'approved' || status === 'rejected') {
      const decider = assertDefined(closedBy, 'approval.closedBy');
      const decidedAt = assertDefined(closedAt, 'approval.closedAt').toISOString();
      throw new AppError(
        'already_decided',
        `The request was ${status} by ${decider} at ${decidedAt}.`,
      );
    }
    if (status !== 'pending') throw new AppError('approval_closed', `The request is ${status}.`);
    if (expiresAt <= now)
      throw new AppError('approval_closed', `The request expired at ${expiresAt.toISOString()}.`);
  }

  return {
    find,
    /** The caller, as far as the visible requests depend on them. */
    readerFor,
    list,

    /**
     * Approves or rejects a request. The last required approval, or one rejection, closes it.
     * Errors: `not_found`, `permission_denied`, `self_approval`, `not_assigned`, `already_decided`,
     * `approval_closed`, `content_mismatch`, `version_conflict`.
     */
    decide: (
      caller: Caller,
      id: string,
      outcome: DecisionOutcome,
      { comment = null, contentHash, version }: DecisionInput,
    ): Promise<void> => {
      const action = `workflow.${SIGNALS[outcome]}`;
      const needs = { action, permission: 'workflow:approve' } as const;
      return changeLocked(caller, id, needs, async (work, view, trx) => {
        const { approval, refusal, priorDecision } = view;
        if (refusal) throw new ActionDenied(refusal);
        assertPending(approval, await readDatabaseTime(trx));
        checkVersion(approval, version);
        assertContent(approval, contentHash);
        assertUndecided(priorDecision);
        recordDecision(work, view, caller, outcome, comment);
        const after = applyDecision(work, approval, caller, outcome, comment);
        work.audit(action, approvalSubject(approval), {
          before: approvalSnapshot(approval),
          after: { ...approvalSnapshot(after), comment },
        });
        work.emit('workflow.decision.created', approvalSubject(approval), {
          ...approvalEventData(after),
          decision: outcome,
          decidedBy: caller.actorId,
        });
        emitClosed(work, after);
      });
    },

    /**
     * Cancels a request. The requester may until the job starts. A user who may decide may cancel
     * an approved request until its job starts. Errors: `not_found`, `not_requester`,
     * `approval_closed`, `execution_started`, `version_conflict`.
     */
    cancel: (
      caller: Caller,
      id: string,
      { comment = null, version }: Pick<DecisionInput, 'comment' | 'version'>,
    ): Promise<void> =>
      changeLocked(caller, id, { action: 'workflow.cancel' }, (work, view) => {
        const { approval } = view;
        if (!canCancel(view)) throw new ActionDenied('not_requester');
        checkVersion(approval, version);
        if (approval.execution === 'running') {
          const jobId = assertDefined(approval.jobId, 'approval.jobId');
          throw new AppError('execution_started', `Job ${jobId} has started. Cancel it instead.`);
        }
        if (approval.status !== 'pending' && approval.execution !== 'queued')
          throw new AppError('approval_closed', `The request is ${approval.status}.`);
        recordDecision(work, view, caller, 'cancelled', comment);
        const closure = {
          status: 'cancelled',
          closedBy: caller.actorId,
          comment,
          graceMs,
        } as const;
        const after = closeApproval(work, approval, closure);
        emitClosed(work, after);
        work.audit('workflow.cancel', approvalSubject(approval), {
          before: approvalSnapshot(approval),
          after: { ...approvalSnapshot(after), comment },
        });
      }),

    /**
     * Adds a comment. Allowed to the requester, to users who may decide, and with `workflow:write`
     * at the scope of the request. Errors: `not_found`, `permission_denied`, `limit_reached`.
     */
    comment: (caller: Caller, id: string, text: string): Promise<void> =>
      changeLocked(
        caller,
        id,
        { action: 'workflow.comment', permission: 'workflow:write' },
        async (work, { approval, refusal, isRequester }, trx) => {
          const mayComment =
            refusal === null ||
            isRequester ||
            access.holds(caller.rights, 'workflow:write', scopeOfApproval(approval));
          if (!mayComment) throw new ActionDenied('permission_denied', 'workflow:write');
          const number = (await lastCommentNumber(trx, id)) + 1;
          if (number > MAX_COMMENTS)
            throw new AppError(
              'limit_reached',
              `A request can have at most ${MAX_COMMENTS} comments.`,
            );
          work.insert(ApprovalComment, {
            approvalId: id,
            number,
            actorId: caller.actorId,
            text,
            createdAt: work.now,
          });
          work.audit('workflow.comment', approvalSubject(approval), { after: { number } });
          work.emit('workflow.comment.created', approvalSubject(approval), {
            ...approvalEventData(approval),
            number,
            commentedBy: caller.actorId,
          });
        },
      ),

    /**
     * Waits at most `waitMs` until a request is finished, then finds it. With `decided` (the caller
     * has just decided) it does not wait for other deciders or for `executeAt`. Error: `not_found`.
     */
    findWhenFinished(
      caller: Caller,
      id: string,
      { decided, ...limits }: WaitLimits & { decided: boolean },
    ): Promise<ApprovalView> {
      const isFinishedForCaller = ({ approval }: ApprovalView) =>
        isFinished(approval) || (decided && isAwaitingOthers(approval, new Date()));
      return waitForEnd(
        caller,
        {
          topic: approvalTopic(id),
          read: () => find(caller, id),
          isFinished: isFinishedForCaller,
          hasEnded: async () => isFinishedForCaller(await find(caller, id)),
        },
        limits,
      );
    },
  };
}

/** The requester may cancel. After the approval, users who may decide may cancel too. */
export const canCancel = ({ approval, refusal, isRequester }: ApprovalView): boolean =>
  isRequester || (refusal === null && approval.status === 'approved');

const isFinished = ({ status, execution }: ApprovalData): boolean =>
  status !== 'pending' && execution !== 'queued' && execution !== 'running';

const isAwaitingOthers = ({ status, executeAt }: ApprovalData, now: Date): boolean =>
  status === 'pending' || (executeAt !== null && executeAt > now);

function denialError({ reason, permission }: ActionDenied, approval: ApprovalData): AppError {
  const scopeText = describeResourceScope(scopeOfApproval(approval));
  if (reason === 'self_approval')
    return new AppError('self_approval', 'Requesters cannot decide on their own requests.');
  if (reason === 'not_assigned')
    return new AppError(
      'not_assigned',
      `The request is assigned neither to you nor to a role that you hold at ${scopeText}.`,
    );
  if (reason === 'not_requester')
    return new AppError(
      'not_requester',
      'Only the requester may cancel a pending request. Deciders may cancel after the approval.',
    );
  return new AppError('permission_denied', `Permission ${permission} is missing at ${scopeText}.`);
}
