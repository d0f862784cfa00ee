import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { TokenResponse } from '../../../api/auth/schemas.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin, createUser, login, PASSWORD, seedTenant } from '../../support/users.ts';

let app: TestApp;
let someone: { id: string; username: string };
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
  for (const tenant of ['red', 'blue']) await seedTenant(app, tenant);
});
afterAll(() => app.stop());
beforeEach(async () => {
  await app.deps.db('rate_limits').delete();
  // An account of red that also works in blue.
  someone = await createUser(app, { roleId: 'viewer', tenantId: 'blue' });
  await admin(app).put(`/api/users/${someone.id}`, { tenantId: 'red' }).expect(200);
});

const entriesOf = (action: string) =>
  app.deps
    .db('audit_entries')
    .where({ action })
    .orderBy('id', 'desc')
    .select('tenant_id', 'subject_type', 'subject_id', 'outcome', 'after');

async function expectAtAccount(action: string, after: object, outcome = 'denied') {
  const [entry] = await entriesOf(action);
  expect(entry).toEqual({
    tenant_id: 'red',
    subject_type: 'user',
    subject_id: someone.id,
    outcome,
    after: expect.objectContaining(after),
  });
}

describe('an attack on a known account is audited at the account and in its tenant:', () => {
  test('a wrong password, and an attempt that is throttled', async () => {
    for (let n = 0; n < 10; n++) await login(app, someone.username, 'wrong').expect(401);
    await expectAtAccount('login.failed', { userId: someone.id, reason: 'wrong password' });
    await login(app, someone.username, 'wrong').expect(429);
    await expectAtAccount('login.throttled', { userId: someone.id });
  });

  test('a wrong current password', async () => {
    const { accessToken } = await login(app, someone.username).expect(200);
    const body = { currentPassword: 'wrong', newPassword: 'another fine sentence' };
    await app.client.as({ token: accessToken }).post('/api/auth/password', body).expect(401);
    await expectAtAccount('user.change_password', { reason: 'wrong password' });
  });

  test('a spent refresh token, also of a session that works in another tenant', async () => {
    const { refreshToken } = await login(app, someone.username, PASSWORD, {
      tenantId: 'blue',
    }).expect(200);
    const refresh = () =>
      app.client.as({ token: null }).post<TokenResponse>('/api/auth/refresh', { refreshToken });
    await refresh().expect(200);
    await refresh().expect(200);
    const { session_id: sessionId } = await app.deps
      .db('session_tokens')
      .whereIn('session_id', app.deps.db('sessions').where({ user_id: someone.id }).select('id'))
      .whereNotNull('spent_at')
      .first();
    await expectAtAccount('session.token_repeated', { sessionId }, 'done');
    await refresh().expect(401);
    await expectAtAccount('session.token_repeated', { sessionId }, 'denied');
    await app.deps
      .db('session_tokens')
      .where({ session_id: sessionId })
      .whereNotNull('spent_at')
      .update({ spent_at: app.deps.db.raw("spent_at - interval '20 seconds'") });
    await refresh().expect(401);
    await expectAtAccount('session.token_reuse', { sessionId });
  });
});

test('an attempt with an unknown name is audited at the platform', async () => {
  for (let n = 0; n < 10; n++) await login(app, 'no-such-name', 'wrong').expect(401);
  await login(app, 'no-such-name', 'wrong').expect(429);
  for (const action of ['login.failed', 'login.throttled'])
    expect((await entriesOf(action))[0]).toMatchObject({
      tenant_id: 'platform',
      subject_type: 'request',
      after: { userId: null },
    });
});
