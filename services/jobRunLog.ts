import type { Note } from '../db/commit.ts';
import { jobChange, noteJobChange, type JobValues, type LogLine } from '../db/jobs.ts';
import type { Job } from '../db/models/Job.ts';
import { MAX_LOG_LINES, type LogLevel } from '../domain/jobs.ts';
import type { Clock } from '../platform/clock.ts';
import type { Log } from '../platform/log.ts';
import { jobLogged } from './jobs.ts';

export type RunLog = ReturnType<typeof createRunLog>;

type Deps = { note: Note; clock: Clock; log: Log; job: Job };

/** How long lines and progress may wait before others can read them. */
const FLUSH_MS = 250;
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

  const take = () => {
    const taken = lines;
    lines = [];
    return taken;
  };

  const progressChange = (): JobValues => {
    const change = progress === null ? {} : { progress };
    progress = null;
    return change;
  };

  async function flush() {
    const taken = take();
    const guard = { statuses: ['running'], runId: job.runId ?? '' };
    try {
      await note((db, now) =>
        noteJobChange(db, jobChange(job.id, guard, { ...progressChange(), updated_at: now }, taken, [jobLogged(job.id)])),
      );
    } catch (error) {
      // The attempt matters more than its log: it goes on, and the lines go with the next write.
      lines = [...taken, ...lines];
      log.warn({ err: error, jobId: job.id }, 'could not write job log lines yet');
    }
  }

  function soon() {
    timer ??= setTimeout(() => {
      timer = undefined;
      writing = writing.then(flush);
    }, FLUSH_MS);
  }

  function add(level: LogLevel, message: string, data?: object) {
    if (room <= 0) return;
    const text = --room === 0 ? 'The log is full; later lines are left out' : message;
    lines.push({ attempt: job.attempts, level, message: clean(text), data: bounded(data), at: clock.now() });
  }

  return {
    log(level: LogLevel, message: string, data?: object) {
      add(level, message, data);
      soon();
    },
    progress(percent: number, message?: string) {
      const bounds = Math.min(100, Math.max(0, percent));
      progress = JSON.stringify({ percent: bounds, message: message?.slice(0, 200) ?? null });
      soon();
    },
    take,
    progressChange,
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
  return Buffer.byteLength(JSON.stringify(data)) <= MAX_DATA_BYTES ? data : { leftOut: `more than ${MAX_DATA_BYTES} bytes` };
}
