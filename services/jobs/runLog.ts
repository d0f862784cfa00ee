import type { WriteUnaudited } from '../../db/core/commit.ts';
import { attemptGuard, writeJobChange, type LogLine } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import type { LogLevel } from '../../domain/jobs/jobs.ts';
import {
  LOG_FULL,
  logData,
  logText,
  progressOf,
  remainingLines,
} from '../../domain/jobs/logLines.ts';
import { jobLog, type Log } from '../../platform/log.ts';
import { logChange } from './logChange.ts';

export type RunLog = ReturnType<typeof createRunLog>;

type Deps = { writeUnaudited: WriteUnaudited; log: Log; job: Job };

/** Log lines and progress of an attempt that are not written yet. */
export type PendingLog = { lines: LogLine[]; progress: { progress?: string } };

/** Longest time that lines and progress wait before they are written. */
const FLUSH_MS = 250;
const MAX_FLUSH_LINES = 500;

/**
 * Collects the log lines and the progress of one attempt and writes them four times a second. The
 * commit that ends the attempt writes the rest (`drain`).
 */
export function createRunLog({ writeUnaudited, log, job }: Deps) {
  let lines: LogLine[] = [];
  let progress: string | null = null;
  let free = remainingLines(job.logCount);
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  function drain(maxLines = Number.POSITIVE_INFINITY): PendingLog {
    const pending = {
      lines: lines.slice(0, maxLines),
      progress: progress === null ? {} : { progress },
    };
    lines = lines.slice(maxLines);
    progress = null;
    return pending;
  }

  async function flush() {
    const pending = drain(MAX_FLUSH_LINES);
    try {
      await writeUnaudited((db, now) =>
        writeJobChange(
          db,
          logChange({
            jobId: job.id,
            guard: attemptGuard(job),
            values: { ...pending.progress, updated_at: now },
            lines: pending.lines,
          }),
        ),
      );
    } catch (error) {
      // A log that cannot be written must not fail the attempt: the next write includes these
      // lines.
      lines = [...pending.lines, ...lines];
      progress ??= pending.progress.progress ?? null;
      jobLog(log, job.id, job.workflowId).warn({ err: error }, 'could not write job log lines yet');
    }
    if (lines.length > 0) scheduleFlush();
  }

  function scheduleFlush() {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = writing.then(flush);
    }, FLUSH_MS);
  }

  const append = (level: LogLevel, message: string, data?: object) =>
    void lines.push({
      attempt: job.attempts,
      level,
      message: logText(message),
      data: logData(data),
      at: new Date(),
    });

  async function stopFlushing() {
    clearTimeout(timer);
    timer = undefined;
    await writing;
  }

  return {
    /** Adds a line of the job type. Lines beyond `MAX_LOG_LINES` are dropped. */
    log(level: LogLevel, message: string, data?: object) {
      if (free <= 0) return;
      if (--free === 0) append('warn', LOG_FULL);
      else append(level, message, data);
      scheduleFlush();
    },
    /**
     * Adds a line of the engine, which has no limit. The commit that ends the attempt writes it.
     */
    logSystem: (level: LogLevel, message: string, data?: object) => append(level, message, data),
    progress(percent: number, message?: string) {
      progress = JSON.stringify(progressOf(percent, message));
      scheduleFlush();
    },
    /** Removes and returns what is not written yet. The caller must write it. */
    drain: () => drain(),
    /** Stops the periodic writes and resolves when the last of them is done. */
    stopFlushing,
    [Symbol.asyncDispose]: stopFlushing,
  };
}
