import {
  APPROVAL_SUMMARY_COLUMNS,
  approvalChange,
  assigneesOf,
  findDecision,
  lockApproval,
} from '../../db/approvals/approvals.ts';
import { readDatabaseTime } from '../../db/core/databaseTime.ts';
import { NoChange, ignoreNoChange, type Commit, type Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Approval } from '../../db/models/Approval.ts';
import { Job } from '../../db/models/Job.ts';
import { reminderTimes } from '../../domain/approvals/approvals.ts';
import { boundPayload, callerForRequester, withChanges } from '../../domain/approvals/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Rights } from '../../domain/access/scope.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { isFinal, type JobError } from '../../domain/jobs/jobs.ts';
import type { Target } from '../../domain/jobs/targets.ts';
import { isPermissionDenied, isQuotaExceeded } from '../../domain/shared/errors.ts';
import type { ApprovalState, StartJobTask } from '../../domain/dispatch/tasks.ts';
import { approvalWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { permissionLost, TARGET_NOT_FOUND, type ApprovalChecks, type Blocker } from './checks.ts';
import { approvalEventData, approvalSubject, approvalSnapshot } from './approvalAudit.ts';
import { closeApproval, emitClosed } from './closeApproval.ts';
import { executionOutcomeOf, finishExecution } from './finishExecution.ts';
import type { JobCompletion } from '../jobs/completion.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import { jobRecord } from '../jobs/jobAudit.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

export type ApprovalExecution = ReturnType<typeof createApprovalExecution>;

type Deps = {
  db: Knex;
  commit: Commit;
  checks: ApprovalChecks;
  jobTypes: JobTypes;
  jobFactory: JobFactory;
  jobCompletion: JobCompletion;
};

const systemCallerFor = ({ id, tenantId }: Approval): Caller =>
  systemCaller(tenantId, approvalWorkflowId(id));

const dueReminders = (approval: Approval, now: Date): number =>
  reminderTimes(approval).filter((at) => at <= now).length;

/**
 * The steps of the approval workflow. Each may be repeated: the second time it changes nothing. Whether a time has
 * come is decided by the clock of the database, not by that of the worker.
 */
export function createApprovalExecution({
  db,
  commit,
  checks,
  jobTypes,
  jobFactory,
  jobCompletion,
}: Deps) {
  const findSummary = (id: string) =>
    Approval.query(db)
      .findById(id)
      .select(...APPROVAL_SUMMARY_COLUMNS);

  /**
   * Changes a request with its row locked, if it is still in a state that the change applies to.
   */
  const changeLocked = (
    caller: Caller,
    id: string,
    isApplicable: (current: Approval) => boolean,
    change: (work: Work, current: Approval) => void,
  ): Promise<void> =>
    commit(caller, async (work) => {
      const current = await lockApproval(await work.trx(), id);
      if (!current || !isApplicable(current)) throw new NoChange();
      change(work, current);
    }).catch(ignoreNoChange(undefined));

  const closeLocked = (
    approval: Approval,
    status: 'expired' | 'cancelled',
    comment: string | null,
    isApplicable: (current: Approval) => boolean,
  ): Promise<void> =>
    changeLocked(systemCallerFor(approval), approval.id, isApplicable, (work, current) => {
      const after = closeApproval(work, current, { status, closedBy: 'system', comment });
      emitClosed(work, after);
      work.audit(
        `workflow.${status === 'expired' ? 'expire' : 'cancel'}`,
        approvalSubject(current),
        { before: approvalSnapshot(current), after: { ...approvalSnapshot(after), comment } },
      );
    });

  /**
   * Cancels a request that has no workflow any more. A request whose job runs finishes with the
   * job instead.
   */
  async function cancel(id: string, comment: string): Promise<void> {
    const approval = await findSummary(id);
    if (approval)
      await closeLocked(
        approval,
        'cancelled',
        comment,
        ({ status, execution }) => status === 'pending' || execution === 'queued',
      );
  }

  /** Requests the cancellation of the job of a request. The request is locked before it, as wherever both change. */
  const cancelBoundJob = (approval: Approval): Promise<void> =>
    commit(systemCallerFor(approval), async (work) => {
      const trx = await work.trx();
      const current = await lockApproval(trx, approval.id);
      const jobId = current?.execution === 'running' ? current.jobId : null;
      const job = jobId === null ? undefined : await Job.query(trx).findById(jobId).forUpdate();
      if (!job || isFinal(job.status) || job.cancelRequestedAt) throw new NoChange();
      const before = job.$clone();
      await jobCompletion.requestCancel(work, job);
      const extra = { cancelRequested: true, reason: 'approval_workflow_cancelled' };
      jobRecord.acted(work, 'cancel', job, { before, after: job, extra });
    }).catch(ignoreNoChange(undefined));

  /**
   * True while the execution is left to workers of another version, which know the job type: for some time from when
   * the request was both approved and due.
   */
  const isLeftToOthers = ({ jobType, executeAt, updatedAt }: Approval, now: Date): boolean =>
    jobType !== null &&
    !jobTypes.find(jobType) &&
    now.getTime() - Math.max(Number(executeAt), updatedAt.getTime()) < OTHERS_EXECUTE_MS;

  /** How the bound job is started; null if only workers of another version know its type. */
  async function boundJobRun(approval: Approval): Promise<StartJobTask | null> {
    const job = await Job.query(db)
      .findById(assertDefined(approval.jobId, 'approval.jobId'))
      .select('id', 'type', 'tenant_id')
      .throwIfNotFound();
    await jobTypes.refreshUnknown(job.type);
    const type = jobTypes.find(job.type);
    return type ? jobFactory.startTask(job, type) : null;
  }

  /**
   * Ends the execution of a request whose bound job has ended or is missing. Returns false if the job
   * has not ended.
   */
  async function finishWithEndedJob(approval: Approval): Promise<boolean> {
    const jobId = assertDefined(approval.jobId, 'approval.jobId');
    const job = await Job.query(db).findById(jobId).select('type', 'status', 'error');
    const status = job?.status ?? 'failed';
    if (!isFinal(status)) return false;
    const outcome = executionOutcomeOf({
      status,
      error: job ? job.error : JOB_MISSING,
      type: job?.type ?? '',
    });
    await changeLocked(
      systemCallerFor(approval),
      approval.id,
      (current) => current.execution === 'running' && current.jobId === jobId,
      (work, current) => finishExecution(work, current, outcome),
    );
    return true;
  }

  /**
   * Adds the bound job of a request to a commit. Its run is a child of the request's workflow. Error:
   * `permission_denied` if the rights of the requester, `held`, exclude its type.
   */
  function addBoundJob(
    work: Work,
    current: Approval,
    approval: Approval,
    { held, target }: { held: Rights; target: Target | null },
  ): void {
    const { id, jobType, createdBy, authority, typeDigest } = approval;
    const job = jobFactory.createWithoutStart(work, {
      type: jobTypes.get(assertDefined(jobType, 'approval.jobType')),
      payload: boundPayload(approval),
      target,
      createdBy,
      caller: callerForRequester(approval, held),
      source: { kind: 'approval', id },
      authority,
      typeDigest,
    });
    work.change(
      approvalChange(
        id,
        { status: 'approved', execution: 'queued' },
        { execution: 'running', job_id: job.id, updated_at: work.now },
      ),
    );
    work.audit('workflow.execute', approvalSubject(current), {
      before: approvalSnapshot(current),
      after: approvalSnapshot(withChanges(current, { execution: 'running', jobId: job.id })),
    });
  }

  function pendingState(approval: Approval, now: Date): ApprovalState {
    const { expiresAt, reminders, requiredApprovals, approvalCount } = approval;
    const nextReminderAt = reminderTimes(approval)[reminders];
    return {
      phase: 'pending',
      missingApprovals: requiredApprovals - approvalCount,
      expiresAt: expiresAt.toISOString(),
      expiresInMs: millisecondsUntil(expiresAt, now),
      reminderInMs: nextReminderAt ? millisecondsUntil(nextReminderAt, now) : null,
    };
  }

  return {
    finishWithEndedJob,

    /**
     * The state of a request as its workflow needs it. A request that does not exist is finished.
     */
    async loadState(id: string): Promise<ApprovalState> {
      let approval = await findSummary(id);
      // The job ends its request as well, except in a restore by 0.2.0: it has ended the job only.
      // until 0.4: remove the call; `approval` is a constant.
      if (approval?.execution === 'running' && (await finishWithEndedJob(approval)))
        approval = await findSummary(id);
      if (!approval) return { phase: 'finished', result: { status: 'unknown', execution: 'none' } };
      const now = await readDatabaseTime(db);
      const { status, execution, executeAt } = approval;
      if (status === 'pending') return pendingState(approval, now);
      if (execution === 'running') return { phase: 'running', job: await boundJobRun(approval) };
      if (execution !== 'queued') return { phase: 'finished', result: { status, execution } };
      if (!executeAt || executeAt <= now) return { phase: 'queued' };
      return {
        phase: 'deferred',
        executeAt: executeAt.toISOString(),
        startsInMs: millisecondsUntil(executeAt, now),
      };
    },

    /**
     * Whether the request has a committed decision or cancellation with this id. Signals can be
     * sent by hand, so `decisionId` may be anything.
     */
    async confirmDecision(id: string, decisionId: unknown): Promise<boolean> {
      if (typeof decisionId !== 'string' || !DECISION_ID.test(decisionId)) return false;
      return (await findDecision(db, id, decisionId)) !== undefined;
    },

    /**
     * Reminds the assignees of a pending request. Several reminders that are due are sent as one.
     */
    async sendReminder(id: string): Promise<void> {
      const approval = await findSummary(id);
      if (!approval) return;
      const due = dueReminders(approval, await readDatabaseTime(db));
      const { userIds: assignedUserIds, roleIds: assignedRoleIds } = (await assigneesOf(db, [id]))(
        id,
      );
      await changeLocked(
        systemCallerFor(approval),
        id,
        ({ status, reminders }) => status === 'pending' && reminders < due,
        (work, current) => {
          work.change(
            approvalChange(
              id,
              { status: 'pending', reminders: current.reminders },
              { reminders: due },
              { newVersion: false },
            ),
          );
          work.audit('workflow.remind', approvalSubject(current), {
            after: { reminder: due, expiresAt: current.expiresAt },
          });
          work.emit('workflow.reminder', approvalSubject(current), {
            ...approvalEventData(current),
            assignedUserIds,
            assignedRoleIds,
          });
        },
      );
    },

    /** Expires a pending request whose `expiresAt` has passed. */
    async expire(id: string): Promise<void> {
      const approval = await findSummary(id);
      if (!approval) return;
      const now = await readDatabaseTime(db);
      await closeLocked(
        approval,
        'expired',
        null,
        ({ status, expiresAt }) => status === 'pending' && expiresAt <= now,
      );
    },

    cancel,

    /**
     * Cancels a request whose workflow was cancelled in Temporal, or its bound job. That job is no child of the workflow
     * before the workflow has started it, and if the reconciler has.
     */
    async cancelWithJob(id: string, comment: string): Promise<void> {
      await cancel(id, comment);
      // Read again: the job may have been created in the meantime.
      const approval = await findSummary(id);
      if (approval?.execution === 'running') await cancelBoundJob(approval);
    },

    /**
     * Creates the job of an approved request, after checking permissions, content and plan again.
     * If the request is blocked, it ends as failed or stale. The caller starts the run of the job.
     * Returns the milliseconds after which to ask again: until `executeAt`, or because
     * only workers of another version know the job type; or 0.
     */
    async createBoundJob(id: string): Promise<number> {
      const approval = await Approval.query(db).findById(id);
      if (!approval || !isDue(approval)) return 0;
      if (approval.jobType !== null) await jobTypes.refreshUnknown(approval.jobType);
      const now = await readDatabaseTime(db);
      if (approval.executeAt && approval.executeAt > now)
        return millisecondsUntil(approval.executeAt, now);
      if (isLeftToOthers(approval, now)) return ASK_OTHERS_MS;
      const checked: Blocker | null = (await checks.hasRequiredApprovals(approval))
        ? await checks.findBlocker(approval)
        : {
            execution: 'failed',
            error: {
              code: 'content_mismatch',
              message: 'The content of the request is not what was approved',
            },
          };
      // Read after the other checks, which may take long: the last check is made with these.
      const held = await checks.rightsOfRequester(approval);
      const target = checked ? null : await checks.findJobTarget(approval, held);
      const blocker = target === undefined ? TARGET_NOT_FOUND : checked;
      const execute = (blocker: Blocker | null) =>
        changeLocked(callerForRequester(approval), id, isDue, (work, current) => {
          if (blocker) finishExecution(work, current, blocker);
          else addBoundJob(work, current, approval, { held, target: target ?? null });
        });
      await execute(blocker).catch((error: unknown) => {
        if (isPermissionDenied(error)) return execute(permissionLost(approval));
        if (!isQuotaExceeded(error)) throw error;
        const { code, message } = error;
        return execute({ execution: 'failed', error: { code, message } });
      });
      return 0;
    },

    /** Ends the execution of an approved request whose job cannot be created, for example because its plan crashes the workers. */
    async failExecution(id: string, error: JobError): Promise<void> {
      const approval = await findSummary(id);
      if (!approval) return;
      await changeLocked(systemCallerFor(approval), id, isDue, (work, current) =>
        finishExecution(work, current, { execution: 'failed', error }),
      );
    },
  };
}

/** True while the bound job of an approved request is still to be created. */
const isDue = ({ status, execution }: Approval): boolean =>
  status === 'approved' && execution === 'queued';

/** The error of a request whose bound job does not exist. */
const JOB_MISSING: JobError = {
  code: 'outcome_unknown',
  message: 'The job of the request no longer exists',
};

/** How often, and for how long, a request waits for a worker that knows its job type. */
const ASK_OTHERS_MS = 5_000;
const OTHERS_EXECUTE_MS = 600_000;

/** Signals can be sent by hand, with any argument. */
const DECISION_ID = /^dec_[0-9a-z]{26}$/;

/**
 * The clocks of Temporal and the database differ a little. Shorter waits would be repeated many times before a time
 * has come by both.
 */
const MIN_WAIT_MS = 50;

/** 0 when the time has come, otherwise at least `MIN_WAIT_MS`. */
const millisecondsUntil = (time: Date, now: Date): number =>
  time <= now ? 0 : Math.max(time.getTime() - now.getTime(), MIN_WAIT_MS);
