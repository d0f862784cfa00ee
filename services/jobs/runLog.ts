import type { Note } from '../../db/commit.ts';
import { jobChange, noteJobChange, type LogLine } from '../../db/jobs/jobs.ts';
import type { Job } from '../../db/models/Job.ts';
import { MAX_LOG_LINES, type LogLevel } from '../../domain/jobs/jobs.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Log } from '../../platform/log.ts';
import { jobLogged } from './jobAudit.ts';

export type RunLog = ReturnType<typeof createRunLog>;

type Deps = { note: Note; clock: Clock; log: Log; job: Job };

/** What an attempt has logged and how far it is, as yet unwritten. */
export type Taken = { lines: LogLine[]; progress: { progress?: string } };

/** How long lines and progress may wait before others can read them. */
const FLUSH_MS = 250;
const MAX_FLUSH_LINES = 500;
const MAX_MESSAGE_CHARS = 8_192;
const MAX_DATA_BYTES = 16_384;

/**
 * Gathers what one attempt logs and how far it is, and writes both four times a second while the attempt runs.
 * What is left when it ends is taken by the commit that ends it.
 */
export function createRunLog({ note, clock, log, job }: Deps) {
  let lines: LogLine[] = [];
  let progress: string | null = null;
  let room = MAX_LOG_LINES - job.logCount;
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  function take(atMost = Number.POSITIVE_INFINITY): Taken {
    const taken = {
      lines: lines.slice(0, atMost),
      progress: progress === null ? {} : { progress },
    };
    lines = lines.slice(atMost);
    progress = null;
    return taken;
  }

  async function flush() {
    const taken = take(MAX_FLUSH_LINES);
    const guard = {
      statuses: ['running'],
      attempt: { runId: job.runId ?? '', number: job.attempts },
    };
    try {
      await note((db, now) =>
        noteJobChange(
          db,
          jobChange(
            job.id,
            guard,
            { ...taken.progress, updated_at: now },
            taken.lines,
            [jobLogged(job.id)],
            { newVersion: false },
          ),
        ),
      );
    } catch (error) {
      // The attempt matters more than its log: it goes on, and this goes with the next write.
      lines = [...taken.lines, ...lines];
      progress ??= taken.progress.progress ?? null;
      log.warn({ err: error, jobId: job.id }, 'could not write job log lines yet');
    }
    if (lines.length > 0) soon();
  }

  function soon() {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = writing.then(flush);
    }, FLUSH_MS);
  }

  const add = (level: LogLevel, message: string, data?: object) =>
    void lines.push({
      attempt: job.attempts,
      level,
      message: clean(message),
      data: bounded(data),
      at: clock.now(),
    });

  return {
    /** A line of the job type; one past the bound is left out. */
    log(level: LogLevel, message: string, data?: object) {
      if (room <= 0) return;
      if (--room === 0) add('warn', 'The log is full; later lines are left out');
      else add(level, message, data);
      soon();
    },
    /** A line of the engine, which always has room. It is written with what comes of the attempt. */
    note: (level: LogLevel, message: string) => add(level, message),
    progress(percent: number, message?: string) {
      const bounds = Math.min(100, Math.max(0, percent));
      progress = JSON.stringify({ percent: bounds, message: message?.slice(0, 200) ?? null });
      soon();
    },
    /** What has not been written yet; whoever takes it must write it. */
    take: () => take(),
    /** Resolves when no write of this log is under way and none will begin. */
    async settled() {
      clearTimeout(timer);
      timer = undefined;
      await writing;
    },
    async [Symbol.asyncDispose]() {
      clearTimeout(timer);
      await writing;
    },
  };
}

/** PostgreSQL text holds no NUL. */
const clean = (text: string) => text.replaceAll('\0', '\uFFFD').slice(0, MAX_MESSAGE_CHARS);

function bounded(data: object | undefined): object | null {
  if (data === undefined) return null;
  // What cannot be written as JSON must not fail the job that logs it.
  try {
    JSON.stringify(data);
  } catch {
    return { leftOut: 'not JSON' };
  }
  return Buffer.byteLength(JSON.stringify(data)) <= MAX_DATA_BYTES
    ? data
    : { leftOut: `more than ${MAX_DATA_BYTES} bytes` };
}
