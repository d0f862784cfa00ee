import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { ActivityCancellationDetails } from '@temporalio/common';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { randomUUID } from 'node:crypto';
import { readdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { EndRequest } from '../../../domain/runners/protocol.ts';
import { createLog } from '../../../platform/log.ts';
import { createActivity, runnerStopRequest } from '../../../runner/activity.ts';
import { createPreparer, prepareRun, type Preparer } from '../../../runner/command/preparedRun.ts';
import { openWorkFolder } from '../../../runner/command/runFolder.ts';
import { RunnerApiError } from '../../../runner/protocol/api.ts';
import { eventually } from '../../support/eventually.ts';
import { createDeclaredTypes, type DeclaredTypes } from '../../support/runner/declared.ts';

let types: DeclaredTypes;

beforeAll(async () => {
  types = await createDeclaredTypes();
  await types.addSecret('activity-key', 'a secret');
});
afterAll(() => types.remove());

const LEASE = { leaseMs: 60_000, remainingLines: 100 };
const STARTED = {
  ...{ outcome: 'started', attempt: 1, payload: {}, target: null, secrets: {} },
  ...{ timeoutMs: 60_000, maxAttempts: 3, ...LEASE },
};

type ActivityOptions = {
  script: string;
  preparer?: Preparer;
  /** Of the first end: the status with which the API refuses it. */
  refusal?: number;
  /** That refusal comes from a proxy before the API. */
  isOfProxy?: boolean;
  /** What the API answers to the end; by default that the job has succeeded. */
  endAnswer?: () => object;
};

const succeeded = (): object => ({ status: 'succeeded', code: null, retryInMs: null });
const NOT_ANNOUNCED = { outcome: 'wait', code: 'not_announced', retryInMs: 1_000 };

/** The activity of a job with a command, in the SDK's environment of activities. */
async function runActivity({
  script,
  preparer,
  refusal,
  isOfProxy,
  endAnswer = succeeded,
}: ActivityOptions) {
  const type = await types.declare(script, {
    run: { secrets: { KEY: { file: 'activity-key' } } },
    stop: { graceSeconds: 0.1 },
  });
  const begins: object[] = [];
  const announced: (string | undefined)[] = [];
  const ends: EndRequest[] = [];
  let sent = '';
  let have = 0;
  const api = {
    begin(_job: string, request: { attemptToken: string; digest?: string }) {
      begins.push(request);
      const { attemptToken, digest } = request;
      if (digest === undefined) return Promise.resolve(NOT_ANNOUNCED);
      return Promise.resolve({ ...STARTED, attemptToken });
    },
    lines(_job: string, _token: string, _query: object, body: string) {
      sent += body;
      have += body.split('\n').length - 1;
      return Promise.resolve({ ...LEASE, have, cancel: false });
    },
    end(_job: string, _token: string, end: EndRequest) {
      ends.push(end);
      if (refusal !== undefined && ends.length === 1)
        return Promise.reject(new RunnerApiError(refusal, 'refused', 'Refused \0', { isOfProxy }));
      return Promise.resolve(endAnswer());
    },
  };
  const runner = new AbortController();
  const activity = createActivity({
    api,
    catalog: { current: () => Promise.resolve(type) },
    host: {
      workFolder: types.workFolder,
      secretsFolder: types.secretsFolder,
      wrapper: [],
    },
    preparer: preparer ?? createPreparer(types.workFolder),
    runnerId: randomUUID(),
    log: createLog('silent', false),
    announceChange: (_name: string, digest: string | undefined) =>
      Promise.resolve(void announced.push(digest)),
    commandStop: runner.signal,
  } as unknown as Parameters<typeof createActivity>[0]);
  const environment = new MockActivityEnvironment({ activityType: 'test.type' });
  const ended = environment
    .run(activity, { jobId: 'job_1' })
    .then(() => undefined)
    .catch((error: unknown) => error);
  return { environment, runner, ended, begins, announced, ends, sent: () => sent };
}

/** The activity of a job whose command runs until `endCommand`. */
async function startActivity() {
  const go = path.join(types.folder, randomUUID());
  const { environment, runner, ended, ends, sent } = await runActivity({
    script: `echo ready; until [ -e ${go} ]; do sleep 0.02; done; echo '{"ok": true}' > $HOLDFAST_RESULT`,
  });
  await eventually(sent, (lines) => lines.includes('ready'));
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

test('a runner that cannot prepare runs makes no attempt, and leaves the job to others', async () => {
  const work = path.join(types.folder, 'moved');
  const workFolder = await openWorkFolder(work);
  const preparer = createPreparer(workFolder);
  expect(await preparer.problem()).toBeUndefined();
  await rename(work, `${work}-away`);
  const { ended, begins, announced, ends } = await runActivity({ script: 'true', preparer });
  expect(await ended).toMatchObject({ type: 'not_announced' });
  expect(begins).toHaveLength(1);
  expect(begins[0]).not.toHaveProperty('digest');
  expect(announced).toEqual([undefined]);
  expect(ends).toEqual([]);
  expect(await preparer.problem()).toMatch(/ENOENT/);
  await rename(`${work}-away`, work);
  expect(await preparer.problem()).toBeUndefined();
});

test('a run whose supervisor cannot be started is not prepared', async () => {
  const workFolder = await openWorkFolder(path.join(types.folder, 'no-perl'));
  const preparer = createPreparer(workFolder);
  const first = await preparer.prepare();
  const { PATH } = process.env;
  process.env.PATH = types.folder;
  try {
    await expect(preparer.prepare()).rejects.toThrow(/ENOENT/);
    expect(await preparer.problem()).toMatch(/ENOENT/);
  } finally {
    process.env.PATH = PATH;
  }
  await first.discard();
  expect((await readdir(workFolder.folder)).filter((name) => !name.startsWith('pipe-'))).toEqual(
    [],
  );
});

test.each(['payload', 'secrets'] as const)(
  'an attempt whose %s cannot be written is interrupted: it does not count',
  async (file) => {
    const preparer: Preparer = {
      async prepare() {
        const prepared = await prepareRun(types.workFolder);
        const run = { ...prepared.run, [file]: '/dev/null/none' };
        return { ...prepared, run };
      },
      problem: () => Promise.resolve(undefined),
    };
    const { ended, ends } = await runActivity({ script: 'true', preparer });
    await ended;
    expect(ends).toEqual([
      {
        failure: {
          code: 'interrupted',
          message: 'The runner could not write the files of the run',
          retryable: true,
        },
      },
    ]);
  },
);

const RESULT = `echo '{"n": 1}' > $HOLDFAST_RESULT`;
test.each([
  [413, RESULT, { code: 'result_too_large', retryable: false }],
  [400, RESULT, { code: 'invalid_result', retryable: false }],
  [400, 'exit 1', { code: 'unexpected', retryable: true }],
])('an end that is refused with %i is replaced by its reason', async (refusal, script, failure) => {
  const { ended, ends } = await runActivity({ script, refusal });
  await ended;
  expect(ends).toHaveLength(2);
  expect(ends[1]).toEqual({ failure: { message: 'Refused \uFFFD', ...failure } });
});

test('Temporal gets no text of an unexpected error', async () => {
  const { ended } = await runActivity({
    script: 'true',
    endAnswer: () => {
      throw new Error('a text of the job');
    },
  });
  const failure = await ended;
  expect(failure).toBeInstanceOf(ApplicationFailure);
  expect(failure).toMatchObject({
    type: 'unexpected',
    message: 'The attempt failed with unexpected',
  });
  expect((failure as ApplicationFailure).cause).toBeUndefined();
});

test.each([400, 403, 404, 409, 413])(
  'an end that a proxy refuses with %i is sent again as it is',
  async (refusal) => {
    const { ended, ends } = await runActivity({ script: 'true', refusal, isOfProxy: true });
    expect(await ended).toBeUndefined();
    expect(ends).toEqual([{ result: {} }, { result: {} }]);
  },
);

test('the message of a failure is one that Holdfast accepts, whatever the command has written', async () => {
  const { ended, ends } = await runActivity({
    script: `k=$(head -c 100000 /dev/zero | tr '\\0' k); printf '%s' '{"a\\u0000b\\ud800'$k'": "\\u0000"}' > $HOLDFAST_RESULT`,
  });
  await ended;
  expect(ends).toHaveLength(1);
  const [end] = ends;
  const message = end && 'failure' in end ? end.failure.message : '';
  expect(message).toMatch(/^The result \/a\uFFFDb\uFFFDk/);
  expect(message.length).toBeLessThanOrEqual(4_000);
});
