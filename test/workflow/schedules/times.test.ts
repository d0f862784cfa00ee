import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import proto from '@temporalio/proto';
import { parseCron } from '../../../domain/schedules/cron.ts';
import { listOccurrences } from '../../../domain/schedules/occurrences.ts';
import { offsetPeriodAt } from '../../../domain/schedules/timeZone.ts';
import { DAY_MS, HOUR_MS } from '../../../domain/shared/durations.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { cronSample } from '../../support/cronModel.ts';
import { createMinutelySchedule } from '../../support/schedules.ts';
import { eventually } from '../../support/eventually.ts';
import { propertyRuns } from '../../support/effort.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const FROM_MS = Date.UTC(2026, 11, 1);

/** The next two clock changes of a time zone. */
function clockChanges(zone: string): number[] {
  const changes: number[] = [];
  for (let ms = FROM_MS; changes.length < 2;) {
    ms = offsetPeriodAt(zone, ms).endMs;
    if (ms === Infinity) break;
    changes.push(ms);
  }
  return changes;
}

/**
 * The days around every clock change, and some other days. Temporal omits an occurrence at the
 * start of the window itself, so the windows start at half a minute.
 */
const windows = (changes: readonly number[]): [Date, Date][] =>
  [...changes, ...[0, 450, 2_400].map((days) => FROM_MS + days * DAY_MS)].map((ms) => [
    new Date(ms - 1.5 * DAY_MS + 30_000),
    new Date(ms + 1.5 * DAY_MS + 30_000),
  ]);

const timestamp = (at: Date) =>
  proto.google.protobuf.Timestamp.fromObject({ seconds: at.getTime() / 1_000 });

/** The occurrences that Temporal computes for the Temporal Schedule of a schedule. */
async function temporalOccurrences(id: string, [start, end]: [Date, Date]): Promise<number[]> {
  const { workflowService } = await app.deps.temporal.nativeConnection();
  const { startTime } = await workflowService.listScheduleMatchingTimes({
    namespace: app.deps.temporal.namespace,
    scheduleId: `schedule:${id}`,
    startTime: timestamp(start),
    endTime: timestamp(end),
  });
  return startTime.map(({ seconds }) => Number(seconds) * 1_000);
}

/** Instants at which only one of the two lists has an occurrence. */
const differences = (some: readonly number[], others: readonly number[]): number[] => [
  ...some.filter((ms) => !others.includes(ms)),
  ...others.filter((ms) => !some.includes(ms)),
];

const EXPRESSIONS = [
  '* 1,2 * * *',
  '30 1 * * *',
  '0 2 * * *',
  '*/15 * 13 * fri',
  ...fc.sample(cronSample, { numRuns: propertyRuns(5), seed: 7 }).map(({ text }) => text),
].flatMap((cronExpression) => {
  const parsed = parseCron(cronExpression);
  return 'errors' in parsed ? [] : [{ cronExpression, cron: parsed.cron }];
});

/**
 * Around a clock change, Temporal 1.29 omits occurrences of the repeated hour and adds others
 * (docs/adr/0015). There the record decides. At all other times both must agree.
 */
test.each(['Europe/London', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC'])(
  'Temporal has the same occurrences in %s, except around a clock change',
  async (timezone) => {
    // Schedules of the platform are not spread.
    const client = app.client.as({ tenant: 'platform' });
    const changes = clockChanges(timezone);
    const isNearChange = (ms: number) =>
      changes.some((change) => Math.abs(ms - change) <= 3 * HOUR_MS);
    const different: string[] = [];
    let compared = 0;
    for (const { cronExpression, cron } of EXPRESSIONS) {
      const { id } = await createMinutelySchedule(client, {
        cronExpression,
        timezone,
        enabled: false,
      });
      const timing = { cron, timezone, startAt: null, endAt: null };
      for (const window of windows(changes)) {
        // The Temporal Schedule is created after the response.
        const theirs = await eventually(
          () => temporalOccurrences(id, window).catch((error: unknown) => String(error)),
          (times) => typeof times !== 'string',
          { withinMs: 60_000 },
        );
        const ours = listOccurrences(timing, ...window, 1_000).map((at) => at.getTime());
        compared += ours.length;
        const unexplained = differences(ours, theirs).filter((ms) => !isNearChange(ms));
        different.push(
          ...unexplained.map((ms) => `${cronExpression} at ${new Date(ms).toISOString()}`),
        );
      }
    }
    expect(different).toEqual([]);
    expect(compared).toBeGreaterThan(1_000);
  },
);
