import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { Type } from 'typebox';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { defineJobType } from '../../../domain/jobs/jobType.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { startForwarder, type Forwarder } from '../../support/forwarder.ts';

const HEARTBEAT_MS = 1_000;

/** The attempts that run now, by the worker that makes them, and those that were ended. */
const running = new Map<string, number>();
const ended: [string, number][] = [];

/** A job type whose attempts run until they are ended. */
const heldType = (worker: string) =>
  defineJobType({
    name: 'test.held',
    summary: 'Runs until it is ended',
    payload: Type.Object({}),
    lane: 'activity',
    timeoutMs: 600_000,
    retry: { maxAttempts: 3 },
    run: (_payload, { attempt, signal }) =>
      new Promise((_resolve, reject) => {
        running.set(worker, attempt);
        signal.addEventListener('abort', () => {
          running.delete(worker);
          ended.push([worker, attempt]);
          reject(signal.reason as Error);
        });
      }),
  });

/** Between the first worker and Temporal. */
let forwarder: Forwarder;
let cutOff: TestApp;
let other: TestApp | undefined;
beforeAll(async () => {
  const temporal = process.env.TEST_TEMPORAL_ADDRESS ?? '';
  forwarder = await startForwarder(new URL(`tcp://${temporal}`));
  cutOff = await startApp(
    { TEMPORAL_ADDRESS: forwarder.address, HOLDFAST_HEARTBEAT_MS: String(HEARTBEAT_MS) },
    { extraJobTypes: [heldType('cut off')] },
  );
});
beforeEach(() => void ended.splice(0));
afterAll(async () => {
  await other?.stop();
  await cutOff.stop();
  await forwarder.close();
});

const read = (id: string) => cutOff.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
async function startHeld(): Promise<string> {
  const body = { type: 'test.held', payload: {} };
  const { id } = await cutOff.client.post<JobRecord>('/api/jobs', body).expect(201);
  await eventually(
    () => running.get('cut off'),
    (attempt) => attempt === 1,
  );
  return id;
}

test('an attempt whose worker does not reach Temporal ends when its job is cancelled', async () => {
  const id = await startHeld();
  await forwarder.close();
  await cutOff.client.post(`/api/jobs/${id}/cancel`).expect(202);
  const job = await eventually(
    () => read(id),
    ({ status }) => status !== 'running',
  );
  expect(job).toMatchObject({ status: 'cancelled', attempts: 1 });
  expect(ended).toEqual([['cut off', 1]]);
  await forwarder.open();
});

test('an attempt whose worker does not reach Temporal ends when another worker makes the next one', async () => {
  const id = await startHeld();
  other = await startAppOn(
    cutOff.databaseUrl,
    {
      HOLDFAST_ROLE: 'worker',
      HOLDFAST_TASK_QUEUE: cutOff.deps.taskQueue,
      HOLDFAST_HEARTBEAT_MS: String(HEARTBEAT_MS),
    },
    { extraJobTypes: [heldType('other')] },
  );
  await forwarder.close();
  await eventually(
    () => running.get('other'),
    (attempt) => attempt === 2,
  );
  await eventually(
    () => ended,
    (all) => all.length > 0,
  );
  expect(ended).toEqual([['cut off', 1]]);
  // What the first one does at its end changes nothing.
  expect(await read(id)).toMatchObject({ status: 'running', attempts: 2, error: null });
  expect([...running]).toEqual([['other', 2]]);
  await forwarder.open();
  await cutOff.client.post(`/api/jobs/${id}/cancel`, {}, { prefer: 'wait=20' }).expect(202);
  expect(await read(id)).toMatchObject({ status: 'cancelled', attempts: 2 });
});
