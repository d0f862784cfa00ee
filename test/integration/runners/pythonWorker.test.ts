import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { eventually } from '../../support/eventually.ts';
import { describeWith, pathOf } from '../../support/programs.ts';
import { createRunnerToken } from '../../support/runner.ts';
import type { PageOf } from '../../support/schedules.ts';
import { admin, createUser } from '../../support/users.ts';

const KIT = path.resolve(import.meta.dirname, '../../../clients/python');
const TYPE = 'lab.reachability';
const WAIT = { prefer: 'wait=30' };
const HERE = '127.0.0.1';
/** An address of this machine on which the application does not listen. */
const NOBODY = '127.0.0.2';

type PythonWorker = { child: ChildProcess; exited: Promise<number | null>; output(): string };

describeWith('python', 'a worker in Python', () => {
  let app: TestApp;
  let root: TestClient;
  let authorization: string;
  const workers: PythonWorker[] = [];

  function startWorker(): PythonWorker {
    const child = spawn(pathOf('python'), ['examples/reachability.py'], {
      cwd: KIT,
      env: {
        PATH: process.env.PATH,
        PYTHONPATH: KIT,
        PYTHONDONTWRITEBYTECODE: '1',
        HOLDFAST_URL: app.client.base,
        HOLDFAST_RUNNER_TOKEN: authorization.replace('Bearer ', ''),
        HOLDFAST_RUNNER_POOL: 'lab',
        HOLDFAST_TEMPORAL_CODEC_KEYS: app.env.HOLDFAST_TEMPORAL_CODEC_KEYS,
        TEMPORAL_ADDRESS: app.env.TEMPORAL_ADDRESS,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
    const worker = { child, exited, output: () => output };
    workers.push(worker);
    return worker;
  }

  beforeAll(async () => {
    const codecKey = `test:${Buffer.alloc(32, 3).toString('base64')}`;
    app = await startApp({ HOLDFAST_TEMPORAL_CODEC_KEYS: codecKey });
    root = admin(app);
    // Service accounts have an owner.
    await createUser(app, 'viewer');
    await root.post('/api/pools', { name: 'lab', acceptTypes: ['lab.*'] }).expect(201);
    const { identity } = await createRunnerToken(app, 'lab');
    authorization = identity.authorization ?? '';
    const worker = startWorker();
    await eventually(worker.output, (output) => output.includes(`${TYPE}: accepted`));
  });
  afterAll(async () => {
    for (const { child } of workers) child.kill('SIGKILL');
    await Promise.all(workers.map(({ exited }) => exited));
    await app.stop();
  });

  const create = (payload: object, headers: Record<string, string> = {}) => {
    const port = Number(new URL(app.client.base).port);
    const body = { type: TYPE, payload: { port, ...payload } };
    return root.post<JobRecord>('/api/jobs', body, headers).expect(201);
  };
  const read = (id: string, headers: Record<string, string> = {}) =>
    root.get<JobRecord>(`/api/jobs/${id}`, headers).expect(200);
  const linesOf = async (id: string) =>
    (await root.get<PageOf<LogRecord>>(`/api/jobs/${id}/logs?limit=100`).expect(200)).items;
  const cancel = (id: string) =>
    root.post<JobRecord>(`/api/jobs/${id}/cancel`, undefined, WAIT).expect(202);

  test('takes a job: log, progress and result are those of the job', async () => {
    const job = await create({ hosts: [HERE, NOBODY] }, WAIT);
    expect(job).toMatchObject({
      status: 'succeeded',
      attempts: 1,
      result: { reachable: [HERE], missing: [NOBODY] },
      progress: { percent: 50, message: NOBODY },
    });
    expect((await linesOf(job.id)).map(({ level, message }) => [level, message])).toEqual(
      expect.arrayContaining([
        ['info', `${HERE} accepts connections`],
        ['warn', `${NOBODY} does not answer`],
      ]),
    );
  });

  test('fails as the retry policy of its type says', async () => {
    const job = await create({ hosts: [NOBODY], required: true }, WAIT);
    expect(job).toMatchObject({
      status: 'failed',
      attempts: 3,
      error: { code: 'unreachable', message: '1 of 1 hosts do not answer' },
    });
  });

  test('stops its work when the job is cancelled', async () => {
    const { id } = await create({ hosts: [HERE], pauseSeconds: 3_600 });
    await eventually(
      () => linesOf(id),
      (lines) => lines.some(({ message }) => message.includes('accepts')),
    );
    expect((await cancel(id)).status).toBe('cancelled');
  });

  test('is replaced when it is killed in the middle: another one makes the next attempt', async () => {
    const { id } = await create({ hosts: [HERE], pauseSeconds: 3_600 });
    const saidIn = (attempt: number) =>
      eventually(
        () => linesOf(id),
        (lines) =>
          lines.some((line) => line.attempt === attempt && line.message.includes('accepts')),
        { withinMs: 40_000 },
      );
    await saidIn(1);
    workers[0]?.child.kill('SIGKILL');
    const next = startWorker();
    const lines = await saidIn(2);
    expect(lines.filter(({ message }) => message.includes('accepts'))).toHaveLength(2);
    expect(await read(id)).toMatchObject({ status: 'running', attempts: 2 });
    expect((await cancel(id)).status).toBe('cancelled');
    // Asked to stop, it leaves the list of runners.
    next.child.kill('SIGTERM');
    expect(await next.exited).toBe(0);
  });
});
