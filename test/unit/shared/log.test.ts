import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { pino } from 'pino';
import { jobLog } from '../../../platform/log.ts';
import { createRepeatedWarnings } from '../../../platform/repeatedWarnings.ts';
import { eventually } from '../../support/eventually.ts';

type Line = Record<string, unknown>;

function capture(windowMs: number) {
  const lines: Line[] = [];
  const log = pino(
    { base: null, timestamp: false, hooks: { logMethod: createRepeatedWarnings(windowMs) } },
    { write: (text: string) => void lines.push(JSON.parse(text) as Line) },
  );
  return { log, lines };
}

test('a repeated warning is written once, then with its count', async () => {
  const { log, lines } = capture(20);
  for (let attempt = 1; attempt <= 5; attempt++)
    log.child({ loop: 'relay' }).warn({ err: new Error('away'), attempt }, 'failed');
  expect(lines).toHaveLength(1);
  await eventually(
    () => lines,
    (written) => written.length === 2,
  );
  expect(lines[1]).toMatchObject({ loop: 'relay', attempt: 5, repeated: 4, msg: 'failed' });
});

test('a warning of every round of a loop is written ever more rarely, and never forgotten in between', async () => {
  const { log, lines } = capture(10);
  const started = Date.now();
  // Rounds are longer apart than the first window.
  const round = setInterval(() => log.warn({ err: new Error('away') }, 'failed'), 15);
  await eventually(
    () => lines,
    (written) => written.length === 4,
  );
  clearInterval(round);
  // After windows of 10, 20 and 40 ms with a repetition, each.
  expect(Date.now() - started).toBeGreaterThanOrEqual(70);
  expect(lines.slice(1).every(({ repeated }) => Number(repeated) > 0)).toBe(true);
});

test('of too many different warnings, the oldest are forgotten', async () => {
  const { log, lines } = capture(10);
  const warn = (record: number) => log.warn({ record: `r${record}` }, `m${record % 5}`);
  // A window writes at most 100.
  for (let round = 0; round <= 10; round++) {
    for (let record = 0; record < 100; record++) warn(100 * round + record);
    await sleep(15);
  }
  expect(lines).toHaveLength(1_100);
  warn(1_099);
  expect(lines).toHaveLength(1_100);
  warn(0);
  expect(lines).toHaveLength(1_101);
});

test('different warnings are limited together, and the last one says how many were left out', async () => {
  const { log, lines } = capture(50);
  const warn = (message: string, count: number) => {
    for (let route = 0; route < count; route++)
      log.warn({ route: `/${message}/${route}` }, message);
  };
  warn('outage', 230);
  expect(lines).toHaveLength(20);
  for (const message of ['a', 'b', 'c', 'd']) warn(message, 20);
  warn('e', 1);
  expect(lines).toHaveLength(100);
  log.error('an error is written');
  expect(lines).toHaveLength(101);
  await eventually(
    () => lines,
    (written) => written.length > 101,
  );
  expect(lines.slice(101)).toEqual([{ level: 40, route: '/e/0', leftOut: 211, msg: 'e' }]);
  warn('outage', 20);
  expect(lines.filter(({ msg }) => msg === 'outage')).toHaveLength(20);
  log.warn({ route: '/new' }, 'outage');
  expect(lines.filter(({ msg }) => msg === 'outage')).toHaveLength(21);
});

test('warnings about different records or with different errors are different; errors are all written', () => {
  const { log, lines } = capture(10_000);
  jobLog(log, 'job_1').warn('lost');
  jobLog(log, 'job_2').warn('lost');
  log.warn({ err: new Error('a') }, 'failed');
  log.warn({ err: new Error('b') }, 'failed');
  log.warn({ requestId: 'req_1' }, 'refused');
  log.warn({ requestId: 'req_2' }, 'refused');
  log.error({ err: new Error('a') }, 'failed');
  log.error({ err: new Error('a') }, 'failed');
  expect(lines.map(({ msg }) => msg)).toEqual([
    ...['lost', 'lost', 'failed', 'failed', 'refused', 'failed', 'failed'],
  ]);
  expect(lines[0]).toMatchObject({ jobId: 'job_1', workflowId: 'job:job_1' });
});
