import type { Commit } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { purgeKeys } from '../../db/core/idempotency.ts';
import { purgeImportRows } from '../../db/inventory/importRows.ts';
import { purgeExpired } from '../../db/core/purge.ts';
import { takeUnsettled } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import { KEEP_KEYS_MS } from '../../domain/idempotency.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import {
  jobWorkflowId,
  type DispatchTask,
  type InspectWorkflow,
  type WorkflowState,
} from '../../temporal/contracts.ts';
import { inRounds } from '../inRounds.ts';
import type { JobRuns } from '../jobRuns.ts';
import { subject } from './jobAudit.ts';
import type { JobStarts } from '../jobStarts.ts';
import type { JobTypes } from '../jobTypes/registry.ts';

/** The rows of an import can be read for so long; the import itself stays. */
const KEEP_IMPORT_ROWS_MS = 30 * 86_400_000;

export type Reconcile = ReturnType<typeof createReconcile>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  runs: JobRuns;
  jobTypes: JobTypes;
  clock: Clock;
  log: Log;
  starts: JobStarts;
  inspect: InspectWorkflow;
  /** A job is left alone for this long after it was created or last looked at. */
  graceMs: number;
};

const PURGE_BATCH = 5_000;

/**
 * Finds jobs that claim to wait or run and whose workflow is gone or closed, and gives them an end or a start,
 * so that no record stays `queued` or `running` for ever.
 */
export function createReconcile({
  db,
  commit,
  runs,
  jobTypes,
  clock,
  log,
  starts,
  inspect,
  graceMs,
}: Deps) {
  /** A queued job without a workflow and without an outbox row would wait for ever: owe its start again. */
  async function restart(job: Job) {
    const type = jobTypes.find(job.type);
    if (!type) return;
    await commit(systemCaller(job.tenantId, 'reconcile'), (work) => {
      work.audit('job.redispatch', subject(job));
      work.dispatch(starts.startOf(job, type));
    });
  }

  async function look(job: Job, owed: boolean): Promise<boolean> {
    if (owed) return false;
    const state = await inspect(jobWorkflowId(job.id));
    if (state.found && state.status === 'running') return false;
    log.warn(
      { jobId: job.id, status: job.status, workflow: state },
      'reconciling a job with its workflow',
    );
    if (job.status === 'queued' && !state.found) return restart(job).then(() => true);
    const { status, code } = verdict(state);
    return runs.settle({ jobId: job.id, runId: job.runId ?? '' }, status, code);
  }

  return {
    /** One round over everything that is due, until `signal` aborts. Returns how many jobs were put right. */
    jobs(signal: AbortSignal): Promise<number> {
      const now = clock.now();
      return inRounds({ db, log }, signal, {
        name: 'reconciling a job',
        look,
        workflowIdOf: ({ id }) => jobWorkflowId(id),
        take: (limit) =>
          takeUnsettled(db, { before: new Date(now.getTime() - graceMs), now, limit }),
      });
    },

    /** Forgets what is kept only for a time. */
    async purge(signal: AbortSignal): Promise<void> {
      const before = new Date(clock.now().getTime() - KEEP_KEYS_MS);
      while ((await purgeKeys(db, before, PURGE_BATCH)) === PURGE_BATCH && !signal.aborted);
      while ((await purgeExpired(db, before, PURGE_BATCH)) === PURGE_BATCH && !signal.aborted);
      const imports = {
        kept: new Date(clock.now().getTime() - KEEP_IMPORT_ROWS_MS),
        abandoned: before,
      };
      while ((await purgeImportRows(db, imports, PURGE_BATCH)) === PURGE_BATCH && !signal.aborted);
    },
  };
}

function verdict(state: WorkflowState): { status: 'failed' | 'cancelled'; code: string } {
  if (!state.found) return { status: 'failed', code: 'workflow_lost' };
  if (state.status === 'cancelled') return { status: 'cancelled', code: 'cancelled' };
  if (state.status === 'terminated') return { status: 'failed', code: 'workflow_terminated' };
  return { status: 'failed', code: 'workflow_closed' };
}
