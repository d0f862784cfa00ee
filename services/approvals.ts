import {
  approvalChange,
  approvalChanged,
  assigneesOf,
  countApprovals,
  decisionsBy,
  lockApproval,
  namesOf,
  pageOfApprovals,
  type ApprovalFilter,
  type Assignees,
  type Reader,
} from '../db/approvals/approvals.ts';
import type { Changes } from '../db/core/notifications.ts';
import type { Commit, Work } from '../db/commit.ts';
import type { Page, PageRequest } from '../db/core/keyset.ts';
import type { Knex } from '../db/core/knex.ts';
import { Approval, ApprovalComment, ApprovalDecision } from '../db/models/Approval.ts';
import {
  MAX_COMMENTS,
  refusalToDecide,
  type ApprovalStatus,
  type DecisionOutcome,
  type DecisionRefusal,
} from '../domain/approvals/approvals.ts';
import type { Caller } from '../domain/shared/caller.ts';
import { AppError, checkVersion, notFound } from '../domain/shared/errors.ts';
import { covers, placeInWords, PLATFORM, scopeOfRole } from '../domain/access/scope.ts';
import type { Clock } from '../platform/clock.ts';
import { wakeApproval, type DispatchTask } from '../temporal/contracts.ts';
import type { Access } from './access.ts';
import {
  approvalEvent,
  approvalSubject,
  approvalView,
  changed,
  closeApproval,
  placeOfApproval,
  tellClosed,
  type Closing,
} from './approvals/approvalAudit.ts';
import type { Audit } from './audit.ts';
import { createWaitForEnd, type WaitLimits } from './waitForEnd.ts';

export type Approvals = ReturnType<typeof createApprovals>;
export type { ApprovalFilter } from '../db/approvals/approvals.ts';

/** A request as somebody sees it: who may decide about it, whether they may, whether they have, and whether it is their own. */
export type Seen = {
  approval: Approval;
  assignees: Assignees;
  refusal: DecisionRefusal | null;
  earlier: ApprovalDecision | undefined;
  own: boolean;
  /** Names by which they may be known. */
  names: string[];
};

export type ApprovalList = Page<Seen> & { counts: Record<ApprovalStatus, number> };

/** What comes with a decision. `contentHash` is that of what was looked at. */
export type Word = { comment?: string; contentHash?: string; version?: number | undefined };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  audit: Audit;
  clock: Clock;
  changes: Changes;
  /** How soon the reconciler looks after what was approved, in milliseconds. */
  graceMs: number;
};

/** Why an attempt is not allowed; found inside the transaction, told when that is over. */
class Denied extends Error {
  readonly reason: DecisionRefusal | 'not_requester';

  constructor(reason: DecisionRefusal | 'not_requester') {
    super(reason);
    this.reason = reason;
  }
}

const NO_COUNTS: Record<ApprovalStatus, number> = {
  pending: 0,
  approved: 0,
  rejected: 0,
  expired: 0,
  cancelled: 0,
};

/** What callers do with approval requests. What their runs do is in `approvalRuns.ts`. */
export function createApprovals({ db, commit, access, audit, clock, changes, graceMs }: Deps) {
  const waitForEnd = createWaitForEnd({ changes, clock });

  async function readerOf(caller: Caller): Promise<Reader> {
    const roleIds = [...new Set(caller.rights.grants.map(({ role }) => role.id))];
    return {
      actorId: caller.actorId,
      ownTenantId: ownTenantOf(caller),
      names: (await namesOf(db, [caller.actorId]))(caller.actorId),
      read: access.scope(caller, 'workflow:read'),
      approve: access.scope(caller, 'workflow:approve'),
      roles: roleIds.map((id) => [id, scopeOfRole(caller.rights, id)] as const),
    };
  }

  /** How a caller sees requests, with the rights and names of this moment. */
  async function look(
    caller: Caller,
    approvals: readonly Approval[],
    on: Knex = db,
  ): Promise<Seen[]> {
    const ids = approvals.map(({ id }) => id);
    const called = await namesOf(on, [
      caller.actorId,
      ...approvals.map(({ createdBy }) => createdBy),
    ]);
    const names = called(caller.actorId);
    const [assigned, decisions] = [await assigneesOf(on, ids), await decisionsBy(on, ids, names)];
    return approvals.map((approval) => {
      const assignees = assigned(approval.id);
      const requesterNames = [...approval.requesterNames, ...called(approval.createdBy)];
      const refusal = refusalToDecide(
        { place: placeOfApproval(approval), requesterNames, ...assignees },
        { actorId: caller.actorId, names, rights: caller.rights },
      );
      return {
        approval,
        assignees,
        refusal,
        names,
        earlier: decisions.find(({ approvalId }) => approvalId === approval.id),
        own: isOwn(caller, approval),
      };
    });
  }

  /** A request that the caller may see. Error: `not_found`. */
  async function find(caller: Caller, id: string): Promise<Seen> {
    const approval = await Approval.query(db).findById(id);
    const [seen] = await look(caller, approval ? [approval] : []);
    const visible =
      seen &&
      (seen.refusal === null ||
        seen.own ||
        covers(access.scope(caller, 'workflow:read'), placeOfApproval(seen.approval)));
    if (!visible) throw notFound('approval request', id);
    return seen;
  }

  /** Runs a change of a request that the caller sees, with its row locked. What is not allowed is noted, and told. */
  async function acting(
    caller: Caller,
    id: string,
    action: string,
    act: (work: Work<DispatchTask>, seen: Seen, trx: Knex) => Promise<void> | void,
  ): Promise<void> {
    const known = (await find(caller, id)).approval;
    const at = { ...caller, tenantId: known.tenantId };
    try {
      await commit(at, async (work) => {
        const trx = await work.trx();
        const approval = await lockApproval(trx, id);
        const [seen] = await look(
          await access.current(caller, trx),
          approval ? [approval] : [],
          trx,
        );
        if (!seen) throw notFound('approval request', id);
        await act(work, seen, trx);
      });
    } catch (error) {
      if (!(error instanceof Denied)) throw error;
      await audit.denied(at, action, { reason: error.reason }, { subject: approvalSubject(known) });
      throw denial(error.reason, known);
    }
  }

  /** Closes a request, and lets its run know. */
  function close(
    work: Work<DispatchTask>,
    approval: Approval,
    { actorId }: Caller,
    status: Closing['status'],
    comment: string | undefined,
  ): Approval {
    const after = closeApproval(work, approval, {
      status,
      closedBy: actorId,
      comment: comment ?? null,
      graceMs,
    });
    work.dispatch(wakeApproval(approval.id));
    return after;
  }

  /** Error: `already_decided`, `approval_closed`. */
  function mustBePending({ status, closedBy, closedAt, expiresAt }: Approval): void {
    if (status === 'approved' || status === 'rejected')
      throw new AppError(
        'already_decided',
        `The request was ${status} by ${closedBy ?? ''} at ${closedAt?.toISOString() ?? ''}.`,
      );
    if (status !== 'pending') throw new AppError('approval_closed', `The request is ${status}.`);
    if (expiresAt <= clock.now())
      throw new AppError('approval_closed', `The request expired at ${expiresAt.toISOString()}.`);
  }

  return {
    find,

    /** Requests that the caller made, may decide about or may read, newest first, with how many there are of each status. */
    async list(caller: Caller, filter: ApprovalFilter, page: PageRequest): Promise<ApprovalList> {
      const reader = await readerOf(caller);
      const [{ items, nextKey }, counts] = [
        await pageOfApprovals(db, reader, filter, page),
        await countApprovals(db, reader, filter),
      ];
      return { nextKey, counts: { ...NO_COUNTS, ...counts }, items: await look(caller, items) };
    },

    /**
     * Approves or rejects. With enough approvals, or one rejection, the request is decided. Errors: `not_found`,
     * `permission_denied`, `self_approval`, `not_assigned`, `already_decided`, `approval_closed`, `content_changed`, `version_stale`.
     */
    decide: (
      caller: Caller,
      id: string,
      outcome: DecisionOutcome,
      { comment, contentHash, version }: Word,
    ): Promise<void> =>
      acting(
        caller,
        id,
        outcome === 'approved' ? 'workflow.approve' : 'workflow.reject',
        (work, { approval, refusal, earlier, names }) => {
          if (refusal) throw new Denied(refusal);
          mustBePending(approval);
          checkVersion(approval, version);
          if (contentHash !== undefined && contentHash !== approval.contentHash)
            throw new AppError(
              'content_changed',
              'The contentHash is not that of the request: read it again before you decide.',
            );
          if (earlier)
            throw new AppError(
              'already_decided',
              `You have ${earlier.outcome} the request at ${earlier.decidedAt.toISOString()}.`,
            );
          work.insert(ApprovalDecision, {
            approvalId: id,
            actorId: caller.actorId,
            actorNames: names,
            outcome,
            comment: comment ?? null,
            contentHash: approval.contentHash,
            decidedAt: work.now,
          });
          const decisive =
            outcome === 'rejected' || approval.approvalCount + 1 >= approval.requiredApprovals;
          const after = decisive
            ? close(work, approval, caller, outcome, comment)
            : changed(approval, { approvalCount: approval.approvalCount + 1 });
          if (!decisive)
            work.change(
              approvalChange(
                id,
                { status: 'pending' },
                { approval_count: after.approvalCount, updated_at: work.now },
              ),
            );
          work.audit(
            outcome === 'approved' ? 'workflow.approve' : 'workflow.reject',
            approvalSubject(approval),
            {
              before: approvalView(approval),
              after: { ...approvalView(after), comment: comment ?? null },
            },
          );
          work.emit('workflow.decision.created', approvalSubject(approval), {
            ...approvalEvent(after),
            decision: outcome,
            decidedBy: caller.actorId,
          });
          tellClosed(work, after);
        },
      ),

    /**
     * Takes a request back: the requester as long as nothing has begun, and whoever may decide when it was approved for later.
     * Errors: `not_found`, `not_requester`, `approval_closed`, `execution_begun`, `version_stale`.
     */
    cancel: (
      caller: Caller,
      id: string,
      { comment, version }: Pick<Word, 'comment' | 'version'>,
    ): Promise<void> =>
      acting(caller, id, 'workflow.cancel', (work, seen) => {
        const { approval } = seen;
        if (!mayStop(seen)) throw new Denied('not_requester');
        checkVersion(approval, version);
        if (approval.execution === 'running')
          throw new AppError(
            'execution_begun',
            `Its job ${approval.jobId ?? ''} runs; cancel that.`,
          );
        if (approval.status !== 'pending' && approval.execution !== 'queued')
          throw new AppError('approval_closed', `The request is ${approval.status}.`);
        const after = close(work, approval, caller, 'cancelled', comment);
        tellClosed(work, after);
        work.audit('workflow.cancel', approvalSubject(approval), {
          before: approvalView(approval),
          after: { ...approvalView(after), comment: comment ?? null },
        });
      }),

    /** Says something about a request: its requester, and whoever may decide or write there. Errors: `not_found`, `permission_denied`, `limit_reached`. */
    comment: (caller: Caller, id: string, text: string): Promise<void> =>
      acting(caller, id, 'workflow.comment', async (work, { approval, refusal, own }, trx) => {
        const concerned =
          refusal === null ||
          own ||
          access.holds(caller.rights, 'workflow:write', placeOfApproval(approval));
        if (!concerned) throw new Denied(refusal);
        const last = await ApprovalComment.query(trx)
          .where({ approval_id: id })
          .max('number as number')
          .first();
        const number = (last?.number ?? 0) + 1;
        if (number > MAX_COMMENTS)
          throw new AppError('limit_reached', `A request may have ${MAX_COMMENTS} comments.`);
        work.insert(ApprovalComment, {
          approvalId: id,
          number,
          actorId: caller.actorId,
          text,
          createdAt: work.now,
        });
        work.audit('workflow.comment', approvalSubject(approval), { after: { number } });
        work.emit('workflow.comment.created', approvalSubject(approval), {
          ...approvalEvent(approval),
          number,
          commentedBy: caller.actorId,
        });
      }),

    /**
     * Waits at most `waitMs` for the end of a request, its decision first, then finds it. After a decision (`decided`) what waits
     * for other people, or for a later time, is no reason to wait. Error: `not_found`.
     */
    findAtEnd(
      caller: Caller,
      id: string,
      { decided, ...limits }: WaitLimits & { decided: boolean },
    ): Promise<Seen> {
      const isEnd = ({ approval }: Seen) =>
        hasEnded(approval) || (decided && waitsForOthers(approval, clock.now()));
      return waitForEnd(
        {
          topic: approvalChanged(id),
          read: () => find(caller, id),
          isEnd,
          hasEnded: async () => isEnd(await find(caller, id)),
        },
        limits,
      );
    },
  };
}

/** Where a caller's requests are their own: who a gateway says they are is its word at its tenant. Undefined is everywhere. */
const ownTenantOf = ({ session, tenantId }: Caller): string | undefined =>
  session || tenantId === PLATFORM ? undefined : tenantId;

function isOwn(caller: Caller, { createdBy, tenantId }: Approval): boolean {
  const at = ownTenantOf(caller);
  return createdBy === caller.actorId && (at === undefined || at === tenantId);
}

/** Whoever made a request may cancel it; between approval and begin also whoever may decide. */
export const mayStop = ({ approval, refusal, own }: Seen): boolean =>
  own || (refusal === null && approval.status === 'approved');

const hasEnded = ({ status, execution }: Approval): boolean =>
  status !== 'pending' && execution !== 'queued' && execution !== 'running';

const waitsForOthers = ({ status, executeAt }: Approval, now: Date): boolean =>
  status === 'pending' || (executeAt !== null && executeAt > now);

function denial(reason: DecisionRefusal | 'not_requester', approval: Approval): AppError {
  const place = placeInWords(placeOfApproval(approval));
  if (reason === 'self_approval')
    return new AppError('self_approval', 'Nobody decides about their own request.');
  if (reason === 'not_assigned')
    return new AppError(
      'not_assigned',
      `The request names neither you nor a role that you hold at ${place}.`,
    );
  if (reason === 'not_requester')
    return new AppError(
      'not_requester',
      'Only whoever made a request may cancel it; who may decide about it can stop it between its approval and its begin.',
    );
  return new AppError('permission_denied', `Permission workflow:approve is missing at ${place}.`);
}
