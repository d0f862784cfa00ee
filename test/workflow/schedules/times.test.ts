import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { parseCron } from '../../../domain/schedules/cron.ts';
import { listDue } from '../../../domain/schedules/occurrences.ts';
import { offsetPeriodAt } from '../../../domain/schedules/timeZone.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { expression } from '../../support/cronModel.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const FROM_MS = Date.UTC(2026, 11, 1);

/** The next changes of a zone's clocks. */
function clockChanges(zone: string): number[] {
  const changes: number[] = [];
  for (let ms = FROM_MS; changes.length < 6;) {
    ms = offsetPeriodAt(zone, ms).endMs;
    if (ms === Infinity) break;
    changes.push(ms);
  }
  return changes;
}

/** The days around every change, and some others. Temporal leaves out a time at the very beginning: none has 30 s. */
const windows = (changes: readonly number[]): [Date, Date][] =>
  [...changes, ...[0, 100, 450, 1_000, 2_400].map((days) => FROM_MS + days * DAY_MS)].map((ms) => [
    new Date(ms - 1.5 * DAY_MS + 30_000),
    new Date(ms + 1.5 * DAY_MS + 30_000),
  ]);

const timestamp = (at: Date) => ({ seconds: at.getTime() / 1_000 }) as any;

/** What Temporal's own calendar makes of the mirror of a schedule. */
async function timesOfTemporal(id: string, [start, end]: [Date, Date]): Promise<number[]> {
  const { workflowService } = await app.deps.link.connection();
  const request = {
    namespace: app.deps.link.namespace,
    scheduleId: `schedule:${id}`,
    startTime: timestamp(start),
    endTime: timestamp(end),
  };
  const { startTime } = await workflowService.listScheduleMatchingTimes(request);
  return (startTime ?? []).map(({ seconds }) => Number(seconds) * 1_000);
}

const TEXTS = [
  '* 1,2 * * *',
  '30 1 * * *',
  '0 2 * * *',
  '*/15 * 13 * fri',
  ...fc.sample(expression, { numRuns: 20, seed: 7 }).map(({ text }) => text),
];

/**
 * Around a change of the clocks Temporal 1.29 leaves times of the hour that comes twice out, and makes some up (docs/adr/0015):
 * the record knows better, so that none is lost and none is too many. Elsewhere both must have the same.
 */
test.each(['Europe/London', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC'])(
  'Temporal has the same times in %s but for hours around a change of the clocks',
  async (timezone) => {
    const client = app.client.as({ tenant: 'times' });
    const changes = clockChanges(timezone);
    const different: string[] = [];
    let compared = 0;
    for (const cronExpression of TEXTS) {
      const made = await client.post('/api/schedules', {
        name: cronExpression,
        cronExpression,
        timezone,
        jobType: 'core.echo',
        enabled: false,
      });
      const parsed = parseCron(cronExpression);
      if (made.status !== 201 || 'errors' in parsed) continue;
      for (const window of windows(changes)) {
        const theirs =
          (await eventually(
            () => timesOfTemporal(made.body.id, window).catch(() => null),
            (times) => times !== null,
          )) ?? [];
        const ours = listDue(
          { cron: parsed.cron, timezone, startAt: null, endAt: null },
          ...window,
          1_000,
        ).map((time) => time.getTime());
        compared += ours.length;
        const differ = [
          ...ours.filter((ms) => !theirs.includes(ms)),
          ...theirs.filter((ms) => !ours.includes(ms)),
        ];
        const unexplained = differ.filter(
          (ms) => !changes.some((change) => Math.abs(ms - change) <= 3 * HOUR_MS),
        );
        different.push(
          ...unexplained.map((ms) => `${cronExpression} at ${new Date(ms).toISOString()}`),
        );
      }
    }
    expect(different).toEqual([]);
    expect(compared).toBeGreaterThan(1_000);
  },
);
