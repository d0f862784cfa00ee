import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { ApprovalRecord } from '../../../api/approvals/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import type { WebhookRecord } from '../../../api/webhooks/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { approveAndWait, createRequest } from '../../support/approvals.ts';
import type { TestClient } from '../../support/client.ts';
import { jobIdOf, triggerSchedule } from '../../support/schedules.ts';
import { respondWith, startSink, type Sink } from '../../support/sink.ts';

const CANARY = 'canary-8c1f';
/** Credentials in many notations, and fields that are none. */
const PAYLOAD = {
  hello: 'world',
  password: CANARY,
  'Api-Key': CANARY,
  PRIVATE_KEY: CANARY,
  nested: [{ deeper: { clientSecret: { value: CANARY } } }],
  headers: [{ name: 'Authorization', value: `Bearer ${CANARY}` }],
  json: JSON.stringify({ access_token: CANARY }),
  form: `user=bob&password=${CANARY}`,
  url: `https://bob:${CANARY}@host/path?token=${CANARY}&page=1`,
};
const WAIT = { prefer: 'wait=30' };

let app: TestApp;
let sink: Sink;
beforeAll(async () => {
  [app, sink] = await Promise.all([startApp(), startSink()]);
});
afterAll(async () => {
  await app.stop();
  await sink.stop();
});

/** Creates what can hold a payload, as the author, and returns the ids of all records by kind. */
async function createRecords(author: TestClient) {
  sink.respond('/fails', respondWith(500, {}, JSON.stringify(PAYLOAD)));
  const endpointUrl = `${sink.url('/events')}?api_key=${CANARY}`;
  const webhook = await author
    .post<WebhookRecord>('/api/webhooks', { endpointUrl, eventTypes: '*' })
    .expect(201);
  expect(webhook.endpointUrl).toBe(endpointUrl);
  const createJob = (body: object) => author.post<JobRecord>('/api/jobs', body, WAIT).expect(201);
  const echo = await createJob({ type: 'core.echo', payload: PAYLOAD });
  const failed = await createJob({
    type: 'http.request',
    payload: { url: sink.url(`/fails?token=${CANARY}`), method: 'POST', body: PAYLOAD.json },
  });
  const schedule = await author
    .post<ScheduleRecord>('/api/schedules', {
      name: 'echo',
      cronExpression: '@yearly',
      jobType: 'core.echo',
      payload: PAYLOAD,
    })
    .expect(201);
  const run = await triggerSchedule(author, schedule.id);
  const approval = await createRequest(author, {
    payload: PAYLOAD,
    jobType: 'core.echo',
    jobPayload: PAYLOAD,
  });
  return { webhook, echo, failed, schedule, run, approval };
}

/** All paths of the API that `GET` reads, with the ids of the records in them. */
async function pathsToRead(ids: Record<string, string[]>): Promise<string[]> {
  const { paths } = await app.client
    .get<{ paths: Record<string, { get?: unknown }> }>('/api/openapi.json')
    .expect(200);
  return Object.keys(paths)
    .filter((path) => paths[path]?.get !== undefined)
    .flatMap((path) => {
      const [before = '', after] = path.split(/\{[^}]+\}/);
      if (after === undefined) return [path];
      return (ids[before.replace(/\/$/, '')] ?? []).map((id) => `${before}${id}${after}`);
    });
}

test('credentials in payloads are shown to their author only, in every response', async () => {
  const tenant = 'canaries';
  const author = app.client.as({ tenant });
  const other = app.client.as({ tenant, actor: 'root', roles: 'platform-admin,approver' });
  const { webhook, echo, failed, schedule, run, approval } = await createRecords(author);
  const approved = await approveAndWait(other, approval.id);
  const retried = await other
    .post<JobRecord>(`/api/jobs/${echo.id}/retry`, undefined, WAIT)
    .expect(201);

  expect(echo).toMatchObject({ payload: PAYLOAD, result: PAYLOAD });
  expect(schedule.payload).toEqual(PAYLOAD);
  const own = await author.get<ApprovalRecord>(`/api/workflows/${approval.id}`).expect(200);
  expect(own).toMatchObject({ payload: PAYLOAD, jobPayload: PAYLOAD });
  const jobs = [echo.id, failed.id, retried.id, jobIdOf(run), jobIdOf(approved)];
  const paths = await pathsToRead({
    '/api/jobs': jobs,
    '/api/schedules': [schedule.id],
    '/api/schedules/logs': [run.id],
    '/api/workflows': [approval.id],
    '/api/webhooks': [webhook.id],
  });
  expect(paths.length).toBeGreaterThan(40);
  const streams = jobs.map((id) => `/api/jobs/${id}/logs?follow`);
  for (const path of [...paths, ...streams]) {
    const { body } = await other.get(path);
    expect([path, JSON.stringify(body)]).toEqual([path, expect.not.stringContaining(CANARY)]);
  }
  const read = await other.get<JobRecord>(`/api/jobs/${echo.id}`).expect(200);
  expect(read.result).toMatchObject({ hello: 'world', password: '********' });
  expect(JSON.stringify([retried, approved])).not.toContain(CANARY);
  expect(JSON.stringify(sink.bodiesTo('/events'))).not.toContain(CANARY);
  // A webhook and a schedule as another user reads them can be sent back.
  const path = `/api/webhooks/${webhook.id}`;
  const { endpointUrl } = await other.get<WebhookRecord>(path).expect(200);
  await other.put(path, { endpointUrl }).expect(200);
  await other.put(path, { endpointUrl: `${endpointUrl}&more=1` }).expect(400);
  const kept = await author.get<WebhookRecord>(path).expect(200);
  expect(kept.endpointUrl).toBe(webhook.endpointUrl);
  const masked = await other.get<ScheduleRecord>(`/api/schedules/${schedule.id}`).expect(200);
  await other.put(`/api/schedules/${schedule.id}`, { payload: masked.payload }).expect(200);
  expect((await author.get<ScheduleRecord>(`/api/schedules/${schedule.id}`)).body).toMatchObject({
    payload: PAYLOAD,
    owner: 'alice',
  });
});
