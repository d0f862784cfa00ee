import { cut } from '../shared/excerpt.ts';
import { MAX_LOG_LINES, type JobProgress } from './jobs.ts';

const MAX_MESSAGE_CHARS = 8_192;
const MAX_DATA_BYTES = 16_384;
const MAX_PROGRESS_CHARS = 200;

/** A message as a log keeps it. PostgreSQL cannot store NUL characters in text. */
export const logText = (text: string): string =>
  cut(text.replaceAll('\0', '\uFFFD'), MAX_MESSAGE_CHARS);

/** The data of a line as a log keeps it. */
export function logData(data: object | undefined): object | null {
  if (data === undefined) return null;
  // Data that is not serialisable must not fail the job that logs it.
  try {
    JSON.stringify(data);
  } catch {
    return { leftOut: 'not JSON' };
  }
  return Buffer.byteLength(JSON.stringify(data)) <= MAX_DATA_BYTES
    ? data
    : { leftOut: `more than ${MAX_DATA_BYTES} bytes` };
}

/** The progress of a job as its record keeps it. */
export const progressOf = (percent: number, message: string | undefined): JobProgress => ({
  percent: Number.isFinite(percent) ? Math.min(100, Math.max(0, percent)) : 0,
  message: message === undefined ? null : cut(logText(message), MAX_PROGRESS_CHARS),
});

/** The last line of a log that is full. */
export const LOG_FULL = 'The log is full; later lines are left out';

/** Lines that a log with `logCount` lines still has space for. */
export const remainingLines = (logCount: number): number => Math.max(MAX_LOG_LINES - logCount, 0);
