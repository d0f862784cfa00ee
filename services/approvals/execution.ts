import {
  APPROVAL_SUMMARY_COLUMNS,
  approvalChange,
  assigneesOf,
  lockApproval,
} from '../../db/approvals/approvals.ts';
import { NothingChanged, unlessNothing, type Commit, type Work } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Approval } from '../../db/models/Approval.ts';
import { Job } from '../../db/models/Job.ts';
import { reminderTimes } from '../../domain/approvals/approvals.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  approvalWorkflowId,
  type ApprovalStep,
  type DispatchTask,
  type JobRun,
} from '../../temporal/contracts.ts';
import type { ApprovalChecks, Hindrance } from '../approvalChecks.ts';
import {
  approvalEvent,
  approvalSubject,
  approvalView,
  asRequester,
  boundPayload,
  changed,
  closeApproval,
  endExecution,
  tellClosed,
} from './approvalAudit.ts';
import type { JobStarts } from '../jobStarts.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

export type ApprovalRuns = ReturnType<typeof createApprovalRuns>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  clock: Clock;
  checks: ApprovalChecks;
  jobTypes: JobTypes;
  starts: JobStarts;
};

const asPlatform = ({ id, tenantId }: Approval): Caller =>
  systemCaller(tenantId, approvalWorkflowId(id));

const dueReminders = (approval: Approval, now: Date): number =>
  reminderTimes(approval).filter((at) => at <= now).length;

/** What the workflow of a request does to its record. Every step may be repeated: the second time changes nothing. */
export function createApprovalRuns({ db, commit, clock, checks, jobTypes, starts }: Deps) {
  const find = (id: string) =>
    Approval.query(db)
      .findById(id)
      .select(...APPROVAL_SUMMARY_COLUMNS);

  /** Changes a request whose row is locked, when it is still in the state that the change is for. */
  const changing = (
    caller: Caller,
    id: string,
    isRight: (current: Approval) => boolean,
    change: (work: Work<DispatchTask>, current: Approval) => void,
  ): Promise<void> =>
    commit(caller, async (work) => {
      const current = await lockApproval(await work.trx(), id);
      if (!current || !isRight(current)) throw new NothingChanged();
      change(work, current);
    }).catch(unlessNothing(undefined));

  const closing = (
    approval: Approval,
    status: 'expired' | 'cancelled',
    comment: string | null,
    isRight: (current: Approval) => boolean,
  ): Promise<void> =>
    changing(asPlatform(approval), approval.id, isRight, (work, current) => {
      const after = closeApproval(work, current, { status, closedBy: 'system', comment });
      tellClosed(work, after);
      work.audit(
        `workflow.${status === 'expired' ? 'expire' : 'cancel'}`,
        approvalSubject(current),
        { before: approvalView(current), after: { ...approvalView(after), comment } },
      );
    });

  async function jobRunOf(approval: Approval): Promise<JobRun> {
    const job = await Job.query(db)
      .findById(approval.jobId ?? '')
      .select('id', 'type', 'tenant_id')
      .throwIfNotFound();
    return starts.startOf(job, jobTypes.get(job.type));
  }

  function waiting(approval: Approval, now: Date): ApprovalStep {
    const { expiresAt, reminders, requiredApprovals, approvalCount } = approval;
    if (expiresAt <= now) return { do: 'expire' };
    if (dueReminders(approval, now) > reminders) return { do: 'remind' };
    const next = reminderTimes(approval)[reminders] ?? expiresAt;
    const left = requiredApprovals - approvalCount;
    return {
      do: 'wait',
      ms: Math.max(next.getTime() - now.getTime(), MIN_WAIT_MS),
      note: `Waits for ${left === 1 ? 'a decision' : `${left} approvals`} until ${expiresAt.toISOString()}`,
    };
  }

  return {
    /** What there is to do for a request as it is now. */
    async look(id: string): Promise<ApprovalStep> {
      const [approval, now] = [await find(id), clock.now()];
      if (!approval) return { do: 'end', result: { status: 'unknown', execution: 'none' } };
      const { status, execution, executeAt } = approval;
      if (status === 'pending') return waiting(approval, now);
      if (execution === 'running')
        return {
          do: 'follow',
          job: await jobRunOf(approval),
          note: `Approved; runs ${approval.jobId ?? ''}`,
        };
      if (execution !== 'queued') return { do: 'end', result: { status, execution } };
      if (!executeAt || executeAt <= now) return { do: 'execute' };
      return {
        do: 'wait',
        ms: Math.max(executeAt.getTime() - now.getTime(), MIN_WAIT_MS),
        note: `Approved; begins at ${executeAt.toISOString()}`,
      };
    },

    /** Tells those who may decide that a request still waits: once for every reminder that is due, however many were missed. */
    async remind(id: string): Promise<void> {
      const approval = await find(id);
      if (!approval) return;
      const due = dueReminders(approval, clock.now());
      const { userIds: assignedUserIds, roleIds: assignedRoleIds } = (await assigneesOf(db, [id]))(
        id,
      );
      await changing(
        asPlatform(approval),
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
            ...approvalEvent(current),
            assignedUserIds,
            assignedRoleIds,
          });
        },
      );
    },

    /** Ends a request that nobody has decided about in time. */
    async expire(id: string): Promise<void> {
      const approval = await find(id);
      if (approval)
        await closing(
          approval,
          'expired',
          null,
          ({ status, expiresAt }) => status === 'pending' && expiresAt <= clock.now(),
        );
    },

    /** Ends a request that nobody can decide about, or carry out, any more. One whose job runs ends with that. */
    async close(id: string, comment: string): Promise<void> {
      const approval = await find(id);
      if (approval)
        await closing(
          approval,
          'cancelled',
          comment,
          ({ status, execution }) => status === 'pending' || execution === 'queued',
        );
    },

    /**
     * Begins what was bound to a request that was approved: looks again whether it may and whether it would do what was
     * approved, then makes its job, whose run is the caller's to start. What stands against it is its end. Returns by how
     * many milliseconds it came too early by this machine's clock, or 0.
     */
    async execute(id: string): Promise<number> {
      const approval = await Approval.query(db).findById(id);
      const isDue = ({ status, execution }: Approval) =>
        status === 'approved' && execution === 'queued';
      if (!approval || !isDue(approval)) return 0;
      const earlyMs = (approval.executeAt?.getTime() ?? 0) - clock.now().getTime();
      if (earlyMs > 0) return Math.max(earlyMs, MIN_WAIT_MS);
      const hindrance: Hindrance | null = (await checks.isCovered(approval))
        ? await checks.hindranceOf(approval)
        : {
            execution: 'failed',
            error: { code: 'content_changed', message: 'What was approved is not what would run' },
          };
      await changing(asRequester(approval), id, isDue, (work, current) => {
        if (hindrance) {
          endExecution(work, current, hindrance);
          return;
        }
        const { jobType, createdBy, authority } = approval;
        const type = jobTypes.get(jobType ?? '');
        const job = starts.record(
          work,
          type,
          { type: type.name, payload: boundPayload(approval), createdBy },
          asRequester(approval),
          { source: { kind: 'approval', id }, authority },
        );
        work.change(
          approvalChange(
            id,
            { status: 'approved', execution: 'queued' },
            { execution: 'running', job_id: job.id, updated_at: work.now },
          ),
        );
        work.audit('workflow.execute', approvalSubject(current), {
          before: approvalView(current),
          after: approvalView(changed(current, { execution: 'running', jobId: job.id })),
        });
      });
      return 0;
    },
  };
}

/** Clocks of machines differ a little: a wait that is over there need not be over here. */
const MIN_WAIT_MS = 50;
