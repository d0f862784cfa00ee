import { ignoreNoChange, NoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  failedChange,
  findRevokedJobs,
  lockWaitingJobs,
  type RevokedJob,
  type RevokedStatus,
} from '../../db/jobs/revokedJobs.ts';
import { Job } from '../../db/models/Job.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { JobCompletion } from './completion.ts';
import { jobFinishedTopic, jobLogTopic, jobRecord } from './jobAudit.ts';
import { toJobView } from './lifecycle.ts';
import type { ReportJobEnd } from './reportJobEnd.ts';

export type CancelRevoked = ReturnType<typeof createCancelRevoked>;

type Deps = {
  db: Knex;
  commit: Commit;
  jobTypes: JobTypes;
  jobCompletion: JobCompletion;
  reportJobEnd: ReportJobEnd;
  log: Log;
};

const BATCH = 200;

/** How long a request that revokes a token or disables an account cancels jobs itself. */
const REQUEST_MS = 5_000;

const REASON = 'the token is revoked, or the account is disabled, that the job acts for';

const CAUSE = 'authority-revoked';
const PERMISSION_LOST = { code: 'permission_lost', message: `Not started: ${REASON}` };

/**
 * Ends jobs whose token was revoked or whose account was disabled: running ones are cancelled, and those that wait for
 * a slot fail. Thousands may wait, and each would use a slot and a workflow to find out that it may not run. The rights
 * of a job are read when an attempt begins, so all others fail by themselves.
 */
export function createCancelRevoked({
  db,
  commit,
  jobTypes,
  jobCompletion,
  reportJobEnd,
  log,
}: Deps) {
  /** The source is locked before the job, as wherever both change. */
  const cancel = (found: RevokedJob): Promise<boolean> =>
    commit(systemCaller(found.tenantId, CAUSE), async (work) => {
      await jobCompletion.lockSource(work, found);
      const job = await Job.query(await work.trx())
        .findById(found.id)
        .forUpdate();
      if (job?.status !== 'running' || job.cancelRequestedAt) throw new NoChange();
      const before = job.$clone();
      await jobCompletion.requestCancel(work, job, `Cancellation requested: ${REASON}`);
      const extra = { cancelRequested: true, reason: 'authority_revoked' };
      jobRecord.acted(work, 'cancel', job, { before, after: job, extra });
      return true;
    }).catch(ignoreNoChange(false));

  /** Ends jobs of one tenant, together. */
  const failWaiting = (group: readonly RevokedJob[]): Promise<boolean> =>
    commit(systemCaller(group[0]?.tenantId ?? PLATFORM, CAUSE), async (work) => {
      for (const found of group) await jobCompletion.lockSource(work, found);
      const jobs = await lockWaitingJobs(
        await work.trx(),
        group.map(({ id }) => id),
      );
      if (jobs.length === 0) throw new NoChange();
      const ids = jobs.map(({ id }) => id);
      const error = PERMISSION_LOST;
      const topics = ids.flatMap((id) => [jobFinishedTopic(id), jobLogTopic(id)]);
      const line = `Failed: ${error.code}`;
      work.change(failedChange(ids, { error, line, now: work.now, topics }));
      for (const job of jobs) {
        const failed = { ...toJobView(job), status: 'failed' as const, error };
        jobRecord.acted(work, 'fail', job, { before: job, after: failed });
        await jobCompletion.onJobFinished(work, failed);
        work.onCommitted(() =>
          reportJobEnd(job, { status: 'failed', code: error.code, at: work.now }),
        );
      }
      return true;
    }).catch(ignoreNoChange(false));

  /**
   * Jobs that end in one commit: those of a tenant, but each by itself whose source has to be locked. Jobs of several
   * steps are left to their workflow, which also ends the record that they are about.
   */
  function groupsOf(jobs: readonly RevokedJob[]): RevokedJob[][] {
    const ending = jobs.filter(({ type }) => jobTypes.find(type)?.lane !== 'workflow');
    const keyOf = (job: RevokedJob) => (jobCompletion.hasHooks(job) ? job.id : job.tenantId);
    return [...Map.groupBy(ending, keyOf).values()];
  }

  /** Pages of such jobs, until `signal` aborts. */
  async function* pages(status: RevokedStatus, signal: AbortSignal): AsyncGenerator<RevokedJob[]> {
    let afterId = '';
    for (let more = true; more && !signal.aborted;) {
      const jobs = await findRevokedJobs(db, status, { afterId, limit: BATCH });
      yield jobs;
      afterId = jobs.at(-1)?.id ?? afterId;
      more = jobs.length === BATCH;
    }
  }

  async function cancelAll(signal: AbortSignal): Promise<void> {
    const operation = 'ending a job of a revoked authority';
    for await (const jobs of pages('running', signal))
      await mapConcurrently(log, signal, operation, jobs, cancel);
    for await (const jobs of pages('waiting', signal))
      await mapConcurrently(log, signal, operation, groupsOf(jobs), failWaiting);
  }

  return {
    /** All such jobs, until `signal` aborts. */
    cancelAll,

    /**
     * The same after a commit that revoked or disabled something, which does not fail with it: the
     * reconciler cancels what is left.
     */
    afterCommit: (): Promise<void> =>
      cancelAll(AbortSignal.timeout(REQUEST_MS)).catch((error: unknown) =>
        log.warn({ err: error }, 'jobs of a revoked authority are left to the reconciler'),
      ),
  };
}
