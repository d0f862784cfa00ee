import type { Note } from '../db/commit.ts';
import type { Knex } from '../db/core/knex.ts';
import { claimSteps, jobChange, noteJobChange } from '../db/jobs/jobs.ts';
import { Job } from '../db/models/Job.ts';
import type { LogLevel } from '../domain/jobs/jobs.ts';
import { JobFailure, type SteppedRun, type StepsOf } from '../domain/jobType.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { createRunLog, type RunLog } from './jobs/runLog.ts';
import { AttemptFailed, resultText, toJobFailure, type JobRuns, type RunOf } from './jobRuns.ts';
import { jobLogged } from './jobs/jobAudit.ts';
import type { JobTypes } from './jobTypes/registry.ts';
import { persistently } from './persistently.ts';

export type JobSteps = ReturnType<typeof createJobSteps>;

/** What a step may do beside its own business. */
export type StepTools = StepsOf & {
  signal: AbortSignal;
  log(level: LogLevel, message: string, data?: object): void;
  progress(percent: number, message?: string): void;
};

/** A step of a job as Temporal counts it. */
export type StepAttempt = { jobId: string; attempt: number; signal: AbortSignal };

type Deps = {
  db: Knex;
  note: Note;
  jobTypes: JobTypes;
  runs: Pick<JobRuns, 'parts'>;
  clock: Clock;
  log: Log;
};

/** What the workflows of a job in steps do to its record: its begin, each step with its log and progress, its end. */
export function createJobSteps({ db, note, jobTypes, runs: { parts }, clock, log }: Deps) {
  function steppedType(job: Job) {
    const type = jobTypes.find(job.type);
    if (type?.lane === 'steps') return type;
    throw new JobFailure('unknown_job_type', 'This worker does not know the type', {
      retryable: false,
    });
  }

  const fail = async (job: Job, run: RunLog, error: unknown, attempt: number): Promise<never> => {
    await run.settled();
    return parts.failAttempt(job, 'steps', run, toJobFailure(error, log, job), attempt);
  };

  /** Writes what a step has logged and nobody has written yet. */
  async function flush(job: Job, run: RunLog): Promise<void> {
    await run.settled();
    const { lines, progress } = run.take();
    if (lines.length === 0 && progress.progress === undefined) return;
    const guard = {
      statuses: ['running'],
      attempt: { runId: job.runId ?? '', number: job.attempts },
    };
    await persistently(
      () =>
        note((on, now) =>
          noteJobChange(
            on,
            jobChange(job.id, guard, { ...progress, updated_at: now }, lines, [jobLogged(job.id)], {
              newVersion: false,
            }),
          ),
        ),
      'steps',
    );
  }

  return {
    /** Claims a job for its run and says which workflow does the work; null when this run has nothing to do. */
    async begin({ jobId, runId }: RunOf): Promise<SteppedRun | null> {
      const job = await note((on, now) => claimSteps(on, { jobId, runId, now }));
      if (!job) return null;
      await using run = createRunLog({ note, clock, log, job });
      try {
        const type = steppedType(job);
        const caller = await parts.callerOf(job, type);
        return await type.begin(job.payload, {
          jobId,
          caller,
          source: { kind: job.sourceKind, id: job.sourceId },
        });
      } catch (error) {
        if (!(error instanceof JobFailure)) throw error;
        return await fail(
          job,
          run,
          new JobFailure(error.code, error.message, { retryable: false }),
          1,
        );
      }
    },

    /**
     * Takes a step for a job that runs, with the rights that whoever it acts for holds now. Errors: `AttemptFailed`, the reason of
     * `signal`, database errors.
     */
    async step<T>(
      { jobId, attempt, signal }: StepAttempt,
      take: (tools: StepTools) => Promise<T>,
    ): Promise<T> {
      const job = await Job.query(db).findById(jobId);
      if (job?.status !== 'running') throw new AttemptFailed('job_ended', null);
      await using run = createRunLog({ note, clock, log, job });
      try {
        const caller = await parts.callerOf(job, steppedType(job));
        const result = await take({
          jobId,
          caller,
          source: { kind: job.sourceKind, id: job.sourceId },
          payload: job.payload,
          signal,
          log: run.log,
          progress: run.progress,
        });
        await flush(job, run);
        return result;
      } catch (error) {
        if (signal.aborted) {
          await flush(job, run).catch(() => undefined);
          throw signal.reason;
        }
        return await fail(job, run, error, attempt);
      }
    },

    /** Ends a job whose steps are all done. */
    async end({ jobId, runId }: RunOf): Promise<void> {
      const job = await Job.query(db).findById(jobId);
      if (job?.status !== 'running' || job.runId !== runId) return;
      await using run = createRunLog({ note, clock, log, job });
      const result = resultText(await steppedType(job).result(jobId));
      run.note('info', 'Succeeded');
      run.progress(100);
      await run.settled();
      await parts.finish(job, run.take(), {
        status: 'succeeded',
        result,
        guard: { statuses: ['running'], attempt: { runId, number: job.attempts } },
      });
    },
  };
}
