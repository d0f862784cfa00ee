import type { Knex } from '../../db/core/knex.ts';
import { writeJobChange, type LogLine } from '../../db/jobs/jobs.ts';
import { renewLease, type RemoteAttempt } from '../../db/runners/attempts.ts';
import type { LogLevel } from '../../domain/jobs/jobs.ts';
import {
  LOG_FULL,
  logData,
  logText,
  progressOf,
  remainingLines,
} from '../../domain/jobs/logLines.ts';
import { storableJson } from '../../domain/shared/storableJson.ts';
import type { LinesAnswer } from '../../domain/runners/protocol.ts';
import { logChange } from '../jobs/logChange.ts';
import { requireCurrent } from './currentAttempt.ts';
import type { RunnerIdentity } from './identity.ts';

export type RemoteLines = ReturnType<typeof createRemoteLines>;

/** A line of the log as a runner sends it. `at`: by the clock of the runner. */
export type RemoteLine = { level: LogLevel; message: string; data?: object; at?: Date | undefined };

/** Lines of an attempt from number `firstLine` on, which counts from 1, and how far it is. */
export type LinesRequest = {
  firstLine: number;
  lines: readonly RemoteLine[];
  progress?: { percent: number; message?: string };
};

/** The time of a line by the clock of its runner, unless that is ahead of ours. */
const timeOf = (at: Date | undefined, now: Date): Date => (at === undefined || at > now ? now : at);

/** The lines for which the log has space; one says that later ones are left out. */
function thatFit(
  lines: readonly RemoteLine[],
  { attempt, logCount }: RemoteAttempt,
  now: Date,
): LogLine[] {
  const free = remainingLines(logCount);
  const kept: readonly RemoteLine[] =
    free > 0 && lines.length >= free
      ? [...lines.slice(0, free - 1), { level: 'warn', message: LOG_FULL }]
      : lines.slice(0, free);
  return kept.map(({ level, message, data, at }) => ({
    attempt,
    level,
    message: logText(message),
    data: logData(data && (storableJson(data) as object)),
    at: timeOf(at, now),
  }));
}

/** The log and the progress of attempts that runners make. */
export const createRemoteLines = ({ db }: { db: Knex }) => ({
  /**
   * Adds lines to the log of a job and renews the lease of its attempt. Lines that were received before
   * are left out; nothing is added if lines before them are missing. Error: `attempt_lost`.
   */
  append: (
    runner: RunnerIdentity,
    jobId: string,
    attemptToken: string,
    { firstLine, lines, progress }: LinesRequest,
  ): Promise<LinesAnswer> =>
    db.transaction(async (trx) => {
      const now = new Date();
      const attempt = await requireCurrent(trx, runner, jobId, attemptToken);
      const received = attempt.linesReceived;
      const fresh = firstLine > received + 1 ? [] : lines.slice(received + 1 - firstLine);
      const kept = thatFit(fresh, attempt, now);
      if (kept.length > 0 || progress)
        await writeJobChange(
          trx,
          logChange({
            jobId,
            guard: {
              statuses: ['running'],
              attempt: { runId: attempt.runId, number: attempt.attempt },
            },
            values: {
              ...(progress && {
                progress: JSON.stringify(progressOf(progress.percent, progress.message)),
              }),
              updated_at: now,
            },
            lines: kept,
          }),
        );
      await renewLease(trx, jobId, received + fresh.length);
      return {
        have: received + fresh.length,
        cancel: attempt.cancelRequested,
        leaseMs: attempt.leaseMs,
        remainingLines: remainingLines(attempt.logCount + kept.length),
      };
    }),
});
