import { setTimeout as sleep } from 'node:timers/promises';
import { ignoreNoChange, type Commit, type DispatchUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { LogLine } from '../../db/jobs/jobs.ts';
import { Job } from '../../db/models/Job.ts';
import {
  recordFirstAttempts,
  writeFirstAttempts,
  type FirstAttemptOutcome,
} from '../../db/webhooks/firstAttempts.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { FailedFirstAttempt } from '../../domain/dispatch/tasks.ts';
import type { JobFailure } from '../../domain/jobs/jobType.ts';
import { systemCaller } from '../../domain/shared/caller.ts';
import {
  DELIVER_JOB_TYPE,
  ENDPOINT_REMOVED,
  isUsableAnswer,
} from '../../domain/webhooks/webhooks.ts';
import { createBatches } from '../../platform/batches.ts';
import { useConnectionsForProcess } from '../../platform/connectionUser.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import { jobFinishedTopic, jobLogTopic } from '../jobs/jobAudit.ts';
import { checkedBefore, planRetry, type JobLifecycle } from '../jobs/lifecycle.ts';
import type { ReportJobEnd } from '../jobs/reportJobEnd.ts';
import { retryWrite } from '../jobs/retryWrite.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import type { HealthRecorder } from './health.ts';
import type { FirstAttempt } from './sendEvent.ts';
import type { SendResult } from './sender.ts';
import { webhookAudit } from './webhookAudit.ts';

/** A first attempt that has ended. */
export type EndedAttempt = {
  attempt: FirstAttempt;
  outcome: SendResult;
  /** Undefined when the endpoint has accepted the delivery. */
  failure: JobFailure | undefined;
  notEndpointFault: boolean;
  /** When the attempt started, and so nearly when the job was created: one commit did both. */
  startedAt: Date;
  finishedAt: Date;
};

/** Records how an attempt ended. Attempts that end together are recorded together. */
export type FirstAttemptRecorder = (ended: EndedAttempt) => Promise<void>;

type Deps = {
  db: Knex;
  commit: Commit;
  jobLifecycle: JobLifecycle;
  reportJobEnd: ReportJobEnd;
  dispatchUnaudited: DispatchUnaudited;
  jobTypes: JobTypes;
  jobFactory: JobFactory;
  health: HealthRecorder;
};

/** How many outcomes one commit records. Each has at most some kilobytes. */
const MAX_BATCH = 100;

/**
 * How long an outcome waits for those that end at the same time: one commit for several costs little
 * more than one for one, and only the slot of the delivery is held for longer.
 */
const GATHER_MS = 5;

const CAUSE = 'first-attempts';

/** The code of an attempt that was given up, because its process stops. */
const INTERRUPTED = 'interrupted';

type FailedAttempt = EndedAttempt & { failure: JobFailure };

const line = (
  level: LogLine['level'],
  message: string,
  at: Date,
  data: object | null = null,
): LogLine => ({ attempt: 1, level, message, data, at });

/** The line about the response; none if there was none. */
const responseLines = ({ outcome, finishedAt }: EndedAttempt): LogLine[] =>
  outcome.httpStatus === null
    ? []
    : [
        line('info', `The endpoint answered ${outcome.httpStatus}`, finishedAt, {
          durationMs: outcome.durationMs,
        }),
      ];

const baseOf = ({ attempt, outcome, finishedAt }: EndedAttempt) => ({
  deliveryId: attempt.deliveryId,
  jobId: attempt.jobId,
  number: attempt.number,
  outcome,
  finishedAt,
});

function toSuccess(ended: EndedAttempt): FirstAttemptOutcome {
  const { httpStatus, durationMs } = ended.outcome;
  return {
    ...baseOf(ended),
    succeeded: true,
    result: { delivered: true, httpStatus, durationMs },
    lines: [...responseLines(ended), line('info', 'Succeeded in attempt 1', ended.finishedAt)],
  };
}

/** A failure, and how the workflow of the job goes on after it. */
function toFailure(ended: FailedAttempt): {
  recorded: FirstAttemptOutcome;
  next: FailedFirstAttempt | undefined;
} {
  const { attempt, failure, finishedAt } = ended;
  const { code, message } = failure;
  const error = { code, message };
  if (code === INTERRUPTED) {
    const lines = [line('warn', 'Attempt 1 was interrupted', finishedAt)];
    const recorded = { ...baseOf(ended), error, lines, checkedAt: finishedAt };
    return { recorded: { ...recorded, succeeded: false }, next: undefined };
  }
  const plan = planRetry(attempt.retryPolicy, 1, failure);
  return {
    recorded: {
      ...baseOf(ended),
      succeeded: false,
      error,
      checkedAt: checkedBefore(plan.retryInMs ?? 0, finishedAt),
      lines: [...responseLines(ended), line('error', plan.line, finishedAt)],
    },
    next: { code, retryInMs: plan.retryInMs },
  };
}

/** Records the outcomes of first attempts, and starts the workflows of those that failed. */
export function createFirstAttemptRecorder(deps: Deps): FirstAttemptRecorder {
  const { db, commit, dispatchUnaudited, jobTypes, jobFactory, health, reportJobEnd } = deps;

  /**
   * Ends the job of a delivery whose endpoint was removed. That disables the webhook, also while
   * Temporal is away. The workflow of the job, which shows the failure, finds it ended.
   */
  async function endRemoved({ attempt: { jobId }, finishedAt }: EndedAttempt): Promise<void> {
    const job = await Job.query(db).findById(jobId);
    if (job?.status !== 'running' || job.runId !== null || !job.error) return;
    const lines = [line('error', `Failed: ${job.error.code}`, finishedAt)];
    const guard = { statuses: ['running'] };
    await deps.jobLifecycle.finish(
      job,
      { lines, progress: {} },
      { status: 'failed', guard, error: job.error },
    );
  }

  async function recordSuccesses(ended: readonly EndedAttempt[]) {
    if (ended.length === 0) return;
    const isChanged = await commit(systemCaller(PLATFORM, CAUSE), (work) => {
      const topics = ended.flatMap(({ attempt: { jobId } }) => [
        jobFinishedTopic(jobId),
        jobLogTopic(jobId),
      ]);
      work.change(recordFirstAttempts(ended.map(toSuccess), topics));
      for (const [id, some] of Map.groupBy(ended, ({ attempt }) => attempt.webhookId))
        work.audit('webhook.complete_deliveries', webhookAudit.subject({ id }), {
          after: { deliveries: some.length },
          tenantId: some[0]?.attempt.tenantId ?? PLATFORM,
        });
      return true;
      // They were recorded by a commit whose answer was lost, or others have ended the deliveries.
    }).catch(ignoreNoChange(false));
    if (!isChanged) return;
    for (const { attempt, startedAt, finishedAt } of ended) {
      const { jobId: id, tenantId } = attempt;
      const times = { attempts: 1, createdAt: startedAt, startedAt };
      const end = { status: 'succeeded', code: null, at: finishedAt } as const;
      reportJobEnd({ id, type: DELIVER_JOB_TYPE, tenantId, ...times }, end);
    }
  }

  async function recordFailures(ended: readonly FailedAttempt[]) {
    if (ended.length === 0) return;
    const failures = ended.map((each) => ({ ...toFailure(each), attempt: each.attempt }));
    await dispatchUnaudited(async (trx) => {
      const change = recordFirstAttempts(
        failures.map(({ recorded }) => recorded),
        failures.map(({ attempt: { jobId } }) => jobLogTopic(jobId)),
      );
      const changed = await writeFirstAttempts(trx, change);
      return failures
        .filter(({ attempt }) => changed.has(attempt.jobId))
        .map(({ attempt: { jobId, tenantId }, next }) =>
          jobFactory.startTask(
            { id: jobId, type: DELIVER_JOB_TYPE, tenantId },
            jobTypes.get(DELIVER_JOB_TYPE),
            next,
          ),
        );
    });
  }

  async function recordAll(ended: readonly EndedAttempt[]): Promise<void> {
    const isFailed = (each: EndedAttempt): each is FailedAttempt => each.failure !== undefined;
    await recordSuccesses(ended.filter((each) => !isFailed(each)));
    await recordFailures(ended.filter(isFailed));
  }

  /** One outcome that cannot be written must hold up no other one: each is retried by itself. */
  const recordAlone = (ended: EndedAttempt): Promise<void> =>
    useConnectionsForProcess(() => retryWrite(() => recordAll([ended]), 'delivery'));

  const recordTogether = createBatches<EndedAttempt, boolean>(
    MAX_BATCH,
    async (ended) => {
      const isRecorded = await useConnectionsForProcess(() => recordAll(ended)).then(
        () => true,
        () => false,
      );
      return () => isRecorded;
    },
    () => sleep(GATHER_MS),
  );

  return async (ended) => {
    if (!(await recordTogether(ended))) await recordAlone(ended);
    const { attempt, outcome, failure, notEndpointFault, finishedAt: at } = ended;
    const hasAnswered = isUsableAnswer(outcome.httpStatus);
    if (!notEndpointFault)
      health.note({ ...attempt, hasFailed: failure !== undefined, hasAnswered, at });
    if (ended.failure?.code === ENDPOINT_REMOVED)
      await useConnectionsForProcess(() => endRemoved(ended));
  };
}
