import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import { systemScheduleId } from '../../../domain/dispatch/workflowIds.ts';
import { leaveTemporal } from '../../../processes/cli/leaveTemporal.ts';
import { findInTemporal, removeFromTemporal } from '../../../temporal/removeInstallation.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { runHere } from '../../support/commands.ts';
import { createDatabase, type TestDatabase } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { runCommand } from '../../support/processes.ts';
import { createMinutelySchedule } from '../../support/schedules.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let other: TestApp;
let database: TestDatabase;
beforeAll(async () => {
  app = await startApp();
  database = await createDatabase();
  other = await startAppOn(database.url);
});
afterAll(async () => {
  await runHere(other, leaveTemporal, '--remove');
  await other.stop();
  await database.drop();
  await app.stop();
});

const found = ({ deps }: TestApp) => findInTemporal(deps.temporal, deps.config.taskQueue);

/** Starts work that goes on for longer than the test, and waits until Temporal lists all of it. */
async function startWork(target: TestApp): Promise<{ job: JobRecord; scheduleId: string }> {
  const client = admin(target);
  const { id: scheduleId } = await createMinutelySchedule(client, {
    // Not due in the middle of the test.
    cronExpression: '0 0 1 1 *',
  });
  const job = await client
    .post<JobRecord>('/api/jobs', { type: 'core.sleep', payload: { durationMs: 60_000 } })
    .expect(201);
  await eventually(
    () => found(target),
    ({ schedules, workflows }) => schedules.length === 3 && workflows.length > 0,
  );
  return { job, scheduleId };
}

test('each deadline covers a limited number of removals', async () => {
  const removed: number[] = [];
  const count = () => {
    removed.push((removed.pop() ?? 0) + 1);
    return Promise.resolve();
  };
  const client = {
    schedule: { getHandle: () => ({ delete: count }) },
    workflow: { getHandle: () => ({ terminate: count }) },
  } as unknown as Client;
  const call = <T>(_deadlineMs: number, calls: (client: Client) => Promise<T>): Promise<T> => {
    removed.push(0);
    return calls(client);
  };
  const idsOf = (length: number) => Array.from({ length }, (_, n) => `id${n}`);
  await removeFromTemporal({ call }, { schedules: idsOf(2_050), workflows: idsOf(500) });
  expect(removed.reduce((sum, each) => sum + each, 0)).toBe(2_550);
  expect(Math.max(...removed)).toBeLessThanOrEqual(100);
});

describe('leave-temporal', () => {
  test('lists, then removes what this installation has in the namespace, and nothing of another', async () => {
    const [own] = await Promise.all([startWork(app), startWork(other)]);
    const listed = await runHere(app, leaveTemporal);
    expect(listed.text).toMatch(/Schedules {3}3\nWorkflows {3}1\n[^]*Nothing was removed/);
    expect((await found(app)).schedules.sort()).toEqual(
      [
        `schedule:${own.scheduleId}`,
        systemScheduleId(app.env.HOLDFAST_TASK_QUEUE ?? '', 'reconcile'),
        systemScheduleId(app.env.HOLDFAST_TASK_QUEUE ?? '', 'reconcileSchedules'),
      ].sort(),
    );

    expect((await runHere(app, leaveTemporal, '--remove')).status).toBe(0);
    expect(await found(app)).toEqual({ schedules: [], workflows: [] });
    const untouched = await found(other);
    expect([untouched.schedules.length, untouched.workflows.length]).toEqual([3, 1]);
  });

  test('needs no database, and says where no Temporal answers', async () => {
    const { DATABASE_URL, ...env } = app.env;
    const listed = await runCommand(env, 'leave-temporal');
    expect([listed.status, listed.stderr]).toEqual([0, '']);
    expect(listed.stdout).toMatch(`Task queue  ${env.HOLDFAST_TASK_QUEUE}`);
    const failed = await runCommand({ ...env, TEMPORAL_ADDRESS: '127.0.0.1:1' }, 'leave-temporal');
    expect([failed.status, failed.stdout]).toEqual([1, '']);
    expect(failed.stderr).toMatch(/^Failed: Temporal does not answer at TEMPORAL_ADDRESS: /);
  });
});
