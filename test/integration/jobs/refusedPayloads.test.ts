import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ScheduleRecord } from '../../../api/schedules/schemas.ts';
import { startApp, startAppOn, type TestApp } from '../../support/app.ts';
import { createArchiveFolder } from '../../support/backups.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { expectProblem } from '../../support/problem.ts';
import { admin, createUser } from '../../support/users.ts';

let app: TestApp;
let archives: Awaited<ReturnType<typeof createArchiveFolder>>;
/** An administrator of the platform who acts at a tenant. */
let root: TestClient;
beforeAll(async () => {
  archives = await createArchiveFolder();
  app = await startApp(archives.env);
  const operator = { roleId: 'operator', tenantId: 'b' };
  ({ client: root } = await createUser(app, 'platform-admin', operator));
  await root.put('/api/auth/session', { tenantId: 'b' }).expect(200);
});
afterAll(async () => {
  await app.stop();
  await archives.remove();
});

const CRON = '30 2 * * *';

const backupId = 'bkp_01jd0cmxk5e5v8kyzwq0q8s3rt';

/** Payloads that their schema allowed, and the job refused at each run. */
const REFUSED: [string, object, string, string][] = [
  [
    'backup.create',
    { mode: 'partial', sections: ['inventory', 'audit'] },
    '/sections',
    'section_not_allowed',
  ],
  ['backup.restore', { backupId, sections: [] }, '/sections', 'minItems'],
  ['http.request', { url: 'http://169.254.169.254/' }, '/url', 'address_not_allowed'],
  ['http.request', { url: 'http://[fd00::1]/' }, '/url', 'address_not_allowed'],
  [
    'http.request',
    { url: 'https://example.net/', headers: { 'X-Service-Actor-Id': 'root' } },
    '/headers/X-Service-Actor-Id',
    'header_not_allowed',
  ],
  [
    'http.request',
    { url: 'https://example.net/', headers: { Forwarded: 'for=192.0.2.1' } },
    '/headers/Forwarded',
    'header_not_allowed',
  ],
];

/** Where payloads are saved: the path, the body with one, and the pointer to it. */
const SAVED_AT: [string, string, (type: string, payload: object) => object][] = [
  ['/api/jobs', '/payload', (type, payload) => ({ type, payload })],
  [
    '/api/schedules',
    '/payload',
    (jobType, payload) => ({ name: 'refused', cronExpression: CRON, jobType, payload }),
  ],
  [
    '/api/workflows',
    '/jobPayload',
    (jobType, jobPayload) => ({
      type: 'work',
      title: 'Refused',
      payload: {},
      jobType,
      jobPayload,
      assignedUserIds: ['anna'],
      assignedRoleIds: [],
    }),
  ],
];

describe.each(SAVED_AT)('%s', (path, base, bodyOf) => {
  test.each(REFUSED)('refuses %s of %j', async (type, payload, pointer, code) => {
    const { errors } = await root.post<ProblemBody>(path, bodyOf(type, payload)).expect(400);
    expect(errors).toMatchObject([{ in: 'body', pointer: `${base}${pointer}`, code }]);
  });
});

test('a schedule keeps its payload when a change of it is refused', async () => {
  const payload = { url: 'https://example.net/' };
  const fields = { name: 'kept', cronExpression: CRON, jobType: 'http.request', payload };
  const { id } = await root.post<ScheduleRecord>('/api/schedules', fields).expect(201);
  const path = `/api/schedules/${id}`;
  const changed = { payload: { url: 'http://10.0.0.1/' } };
  const { errors } = await root.put<ProblemBody>(path, changed).expect(400);
  expect(errors).toMatchObject([{ pointer: '/payload/url', code: 'address_not_allowed' }]);
  expect(await root.get<ScheduleRecord>(path).expect(200)).toMatchObject({ payload, version: 1 });
});

test('a tenant cannot save a backup of sections of the platform', async () => {
  const body = { name: 'refused', cronExpression: CRON, mode: 'partial', sections: ['audit'] };
  const client = app.client.as({ tenant: 'b' });
  await expectProblem(client.post('/api/backup/schedules', body), 403, 'permission_denied');
});

test('a backup schedule refuses sections at their position in its own body', async () => {
  const sections = ['inventory', 'audit'];
  const body = { name: 'refused', cronExpression: CRON, mode: 'partial', sections };
  const { errors } = await root.post<ProblemBody>('/api/backup/schedules', body).expect(400);
  expect(errors).toMatchObject([{ pointer: '/sections', code: 'section_not_allowed' }]);
});

test('without a store, a backup job is refused, and a schedule of it is saved with a warning', async () => {
  const bare = await startAppOn(app.databaseUrl, {}, { idle: true });
  const client = admin(bare);
  const job = { type: 'backup.create', payload: {} };
  await expectProblem(client.post('/api/backup/create', {}), 501, 'not_supported');
  await expectProblem(client.post('/api/jobs', job), 501, 'not_supported');
  const warnings = [
    {
      code: 'not_supported',
      pointer: '/jobType',
      message: expect.stringContaining('HOLDFAST_BACKUP_DIR'),
    },
  ];
  const fields = { name: 'later', cronExpression: CRON };
  expect(
    await client.post<ScheduleRecord>('/api/backup/schedules', fields).expect(201),
  ).toMatchObject({ warnings });
  await bare.stop();
});

test('a schedule whose saved payload is refused can be taken over, with a warning', async () => {
  const body = { name: 'older', cronExpression: CRON, jobType: 'http.request' };
  const payload = { url: 'https://example.net/' };
  const { id } = await root
    .post<ScheduleRecord>('/api/schedules', { ...body, payload })
    .expect(201);
  await app.deps
    .db('schedules')
    .where({ id })
    .update({ payload: JSON.stringify({ url: 'http://[fd00::1]/' }) });
  const { warnings } = await root
    .put<ScheduleRecord>(`/api/schedules/${id}`, { takeOver: true })
    .expect(200);
  expect(warnings).toMatchObject([{ pointer: '/payload/url', code: 'address_not_allowed' }]);
  const refused = { payload: { url: 'http://[fd00::2]/' } };
  await root.put(`/api/schedules/${id}`, refused).expect(400);
});
