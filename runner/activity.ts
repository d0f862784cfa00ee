import { hash, randomBytes } from 'node:crypto';
import { Context } from '@temporalio/activity';
import {
  ApplicationFailure,
  ApplicationFailureCategory,
  CancelledFailure,
} from '@temporalio/common';
import { JobFailure } from '../domain/jobs/jobType.ts';
import { MAX_UNANSWERED } from '../domain/runners/records.ts';
import { END_MARGIN_MS, type EndRequest } from '../domain/runners/protocol.ts';
import { jobLog, type Log } from '../platform/log.ts';
import type { Catalog } from './catalog.ts';
import { StopRequest } from './command/attempt.ts';
import type { PreparedRun, Preparer } from './command/preparedRun.ts';
import { runCommand, type CommandHost } from './command/runCommand.ts';
import { storable } from './command/storable.ts';
import type { DeclaredType } from './declaration/load.ts';
import {
  retryTransient,
  RunnerApiError,
  type RunnerApi,
  type StartedAttempt,
} from './protocol/api.ts';
import {
  createAttemptReport,
  isLost,
  isRefused,
  type AttemptReport,
  type StopCause,
} from './protocol/attemptReport.ts';

/** Heartbeats are sent this often, so that a cancellation arrives soon. */
const HEARTBEAT_MS = 1_000;

/** How long `begin` is repeated before the activity fails, and Temporal starts it again. */
const BEGIN_WITHIN_MS = 30_000;
const BEGIN_AGAIN_MS = 5_000;

/** How long an artifact is sent again while the API is away. */
const ARTIFACT_WITHIN_MS = 60_000;

/** What a command has to end itself when another attempt counts, or may begin soon. */
const SHORT_GRACE_MS = 3_000;

/** So much of its lease a command has to end itself when the API is away: another attempt may begin then. */
const LEASE_GRACE_SHARE = 0.1;

/** A runner that stops ends this long after it has asked its commands to stop. */
export const FORCE_AFTER_MS = 20_000;

/** What a command has to end itself when its runner stops: the rest is for the report of its end. */
const STOP_GRACE_MS = FORCE_AFTER_MS - 8_000;

/** Most characters of the message of a failure. */
const MAX_MESSAGE_CHARS = 4_000;

/** The failure that Temporal stores: codes only. */
const failure = (code: string, retryInMs: number | null) =>
  ApplicationFailure.create({
    type: code,
    message: `The attempt failed with ${code}`,
    nonRetryable: retryInMs === null,
    ...(retryInMs !== null && { nextRetryDelay: retryInMs }),
    category: ApplicationFailureCategory.BENIGN,
  });

type Deps = {
  api: RunnerApi;
  catalog: Catalog;
  host: CommandHost;
  preparer: Preparer;
  runnerId: string;
  log: Log;
  /** Announces the types again if the code of one has changed, or it no longer exists. */
  announceChange(name: string, digest: string | undefined): Promise<void>;
  /** Aborts with a `StopRequest` when the runner stops and its commands have had their grace time. */
  commandStop: AbortSignal;
};

/** The activity of all remote types: its name is that of the type, its input names the job. */
export function createActivity(deps: Deps) {
  const { api, catalog, host, preparer, runnerId, log, announceChange } = deps;

  /**
   * Begins the attempt; without a type, the API lets the job wait for another runner of the pool. Errors:
   * `ApplicationFailure`; undefined if nothing is to do.
   */
  async function begin(type: DeclaredType | undefined, jobId: string) {
    const context = Context.current();
    const workflowRunId = context.info.workflowExecution?.runId ?? '';
    const attemptToken = randomBytes(32).toString('base64url');
    const unanswered = unansweredBefore(context);
    const digest = type && { digest: type.digest };
    const request = { runnerId, workflowRunId, ...digest, attemptToken, unanswered };
    let mayHaveStarted = false;
    const ask = () =>
      api.begin(jobId, request).catch((error: unknown) => {
        mayHaveStarted = true;
        throw error;
      });
    try {
      const until = performance.now() + BEGIN_WITHIN_MS;
      const answer = await retryTransient(ask, { until, signal: context.cancellationSignal });
      if (answer.outcome === 'wait') throw failure(answer.code, answer.retryInMs);
      if (answer.outcome === 'failed') throw failure(answer.code, null);
      return answer.outcome === 'started' ? answer : undefined;
    } catch (error) {
      // This activity makes no attempt: the next one makes that which may have started without an answer.
      const all = [...unanswered, tokenHash(attemptToken)].slice(-MAX_UNANSWERED);
      if (mayHaveStarted) context.heartbeat({ unanswered: all } satisfies UnansweredBegin);
      if (!(error instanceof RunnerApiError)) throw error;
      jobLog(log, jobId).warn({ code: error.code }, error.message);
      throw failure(error.code, BEGIN_AGAIN_MS);
    }
  }

  /** Prepares a run; undefined, with a line in the log, if this machine cannot run a command now. */
  const prepare = (jobId: string) =>
    preparer.prepare().catch((error: unknown) => {
      jobLog(log, jobId).error({ err: error }, 'no run was prepared: others may have the job');
      return undefined;
    });

  /** The type with its code as it is now, unless its command cannot be run. */
  async function current(
    prepared: Promise<PreparedRun | undefined>,
  ): Promise<DeclaredType | undefined> {
    const { activityType } = Context.current().info;
    const known = await catalog.current(activityType);
    const type = (await prepared) && known;
    await announceChange(activityType, type?.digest);
    return type;
  }

  return async ({ jobId }: { jobId: string }): Promise<void> => {
    const context = Context.current();
    const unanswered = unansweredBefore(context);
    const details = unanswered.length > 0 ? { unanswered } : undefined;
    const heartbeats = setInterval(() => context.heartbeat(details), HEARTBEAT_MS);
    // Before the API is asked: an attempt that begins counts. The type is read at the same time.
    const preparing = prepare(jobId);
    try {
      const type = await current(preparing);
      const started = await begin(type, jobId);
      const prepared = await preparing;
      if (started && type && prepared)
        await makeAttempt({ ...deps, host: { ...host, prepared } }, type, jobId, started);
    } catch (error) {
      if (error instanceof ApplicationFailure || error instanceof CancelledFailure) throw error;
      // Temporal stores no text of another error, which may quote what the API has answered.
      jobLog(log, jobId).error({ err: error }, 'an activity failed unexpectedly');
      throw failure('unexpected', BEGIN_AGAIN_MS);
    } finally {
      clearInterval(heartbeats);
      await (await preparing)?.discard();
    }
  };
}

/** What an activity knows, and Temporal keeps for the next one, of requests to begin without an answer. */
type UnansweredBegin = { unanswered: string[] };

/** What activities of the job before this one have left. */
const unansweredBefore = ({ info }: Context): string[] =>
  (info.heartbeatDetails as UnansweredBegin | null | undefined)?.unanswered ?? [];

/** Temporal gets hashes: the token itself would let its reader report the end of the attempt. */
const tokenHash = (token: string): string => hash('sha256', token, 'hex');

/** What an attempt needs, with the run that was prepared for it. */
type AttemptDeps = Deps & { host: CommandHost & { prepared: PreparedRun } };

/** Runs the command of an attempt that has started, and reports how it ends. */
async function makeAttempt(
  deps: AttemptDeps,
  type: DeclaredType,
  jobId: string,
  started: StartedAttempt,
): Promise<void> {
  const { api, log } = deps;
  const stop = new AbortController();
  const until = performance.now() + started.timeoutMs + END_MARGIN_MS;
  const report = createAttemptReport({
    api,
    jobId,
    started,
    onStop: (cause) => stop.abort(stopRequest(cause, started.leaseMs)),
  });
  // The SDK aborts the signal outside of the activity, where there is no current context.
  const context = Context.current();
  const { cancellationSignal } = context;
  const onCancel = () => {
    const request = temporalStopRequest(context.cancellationDetails);
    if (request) stop.abort(request);
    else jobLog(log, jobId).warn('Temporal has dropped the activity; its attempt continues');
  };
  if (cancellationSignal.aborted) onCancel();
  cancellationSignal.addEventListener('abort', onCancel, { once: true });
  // Temporal cancels an activity once: one that it has dropped does not learn that its runner stops.
  const signal = AbortSignal.any([stop.signal, deps.commandStop]);
  try {
    const end = await runAttempt(deps, type, jobId, started, report, signal);
    // Heartbeats keep the attempt while the API is away; without its lease, another runner may have it.
    const isLate = report.stopCause() === 'lease';
    const limit = isLate ? performance.now() + END_MARGIN_MS : until;
    await report.drain(limit - performance.now());
    if (report.dropped() > 0)
      jobLog(log, jobId).warn({ lines: report.dropped() }, 'lines were dropped');
    const droppedLines = report.dropped();
    const dropped = droppedLines > 0 && { droppedLines };
    const send = (each: EndRequest) =>
      api.end(jobId, started.attemptToken, { ...each, ...dropped });
    await sendEnd(send, end, report, { until: limit });
  } finally {
    cancellationSignal.removeEventListener('abort', onCancel);
    await report.close();
  }
}

const STOP_MESSAGES: Readonly<Record<StopCause, string>> = {
  cancelled: 'The job was cancelled',
  lost: 'Another attempt counts',
  lease: 'The API has not answered within the lease',
};

/** How long a command has to end itself at most. */
const maxGraceMs = (cause: StopCause, leaseMs: number): number =>
  cause === 'cancelled'
    ? Number.POSITIVE_INFINITY
    : Math.min(SHORT_GRACE_MS, cause === 'lease' ? leaseMs * LEASE_GRACE_SHARE : SHORT_GRACE_MS);

/** How a command is stopped for a cause that the report of its attempt has found. */
export const stopRequest = (cause: StopCause, leaseMs: number): StopRequest =>
  new StopRequest(STOP_MESSAGES[cause], {
    code: cause === 'cancelled' ? 'cancelled' : 'attempt_lost',
    maxGraceMs: maxGraceMs(cause, leaseMs),
  });

/** How a command is stopped when its runner stops. */
export const runnerStopRequest = (): StopRequest =>
  new StopRequest('The runner stops', { code: 'interrupted', maxGraceMs: STOP_GRACE_MS });

/**
 * How a command is stopped when Temporal has cancelled its activity; undefined if it continues. After an outage of
 * Temporal, or a pause or reset by an operator, its attempt is still the current one: the API decides with its lease when
 * another one may begin.
 */
export function temporalStopRequest(
  details: { cancelRequested: boolean; workerShutdown: boolean } | undefined,
): StopRequest | undefined {
  if (details?.cancelRequested)
    return new StopRequest(STOP_MESSAGES.cancelled, { code: 'cancelled' });
  return details?.workerShutdown ? runnerStopRequest() : undefined;
}

/** Runs the command. Returns what to report of its end. */
async function runAttempt(
  { api, host, log }: AttemptDeps,
  type: DeclaredType,
  jobId: string,
  started: StartedAttempt,
  report: AttemptReport,
  signal: AbortSignal,
): Promise<EndRequest> {
  const { attempt, attemptToken, payload, target, secrets, timeoutMs } = started;
  try {
    const result = await runCommand(
      type,
      { jobId, attempt, payload, target, secrets, timeoutMs, lease: report.lease },
      {
        line: report.line,
        progress: report.progress,
        artifact: (name, file) => {
          report.commandHasEnded();
          return retryTransient(() => api.artifact(jobId, attemptToken, { name, file }, signal), {
            until: performance.now() + ARTIFACT_WITHIN_MS,
            awayMs: ARTIFACT_WITHIN_MS,
            signal,
          });
        },
      },
      host,
      signal,
    );
    return { result };
  } catch (error) {
    if (error instanceof StopRequest) {
      if (error.cause !== undefined) jobLog(log, jobId).error({ err: error.cause }, error.message);
      if (error.code === 'cancelled') return { cancelled: true };
      return { failure: { code: error.code, message: error.message, retryable: true } };
    }
    if (error instanceof JobFailure) {
      const { code, retryable, retryAfterMs } = error;
      const message = storable(error.message, MAX_MESSAGE_CHARS);
      const retryAfterSeconds =
        retryAfterMs === undefined ? {} : { retryAfterSeconds: retryAfterMs / 1_000 };
      return { failure: { code, message, retryable, ...retryAfterSeconds } };
    }
    jobLog(log, jobId).error({ err: error }, 'an attempt failed unexpectedly');
    return {
      failure: {
        code: 'unexpected',
        message: 'The log of the runner has the details',
        retryable: true,
      },
    };
  }
}

/** The end of an attempt after one that the API refuses: it must not be lost with its reason. */
function insteadOf(end: EndRequest, error: RunnerApiError): EndRequest {
  const ofResult = error.status === 413 ? 'result_too_large' : 'invalid_result';
  const retryable = 'failure' in end && end.failure.retryable === true;
  return {
    failure: {
      code: 'result' in end ? ofResult : 'unexpected',
      message: storable(error.message, MAX_MESSAGE_CHARS),
      retryable,
    },
  };
}

/**
 * Reports the end until the API has it. Errors: what the activity ends with, if not with success. Where the
 * API knows nothing of the attempt any more, another one may follow: it decides when that starts.
 */
async function sendEnd(
  send: (end: EndRequest) => ReturnType<RunnerApi['end']>,
  end: EndRequest,
  report: AttemptReport,
  limit: { until: number },
): Promise<void> {
  if (report.stopCause() === 'lost') {
    // If its job has ended otherwise, others may wait for this attempt to end.
    await send(end).catch(() => undefined);
    throw failure('attempt_lost', BEGIN_AGAIN_MS);
  }
  let answer;
  try {
    answer = await retryTransient(() => send(end), limit).catch((error: unknown) => {
      if (!(error instanceof RunnerApiError && isRefused(error))) throw error;
      return retryTransient(() => send(insteadOf(end, error)), limit);
    });
  } catch (error) {
    if (!(error instanceof RunnerApiError)) throw error;
    const mayFollow = error.isTransient || isLost(error);
    throw failure(error.code, mayFollow ? BEGIN_AGAIN_MS : null);
  }
  const { status, code, retryInMs } = answer;
  if (status === 'cancelled' && Context.current().cancellationDetails?.cancelRequested)
    throw new CancelledFailure('The job was cancelled');
  if (status === 'failed' || status === 'retrying') throw failure(code ?? 'failed', retryInMs);
}
