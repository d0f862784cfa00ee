import type { LogLevel } from '../../domain/jobs/jobs.ts';
import type { Lease } from '../command/attempt.ts';
import { RunnerApiError, type RunnerApi, type StartedAttempt } from './api.ts';

/** Lines and progress are sent this often, full batches and what is left at the end immediately. */
const SEND_EVERY_MS = 250;
const MAX_BATCH_LINES = 1_000;
const MAX_BATCH_BYTES = 1_048_576;
/** The API takes a report of so few bytes also while too many large ones arrive. */
const SMALL_BATCH_BYTES = 65_536;
/** Lines that wait for the API: more are dropped, so that a command never waits for its log. */
const MAX_QUEUED_BYTES = 16 * 1_048_576;

const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;

/** An API that does not answer is asked again after a third of the lease, or after this. */
const MAX_ANSWER_MS = 15_000;

/** The work is stopped when the lease is over by this share of it: ending processes takes time. */
export const STOP_SHARE = 0.8;

/** The supervisor of the command kills it then, if its runner has not stopped it: it may be paused. */
export const KILL_SHARE = 0.95;

const LOST: ReadonlySet<number> = new Set([401, 403, 404, 409]);
const REFUSED: ReadonlySet<number> = new Set([400, 413]);

/** Another attempt counts; or the token or the job do not exist any more, so that nothing can be reported. */
export const isLost = ({ status, isOfProxy }: RunnerApiError): boolean =>
  !isOfProxy && LOST.has(status);

/** What was sent is never accepted: it is too large, or not as its schema says. */
export const isRefused = ({ status, isOfProxy }: RunnerApiError): boolean =>
  !isOfProxy && REFUSED.has(status);

/** Why the runner must stop the work of an attempt. */
export type StopCause =
  /** The job is to be cancelled. */
  | 'cancelled'
  /** Another attempt counts, or the job has ended: nothing more may be reported. */
  | 'lost'
  /** The API has not answered during the lease: another attempt may begin. */
  | 'lease';

export type AttemptReport = ReturnType<typeof createAttemptReport>;

type Deps = {
  api: Pick<RunnerApi, 'lines'>;
  jobId: string;
  started: StartedAttempt;
  onStop(cause: StopCause): void;
};

/**
 * Sends the lines and the progress of an attempt in batches, and keeps its lease, until it is closed. What
 * was not received is sent again; the API leaves out what it has.
 */
export function createAttemptReport({ api, jobId, started, onStop }: Deps) {
  const { attemptToken, attempt, maxAttempts } = started;
  let { leaseMs, remainingLines } = started;
  /** Lines as JSON that were not received yet. The first one has the number `received + 1`. */
  const queue: string[] = [];
  let queuedBytes = 0;
  let received = 0;
  let dropped = 0;
  let progress: { progress: number; progressMessage?: string } | undefined;
  let answeredAt = performance.now();
  let stopCause: StopCause | undefined;
  let pauseMs = SEND_EVERY_MS;
  let isClosed = false;
  let isDraining = false;
  /** The last answer has confirmed nothing: what is sent again waits for its turn. */
  let isStuck = false;
  /** The progress was refused: the lines that were sent with it are sent again without one. */
  let leavesOutProgress = false;
  let wake: () => void = () => undefined;
  let onRenewed: () => void = () => undefined;
  let onDrained: (() => void) | undefined;

  function stop(cause: StopCause) {
    // What was lost stays lost; a cancellation can follow nothing.
    if (stopCause === 'lost' || stopCause === cause) return;
    stopCause = cause;
    onStop(cause);
  }

  /** The next lines to send. */
  function nextBatch(): string[] {
    const batch: string[] = [];
    let bytes = 0;
    const most = isStuck ? SMALL_BATCH_BYTES : MAX_BATCH_BYTES;
    for (const line of queue) {
      bytes += Buffer.byteLength(line) + 1;
      if (batch.length === MAX_BATCH_LINES || (bytes > most && batch.length > 0)) break;
      batch.push(line);
    }
    return batch;
  }

  function removeFirst(count: number) {
    for (const line of queue.splice(0, count)) queuedBytes -= Buffer.byteLength(line);
  }

  /** Growing pauses, at least as long as the API asks for, and short enough to keep the lease. */
  function pauseAfter(error: unknown): number {
    const asked = error instanceof RunnerApiError ? (error.retryAfterMs ?? 0) : 0;
    const growing = Math.min(Math.max(pauseMs * 2, FIRST_PAUSE_MS), MAX_PAUSE_MS, leaseMs / 8);
    return Math.max(growing, Math.min(asked, leaseMs / 4));
  }

  async function send() {
    const batch = nextBatch();
    const sentProgress = leavesOutProgress ? undefined : progress;
    if (!leavesOutProgress) progress = undefined;
    leavesOutProgress = false;
    const sentAt = performance.now();
    const before = received;
    try {
      const answer = await api.lines(
        jobId,
        attemptToken,
        { firstLine: before + 1, ...sentProgress },
        batch.map((line) => `${line}\n`).join(''),
        Math.min(Math.ceil(leaseMs / 3), MAX_ANSWER_MS),
      );
      ({ leaseMs, remainingLines } = answer);
      answeredAt = sentAt;
      onRenewed();
      pauseMs = SEND_EVERY_MS;
      removeFirst(Math.max(0, answer.have - before));
      isStuck = batch.length > 0 && answer.have <= before;
      // Less than before: a database that has crashed has lost lines. What follows takes their numbers.
      received = answer.have;
      if (answer.cancel) stop('cancelled');
      if (queue.length === 0) onDrained?.();
    } catch (error) {
      pauseMs = pauseAfter(error);
      if (error instanceof RunnerApiError && isLost(error)) {
        stop('lost');
        onDrained?.();
      } else if (error instanceof RunnerApiError && isRefused(error)) {
        // This progress, or else these lines, will never be accepted.
        leavesOutProgress = sentProgress !== undefined && batch.length > 0;
        if (leavesOutProgress) return;
        dropped += batch.length;
        removeFirst(batch.length);
      } else progress ??= sentProgress;
    }
  }

  /** Since the last answer. The pause then ends by itself: what a command prints must not shorten it. */
  const isFailing = () => pauseMs > SEND_EVERY_MS;

  const hasNews = () => queue.length > 0 || progress !== undefined;

  const hasFullBatch = () => queue.length >= MAX_BATCH_LINES || queuedBytes >= MAX_BATCH_BYTES;

  /** What the next request waits for, unless it is woken. */
  function waitMs(): number {
    if (isFailing()) return pauseMs;
    if (!hasNews()) return Math.max(leaseMs / 4 - (performance.now() - answeredAt), 0);
    return !isStuck && (isDraining || hasFullBatch()) ? 0 : SEND_EVERY_MS;
  }

  async function keepSending() {
    while (!isClosed && stopCause !== 'lost') {
      const wasFailing = isFailing();
      const ms = waitMs();
      if (ms > 0)
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      const isDue = performance.now() - answeredAt >= leaseMs / 4;
      if (!isClosed && (hasNews() || isDue || wasFailing)) await send();
    }
  }

  const leftMs = (share: number) => answeredAt + leaseMs * share - performance.now();

  // No other attempt begins after the last one, so its lease does not end the work.
  const lease: Lease | undefined =
    attempt < maxAttempts
      ? { leftMs: () => leftMs(KILL_SHARE), onRenewed: (listener) => (onRenewed = listener) }
      : undefined;
  const leaseWatch = setInterval(() => {
    if (lease && leftMs(STOP_SHARE) < 0) stop('lease');
  }, 250);

  const sending = keepSending();

  return {
    lease,

    line(level: LogLevel, message: string, data: object | undefined, at: Date): void {
      // First, since what is dropped must cost little: a command can print any number of lines.
      if (queue.length >= remainingLines || queuedBytes + message.length > MAX_QUEUED_BYTES) {
        dropped++;
        return;
      }
      const line = JSON.stringify({
        level,
        message,
        ...(data && { data }),
        at: at.toISOString(),
      });
      const waits = hasNews() && !hasFullBatch();
      queue.push(line);
      queuedBytes += Buffer.byteLength(line);
      if (!isFailing() && !isStuck && (!waits || hasFullBatch())) wake();
    },

    progress(percent: number, message: string | undefined): void {
      const wasIdle = !hasNews();
      progress = { progress: percent, ...(message && { progressMessage: message }) };
      if (wasIdle && !isFailing()) wake();
    },

    /** From now on the end of the lease stops nothing: what is left is to report what the command has done. */
    commandHasEnded(): void {
      clearInterval(leaseWatch);
    },

    /** Resolves when all lines were received, the attempt is lost, or `limitMs` have passed. */
    async drain(limitMs: number): Promise<void> {
      isDraining = true;
      if (!hasNews() || stopCause === 'lost') return;
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        onDrained = resolve;
        timer = setTimeout(resolve, limitMs);
        wake();
      });
      clearTimeout(timer);
    },

    /** How many lines were dropped: the log is full, or the API was not reached for too long. */
    dropped: () => dropped,

    /** Why the work must stop, if it must. */
    stopCause: () => stopCause,

    /** Ends the reports. Nothing is sent any more when it resolves. */
    async close(): Promise<void> {
      isClosed = true;
      clearInterval(leaseWatch);
      wake();
      await sending;
    },
  };
}
