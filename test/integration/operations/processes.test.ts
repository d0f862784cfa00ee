import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { findDifferentProcess } from '../../../db/operations/processes.ts';
import type { JobTools } from '../../../domain/jobs/jobType.ts';
import type { Log } from '../../../platform/log.ts';
import { createOwnEndpoints } from '../../../platform/ownEndpoints.ts';
import { retentionPurge } from '../../../services/jobTypes/retention/purge.ts';
import { createProcessPresence } from '../../../services/operations/processPresence.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterEach(async () => {
  await app.deps.db('processes').delete();
});
afterAll(() => app.stop());

/** Another process of the installation. */
function anotherProcess(instance: string, settings: object = {}) {
  const { db, ids, sharedSettings } = app.deps;
  const errors: object[] = [];
  const log = {
    error: (fields: object) => errors.push(fields),
    warn: () => undefined,
  } as unknown as Log;
  const ownEndpoints = createOwnEndpoints();
  const presence = createProcessPresence({
    ...{ db, ids, log, ownEndpoints, config: { instance } },
    sharedSettings: { ...sharedSettings, ...settings },
  });
  return { ...presence, ownEndpoints, errors };
}

const announced = (count: number) =>
  eventually(
    async () => (await app.deps.db('processes')).length,
    (running) => running === count,
  );

function purge() {
  const type = retentionPurge(app.deps);
  if (type.lane !== 'activity') throw new Error('The purge is an activity');
  const tools = {
    progress: () => undefined,
    log: () => undefined,
    jobId: 'job_x',
    signal: new AbortController().signal,
  };
  return type.run({}, tools as unknown as JobTools);
}

test('processes whose settings differ say so, and no purge deletes anything', async () => {
  const [other, same] = [anotherProcess('other', { retention: 'x' }), anotherProcess('same')];
  other.start();
  await announced(1);
  same.start();
  try {
    await eventually(
      () => same.errors,
      (errors) => errors.length > 0,
    );
    expect(same.errors).toEqual([
      { code: 'settings_differ', group: 'retention', instances: ['other'] },
    ]);
    await expect(purge()).rejects.toMatchObject({ code: 'settings_differ', retryable: true });
  } finally {
    await other.stop();
  }
  await expect(purge()).resolves.toMatchObject({ complete: true });
  await same.stop();
  await announced(0);
});

test('a process that was not heard of for 30 seconds does not count, nor one of a version without the group', async () => {
  const { db } = app.deps;
  const row = { instance: 'former', machine: 'm', endpoints: '[]' };
  const insert = (id: string, settings: object, seconds: number) =>
    db('processes').insert({
      ...{ ...row, id, settings: JSON.stringify(settings) },
      seen_at: db.raw("now() - ? * interval '1 second'", [seconds]),
    });
  await insert('wrk_a', { retention: 'x' }, 31);
  await insert('wrk_b', {}, 0);
  expect(await findDifferentProcess(db, 'retention', 'y')).toBeUndefined();
  await insert('wrk_c', { retention: 'x' }, 20);
  expect(await findDifferentProcess(db, 'retention', 'y')).toBe('former');
});

test('a process counts the addresses of the others as own ones', async () => {
  const [api, worker] = [anotherProcess('api'), anotherProcess('worker')];
  api.ownEndpoints.add({ host: '127.0.0.1', port: 8_099 });
  api.start();
  await announced(1);
  worker.start();
  await eventually(
    () => worker.ownEndpoints.includes('127.0.0.1', 8_099),
    (isOwn) => isOwn,
  );
  await Promise.all([api.stop(), worker.stop()]);
});
