import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { AssignmentRecord } from '../../../api/access/schemas.ts';
import type { JobRecord, LogRecord } from '../../../api/jobs/schemas.ts';
import { jobLogTopic } from '../../../services/jobs/jobAudit.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { openEventStream } from '../../support/eventStream.ts';
import { eventually } from '../../support/eventually.ts';
import type { Import } from '../../support/imports.ts';
import { admin, createUser, first, type Page, type TestUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true, accessRecheckMs: 50 });
});
afterAll(() => app.stop());

/** Takes a role from an account. */
async function revoke({ id: userId }: TestUser, roleId: string): Promise<void> {
  const path = `/api/rbac/assignments?userId=${userId}&roleId=${roleId}`;
  const { id } = first(await admin(app).get<Page<AssignmentRecord>>(path).expect(200));
  await admin(app).delete(`/api/rbac/assignments/${id}`).expect(204);
}

test('a log that is followed hides what a change is about when its reader may not know it any more', async () => {
  const { db, notifications } = app.deps;
  const role = { id: 'reads-jobs', name: 'Reads jobs', permissions: ['job:read'] };
  await admin(app).post('/api/rbac/roles', role).expect(201);
  const reader = await createUser(app, 'reads-jobs', 'viewer');
  const record = { cidr: '10.61.0.0/16' };
  const mutations = [{ resource: 'prefixes', operation: 'create', record }];
  const { id } = await admin(app)
    .post<JobRecord>('/api/jobs', { type: 'inventory.apply', payload: { mutations } })
    .expect(201);
  const stream = await openEventStream(reader.client, `/api/jobs/${id}/logs?follow`);
  let line = 0;
  const write = async () => {
    line += 1;
    const text = { level: 'info', message: `about 10.61.${line}.0/24`, at: new Date() };
    await db('job_logs').insert({ job_id: id, line, attempt: 1, ...text });
    notifications.announce([jobLogTopic(id)]);
    const lines = await eventually(
      () => stream.data<LogRecord>('log'),
      (all) => all.length === line,
    );
    return lines.at(-1)?.message ?? '';
  };
  expect(await write()).toContain('10.61.1.0/24');
  await revoke(reader, 'viewer');
  expect(await eventually(write, (message) => !message.includes('10.61'))).not.toBe('');
  stream.leave();
});

test('the report of an import ends when its reader may not see any more what the file has', async () => {
  const file = { 'content-type': 'text/csv' };
  const { id } = await app.client
    .as({ actor: 'sender', roles: 'platform-admin', tenant: 'red' })
    .post<Import>('/api/inventory/import?resource=sites&dryRun=true', 'name\nx\n', file)
    .expect(202);
  // More than a connection holds whose client does not read.
  await app.deps.db.raw(
    `INSERT INTO import_rows (import_id, line, mutation)
     SELECT import_id, n, json_build_object('resource', 'sites', 'operation', 'create',
       'record', json_build_object('name', repeat('x', 500)))
     FROM import_rows, generate_series(10, 40000) AS n WHERE import_id = ?`,
    [id],
  );
  const reader = await createUser(app, 'viewer', { roleId: 'auditor', tenantId: 'red' });
  const path = `/api/inventory/imports/${id}/report?format=ndjson`;
  const answer = await fetch(app.client.base + path, {
    headers: { authorization: `Bearer ${reader.accessToken}` },
  });
  expect(answer.status).toBe(200);
  await revoke(reader, 'viewer');
  await reader.client.get(`/api/inventory/imports/${id}`).expect(200);
  await expect(answer.text()).rejects.toThrow();
});
