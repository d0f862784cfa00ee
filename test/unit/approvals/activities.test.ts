import { expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createApprovalActivities } from '../../../activities/approvals.ts';
import { createLog } from '../../../platform/log.ts';

/** Runs the activity that creates the bound job. Returns how often it was lost, and what Temporal would keep of it. */
async function createBoundJob(heartbeatDetails: object | undefined, work: () => Promise<number>) {
  const environment = new MockActivityEnvironment(heartbeatDetails && { heartbeatDetails });
  const kept: unknown[] = [];
  environment.on('heartbeat', (details: unknown) => void kept.push(details));
  let lost: number | undefined;
  const activities = createApprovalActivities({
    execution: {
      createBoundJob(_id: string, before: number) {
        lost = before;
        return work();
      },
    },
    log: createLog('silent', false),
  } as unknown as Parameters<typeof createApprovalActivities>[0]);
  await environment.run(() => activities.createBoundJob('apr_x')).catch(() => undefined);
  return { lost, kept };
}

test.each([
  [undefined, 0],
  [{ lost: 2, isRunning: false }, 2],
  [{ lost: 2, isRunning: true }, 3],
])('after %j, %i workers were lost while a request was checked', async (details, lost) => {
  expect(await createBoundJob(details, () => Promise.resolve(0))).toEqual({
    lost,
    kept: [{ lost, isRunning: true }],
  });
});

test('a check that fails has lost no worker', async () => {
  const { kept } = await createBoundJob(undefined, () => Promise.reject(new Error('x')));
  expect(kept.at(-1)).toEqual({ lost: 0, isRunning: false });
});
