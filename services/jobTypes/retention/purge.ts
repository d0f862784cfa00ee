import { Type, type Static } from 'typebox';
import { readDatabaseTime } from '../../../db/core/databaseTime.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { findDifferentProcess } from '../../../db/operations/processes.ts';
import { continueSoon, recordComplete } from '../../../db/retention/state.ts';
import { defineJobType, JobFailure, type JobType } from '../../../domain/jobs/jobType.ts';
import {
  PURGE_JOB_TYPE,
  RETENTION,
  type RetentionKind,
} from '../../../domain/retention/retention.ts';
import { MINUTE_MS } from '../../../domain/shared/durations.ts';
import type { Metrics } from '../../../platform/metrics.ts';
import type { SharedSettings } from '../../../platform/sharedSettings.ts';
import type { createLogMonths } from '../../retention/logMonths.ts';
import type { createPurge } from '../../retention/purge.ts';
import { counted } from '../../../domain/shared/counted.ts';

const Payload = Type.Object({}, { additionalProperties: false });

export type PurgeDeps = {
  db: Knex;
  metrics: Metrics;
  purge: ReturnType<typeof createPurge>;
  logMonths: ReturnType<typeof createLogMonths>;
  sharedSettings: Pick<SharedSettings, 'retention'>;
};

const TIMEOUT_MS = 30 * MINUTE_MS;
/** A purge that takes longer ends, and the next one continues: others get the slot in between. */
const MAX_RUN_MS = 20 * MINUTE_MS;

/** Clocks that differ by more are wrong: deleting by one that is ahead would delete too much. */
const MAX_CLOCK_DIFFERENCE_MS = 5 * MINUTE_MS;

/**
 * Compares the clock of this process with the time of the database. Error: `clocks_differ`, which another
 * process may not have.
 */
function assertClocksAgree(processTimeMs: number, databaseTime: Date): void {
  const differenceMs = Math.abs(processTimeMs - databaseTime.getTime());
  if (differenceMs <= MAX_CLOCK_DIFFERENCE_MS) return;
  const seconds = Math.round(differenceMs / 1_000);
  throw new JobFailure(
    'clocks_differ',
    `The clocks of this worker and of the database differ by ${seconds} seconds: nothing is deleted`,
  );
}

/**
 * Error: `settings_differ` while another process that runs has other periods. Which are right is not known, and
 * what is deleted is lost.
 */
async function assertSamePeriods(db: Knex, { retention }: PurgeDeps['sharedSettings']) {
  const instance = await findDifferentProcess(db, 'retention', retention);
  if (instance === undefined) return;
  throw new JobFailure(
    'settings_differ',
    `HOLDFAST_RETENTION_… of this worker differ from those of ${instance}: nothing is deleted`,
  );
}

/** The job type that deletes what is kept no longer. A repeated or later purge continues. */
export const retentionPurge = ({
  db,
  metrics,
  purge,
  logMonths,
  sharedSettings,
}: PurgeDeps): JobType =>
  defineJobType<Static<typeof Payload>>({
    name: PURGE_JOB_TYPE,
    summary: 'Deletes records whose retention has ended',
    payload: Payload,
    createdOnlyBy: 'retention, every hour',
    emitsEvents: false,
    lane: 'activity',
    timeoutMs: TIMEOUT_MS,
    run: async (_payload, tools) => {
      const untilMs = performance.now() + MAX_RUN_MS;
      const startedAt = Date.now();
      const now = await readDatabaseTime(db);
      assertClocksAgree(startedAt, now);
      await assertSamePeriods(db, sharedSettings);
      const rows: Partial<Record<RetentionKind, number>> = {};
      const count = (kind: RetentionKind, more: number) => {
        if (more === 0) return;
        rows[kind] = (rows[kind] ?? 0) + more;
        metrics.purgedRows.inc({ kind }, more);
        tools.progress(50, `${counted(rows[kind], 'row')} of ${RETENTION[kind].of}`);
      };
      await logMonths.create(now);
      const months = await logMonths.drop(tools.jobId, now);
      const complete = await purge.run(tools, now, untilMs, count);
      months.push(...(await logMonths.drop(tools.jobId, now)));
      await (complete ? recordComplete(db, now) : continueSoon(db));
      tools.log('info', complete ? 'Nothing due is left' : 'The next purge continues', { rows });
      return { complete, rows, months };
    },
  });
