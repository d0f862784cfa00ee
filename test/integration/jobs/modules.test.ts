import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { JobError } from '../../../domain/jobs/jobs.ts';
import type { JobTypeRecord } from '../../../api/jobs/typeSchemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import type { PageOf } from '../../support/schedules.ts';
import { expectProblem } from '../../support/problem.ts';
import { respondWith, startSink, type Sink } from '../../support/sink.ts';
import { admin, createUser } from '../../support/users.ts';

type Site = { id: string; name: string; address: string | null; version: number };

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  const modules = 'examples/modules/*.ts, test/support/modules/*.ts';
  const folder = await mkdtemp(path.join(tmpdir(), 'holdfast-module-files-'));
  [app, sink] = await Promise.all([
    startApp({ HOLDFAST_JOB_TYPES: modules, HOLDFAST_BACKUP_DIR: folder }),
    startSink(),
  ]);
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
});

const WAIT = { prefer: 'wait=30' };
const run = (type: string, payload: object, client = app.client) =>
  client.post<JobRecord>('/api/jobs', { type, payload }, WAIT).expect(201);
const sitesNamed = async (...names: string[]) =>
  (
    await app.client
      .get<PageOf<Site>>(`/api/inventory/sites?${names.map((name) => `name=${name}`).join('&')}`)
      .expect(200)
  ).items;
const listOf = (...sites: object[]) =>
  respondWith(200, { 'content-type': 'application/json' }, JSON.stringify(sites));

describe('a job type of a module', () => {
  test('is among the job types, and its payload is checked when a job is created', async () => {
    const { items } = await app.client.get<PageOf<JobTypeRecord>>('/api/job-types').expect(200);
    expect(items.find(({ name }) => name === 'acme.site-sync')).toMatchObject({
      lane: 'activity',
      timeoutMs: 300_000,
      retryPolicy: { maxAttempts: 5 },
      payloadSchema: { properties: { token: { 'x-holdfast-secret': true } } },
    });
    const body = { type: 'acme.site-sync', payload: { url: 7, more: true } };
    const { errors } = await app.client
      .post<{ errors: { pointer: string }[] }>('/api/jobs', body)
      .expect(400);
    expect(errors.map(({ pointer }) => pointer)).toEqual(['/payload/more', '/payload/url']);
  });

  test('reads from another server and changes the inventory, all of it as its caller', async () => {
    sink.respond('/sites', listOf({ name: 'ams1', address: 'Kade 1' }, { name: 'fra1' }));
    const payload = { url: sink.url('/sites'), token: 'token-of-the-list' };
    const planned = await run('acme.site-sync', payload);
    expect(planned.result).toEqual({ changed: 0, wouldChange: 2, valid: true });
    expect(planned.payload).toEqual({ ...payload, dryRun: true });
    expect(await sitesNamed('ams1', 'fra1')).toEqual([]);

    const applied = await run('acme.site-sync', { ...payload, dryRun: false });
    expect(applied).toMatchObject({ status: 'succeeded', result: { changed: 2 } });
    sink.respond('/sites', listOf({ name: 'ams1', address: 'Kade 2' }, { name: 'fra1' }));
    const updated = await run('acme.site-sync', { ...payload, dryRun: false });
    expect(updated.result).toEqual({ changed: 1 });
    const sites = await sitesNamed('ams1', 'fra1');
    expect(sites.map(({ name, address }) => [name, address])).toEqual([
      ['fra1', null],
      ['ams1', 'Kade 2'],
    ]);
    expect(sink.requestsTo('/sites')[0]?.headers.authorization).toBe('Bearer token-of-the-list');

    const other = app.client.as({ actor: 'bob' });
    const read = await other.get<JobRecord>(`/api/jobs/${applied.id}`).expect(200);
    expect(read.payload).toEqual({ url: payload.url, token: '********', dryRun: false });
    const history = await other
      .get<PageOf<{ actorId: string }>>(`/api/inventory/sites/${sites[1]?.id}/changes`)
      .expect(200);
    expect(history.items.map(({ actorId }) => actorId)).toEqual(['alice', 'alice']);
  });

  test('is about a site, which the attempt gets, and names records that are checked', async () => {
    const { id } = await app.client
      .post<Site>('/api/inventory/sites', { name: 'target' })
      .expect(201);
    const body = { type: 'test.about-site', payload: { peer: id }, target: { kind: 'site', id } };
    const job = await app.client.post<JobRecord>('/api/jobs', body, WAIT).expect(201);
    expect(job).toMatchObject({
      status: 'succeeded',
      siteId: id,
      result: { target: { kind: 'site', id, name: 'target', siteId: id } },
    });
    const unknown = { ...body, payload: { peer: 'sit_00000000000000000000000000' } };
    const { errors } = await app.client
      .post<{ errors: { pointer: string }[] }>('/api/jobs', unknown)
      .expect(400);
    expect(errors.map(({ pointer }) => pointer)).toEqual(['/payload/peer']);
  });

  test('shows neither its secrets nor credentials in the response and the progress of a failure', async () => {
    const key = 'key-of-the-server';
    const failed = await run('test.fails-with-response', { key });
    const other = app.client.as({ actor: 'bob' });
    const read = await other.get<JobRecord>(`/api/jobs/${failed.id}`).expect(200);
    expect(read.error?.response).toMatchObject({
      status: 422,
      contentType: 'text/********',
      body: expect.stringContaining('"repeated": "********", "password": "********"'),
      truncated: true,
    });
    const { body = '' } = failed.error?.response ?? {};
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(4_096);
    expect(failed.progress?.message).toBe('asks https://bob:********@host/');
    const stored = await app.deps
      .db<{ id: string; error: JobError }>('jobs')
      .where({ id: failed.id })
      .first('error');
    expect(JSON.stringify([failed.error, failed.logs, stored])).not.toMatch(/of-the-server|hidden/);
    // From before credentials were masked when they are stored.
    const response = { ...stored?.error.response, body: 'token=hidden-7c' };
    await app.deps
      .db('jobs')
      .where({ id: failed.id })
      .update({ error: { ...stored?.error, response } });
    for (const path of [`/${failed.id}`, `/${failed.id}/logs?follow=true`, `?id=${failed.id}`]) {
      const { body: shown } = await other.get(`/api/jobs${path}`);
      expect(JSON.stringify(shown)).toContain('asks https');
      expect(JSON.stringify(shown)).not.toMatch(/of-the-server|hidden/);
    }
  });

  test('applies the same changes once, however many attempts it has', async () => {
    const job = await run('test.applies-and-fails', { prefix: 'once' });
    expect(job).toMatchObject({ status: 'succeeded', attempts: 2 });
    expect(job.result).toMatchObject({ status: 'planned' });
    const sites = await sitesNamed('once-1', 'once-2');
    expect(sites.map(({ name, version }) => [name, version])).toEqual([
      ['once-2', 1],
      // Created, then updated three times.
      ['once-1', 4],
    ]);
  });

  test('leaves files, and gets only the secrets that are released to the workers', async () => {
    const root = admin(app);
    const payload = { name: 'lines.txt', lines: 3 };
    const withoutSecret = await run('test.leaves-files', payload);
    expect(withoutSecret.error?.code).toBe('secret_missing');
    const value = 'the token of the modules';
    const secret = await root
      .post<{ id: string }>('/api/secrets', { name: 'of-modules', value, pools: ['ams'] })
      .expect(201);
    expect((await run('test.leaves-files', payload)).error?.code).toBe('secret_missing');
    await root.put(`/api/secrets/${secret.id}`, { pools: ['ams', 'modules'] }).expect(200);

    const job = await run('test.leaves-files', payload);
    expect(job).toMatchObject({
      status: 'succeeded',
      result: { bytes: 6, length: value.length, token: '********' },
    });
    expect(job.logs.map(({ message }) => message)).toContain('token ********, ********');
    const file = app.client.get<string>(`/api/jobs/${job.id}/artifacts/lines.txt`);
    expect(await file.expect(200)).toBe('1\n2\n3\n');
    const { items } = await root
      .get<PageOf<object>>(`/api/audit?action=secret.use&subjectId=${secret.id}`)
      .expect(200);
    expect(items).toMatchObject([
      { actorId: 'alice', after: { jobId: job.id, attempt: 1, pool: 'modules' } },
    ]);

    const refused = await run('test.leaves-files', { name: 'a/b', lines: 1 });
    expect(refused.error?.code).toBe('invalid_artifact');
    await expectProblem(root.post('/api/pools', { name: 'modules' }), 400, 'invalid_request');
  });

  test('needs a role that names it, unless it says otherwise', async () => {
    const job = { type: 'test.refused-changes', payload: { mutations: [] } };
    await app.client.post('/api/jobs', job).expect(403);
    await admin(app).post('/api/jobs', job).expect(201);
  });

  test('has its changes refused as a request would, with nothing applied', async () => {
    const create = { resource: 'sites', operation: 'create', record: { name: 'refused' } };
    const job = await run('test.refused-changes', { mutations: [create, create] }, admin(app));
    expect(job).toMatchObject({ status: 'failed', error: { code: 'change_rejected' } });
    expect(await sitesNamed('refused')).toEqual([]);
    const none = await run('test.refused-changes', { mutations: [] }, admin(app));
    expect(none.error).toEqual({
      code: 'change_rejected',
      message: '1 to 1000 mutations are allowed',
    });
  });

  test('loses the rights that its caller loses while it runs', async () => {
    const user = await createUser(app, 'operator');
    const answer = Promise.withResolvers<undefined>();
    sink.respond('/held', (received, response) => {
      void answer.promise.then(() => listOf({ name: 'too-late' })(received, response, 1));
    });
    const payload = { url: sink.url('/held'), dryRun: false };
    const { id } = await user.client
      .post<JobRecord>('/api/jobs', { type: 'acme.site-sync', payload })
      .expect(201);
    await eventually(
      () => sink.requestsTo('/held').length,
      (n) => n > 0,
    );
    const { items } = await admin(app)
      .get<PageOf<{ id: string }>>(`/api/rbac/assignments?userId=${user.id}`)
      .expect(200);
    await admin(app).delete(`/api/rbac/assignments/${items[0]?.id}`).expect(204);
    answer.resolve(undefined);
    const job = await admin(app).get<JobRecord>(`/api/jobs/${id}`, WAIT).expect(200);
    expect(job).toMatchObject({ status: 'failed', error: { code: 'permission_lost' } });
    expect(await sitesNamed('too-late')).toEqual([]);
  });

  test('is cancelled through its signal, and its log has no secret of its payload', async () => {
    const { id } = await app.client
      .post<JobRecord>('/api/jobs', { type: 'test.waits', payload: { key: 'open-sesame' } })
      .expect(201);
    await eventually(
      () => app.client.get<JobRecord>(`/api/jobs/${id}`).expect(200),
      ({ logs }) => logs.length > 1,
    );
    const job = await app.client
      .post<JobRecord>(`/api/jobs/${id}/cancel`, undefined, WAIT)
      .expect(202);
    expect(job.status).toBe('cancelled');
    expect(job.payload).toEqual({ key: 'open-sesame' });
    expect(job.logs[1]).toMatchObject({
      message: 'the key is ********',
      data: { nested: [{ '********': '********' }] },
    });
    expect(job.progress).toEqual({ percent: 1, message: 'waits with ********' });
  });
});
