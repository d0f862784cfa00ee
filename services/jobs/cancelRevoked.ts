import { ignoreNoChange, NoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { findRevokedJobs, type RevokedJob } from '../../db/jobs/revokedJobs.ts';
import { Job } from '../../db/models/Job.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import type { Log } from '../../platform/log.ts';
import { mapConcurrently } from '../shared/mapConcurrently.ts';
import type { JobCompletion } from './completion.ts';
import { jobRecord } from './jobAudit.ts';

export type CancelRevoked = ReturnType<typeof createCancelRevoked>;

type Deps = { db: Knex; commit: Commit; jobCompletion: JobCompletion; log: Log };

const BATCH = 200;

/** How long a request that revokes a token or disables an account cancels jobs itself. */
const REQUEST_MS = 5_000;

const REASON = 'the token is revoked, or the account is disabled, that the job acts for';

/**
 * Cancels running jobs whose token was revoked or whose account was disabled. The rights of a job are
 * read when an attempt begins, so queued ones fail by themselves.
 */
export function createCancelRevoked({ db, commit, jobCompletion, log }: Deps) {
  /** The source is locked before the job, as wherever both change. */
  const cancel = (found: RevokedJob): Promise<boolean> =>
    commit(systemCaller(found.tenantId, 'authority-revoked'), async (work) => {
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

  async function cancelAll(signal: AbortSignal): Promise<void> {
    let afterId = '';
    for (let more = true; more && !signal.aborted;) {
      const jobs = await findRevokedJobs(db, { afterId, limit: BATCH });
      await mapConcurrently(log, signal, 'cancelling a job of a revoked authority', jobs, cancel);
      afterId = jobs.at(-1)?.id ?? afterId;
      more = jobs.length === BATCH;
    }
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
