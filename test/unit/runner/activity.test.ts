import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ActivityCancellationDetails } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { EndRequest } from '../../../domain/runners/protocol.ts';
import { createLog } from '../../../platform/log.ts';
import { createActivity, runnerStopRequest } from '../../../runner/activity.ts';
import { eventually } from '../../support/eventually.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

let types: DeclaredTypes;

beforeAll(async () => void (types = await createDeclaredTypes()));
afterAll(() => types.remove());

const LEASE = { leaseMs: 60_000, remainingLines: 100 };
const STARTED = {
  ...{ outcome: 'started', attempt: 1, payload: {}, target: null, secrets: {} },
  ...{ timeoutMs: 60_000, maxAttempts: 3, ...LEASE },
};

/** The activity of a job whose command runs until `endCommand`, in the SDK's environment of activities. */
async function startActivity() {
  const go = path.join(types.folder, randomUUID());
  const type = await types.declare(
    `echo ready; until [ -e ${go} ]; do sleep 0.02; done; echo '{"ok": true}' > $HOLDFAST_RESULT`,
    { stop: { graceSeconds: 0.1 } },
  );
  const ends: EndRequest[] = [];
  let sent = '';
  let have = 0;
  const api = {
    begin: (_job: string, { attemptToken }: { attemptToken: string }) =>
      Promise.resolve({ ...STARTED, attemptToken }),
    lines(_job: string, _token: string, _query: object, body: string) {
      sent += body;
      have += body.split('\n').length - 1;
      return Promise.resolve({ ...LEASE, have, cancel: false });
    },
    end(_job: string, _token: string, end: EndRequest) {
      ends.push(end);
      return Promise.resolve({ status: 'succeeded', code: null, retryInMs: null });
    },
  };
  const runner = new AbortController();
  const activity = createActivity({
    api,
    catalog: { current: () => Promise.resolve(type) },
    host: { workFolder: types.workFolder, secretsFolder: undefined, wrapper: [] },
    runnerId: randomUUID(),
    log: createLog('silent', false),
    announceChange: () => Promise.resolve(),
    commandStop: runner.signal,
  } as unknown as Parameters<typeof createActivity>[0]);
  const environment = new MockActivityEnvironment({ activityType: 'test.type' });
  const ended = environment.run(activity, { jobId: 'job_1' }).catch(() => undefined);
  await eventually(
    () => sent,
    (lines) => lines.includes('ready'),
  );
  return {
    /** Cancels the activity as the SDK does. */
    drop: (details: Partial<ActivityCancellationDetails>) =>
      environment.cancel('NOT_FOUND', new ActivityCancellationDetails(details)),
    stopRunner: () => runner.abort(runnerStopRequest()),
    endCommand: () => writeFile(go, ''),
    /** How the attempt has ended, as the API has heard. */
    async end() {
      await ended;
      return ends;
    },
  };
}

test.each(['notFound', 'timedOut', 'paused', 'reset'] as const)(
  'an activity that Temporal has dropped (%s) lets its command run to its end, and reports it',
  async (reason) => {
    const activity = await startActivity();
    activity.drop({ [reason]: true });
    await activity.endCommand();
    expect(await activity.end()).toEqual([{ result: { ok: true } }]);
  },
);

test('a runner that stops interrupts also a command whose activity Temporal has dropped', async () => {
  const activity = await startActivity();
  activity.drop({ notFound: true });
  activity.stopRunner();
  expect(await activity.end()).toMatchObject([{ failure: { code: 'interrupted' } }]);
});

test.each([
  ['cancelRequested', { cancelled: true }],
  ['workerShutdown', { failure: { code: 'interrupted' } }],
])('a command is stopped for %s', async (reason, end) => {
  const activity = await startActivity();
  activity.drop({ [reason]: true });
  expect(await activity.end()).toMatchObject([end]);
});
