import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin, login, PASSWORD, person } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const codeOf = ({ status, body }: { status: number; body: any }) => [status, body.code ?? null];
const nobody = () => app.client.as({ token: null });
const refresh = (refreshToken: string) => nobody().post('/api/auth/refresh', { refreshToken });
const bearer = (token: string) => app.client.as({ token });

describe('tokens', () => {
  test('are opaque, shown once, and only their hashes are kept', async () => {
    const someone = await person(app, 'viewer');
    expect(someone.accessToken).toMatch(/^hfa_[A-Za-z0-9_-]{43}$/);
    const { rows } = await app.deps.db.raw(
      `SELECT string_agg(t::text, ' ') AS text FROM session_tokens t`,
    );
    const everything = `${rows[0].text} ${JSON.stringify(await app.deps.db('audit_entries'))} ${JSON.stringify(await app.deps.db('events'))}`;
    expect(everything).not.toContain(someone.accessToken);
    expect(everything).not.toContain(someone.refreshToken);
  });

  test.each([
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Basic YTpi',
    'Bearer hfa_unknown',
    `Bearer ${'x'.repeat(600)}`,
  ])('"%s" is no session', async (value) => {
    const answer = await nobody().get('/api/auth/session', { authorization: value });
    expect(codeOf(answer)).toEqual([401, 'session_invalid']);
  });

  test('a refresh token is no access token, nor the other way round', async () => {
    const someone = await person(app);
    expect(codeOf(await bearer(someone.refreshToken).get('/api/auth/session'))).toEqual([
      401,
      'session_invalid',
    ]);
    expect(codeOf(await refresh(someone.accessToken))).toEqual([401, 'session_invalid']);
  });

  test('never mix with identity headers', async () => {
    const someone = await person(app, 'viewer');
    for (const header of ['x-service-actor-id', 'x-service-role-ids', 'x-service-tenant-id']) {
      expect(codeOf(await someone.client.get('/api/jobs', { [header]: 'red' }))).toEqual([
        400,
        'invalid_request',
      ]);
    }
  });
});

describe('refreshing', () => {
  test('rotates: the new pair works, the old access token until it expires', async () => {
    const someone = await person(app, 'viewer');
    const { status, body } = await refresh(someone.refreshToken);
    expect([status, body.tokenType, body.user.id]).toEqual([200, 'Bearer', someone.id]);
    expect(body.refreshToken).not.toBe(someone.refreshToken);
    expect((await bearer(body.accessToken).get('/api/jobs')).status).toBe(200);
    expect((await someone.client.get('/api/jobs')).status).toBe(200);
  });

  test('with a spent token ends the session for both who have it, and is audited', async () => {
    const someone = await person(app, 'viewer');
    const { body: second } = await refresh(someone.refreshToken);
    expect(codeOf(await refresh(someone.refreshToken))).toEqual([401, 'session_invalid']);
    expect(codeOf(await refresh(second.refreshToken))).toEqual([401, 'session_invalid']);
    expect(codeOf(await bearer(second.accessToken).get('/api/jobs'))).toEqual([
      401,
      'session_invalid',
    ]);
    const entry = await app.deps
      .db('audit_entries')
      .where({ action: 'session.reuse' })
      .orderBy('id', 'desc')
      .first();
    expect(entry).toMatchObject({ outcome: 'denied', after: { userId: someone.id } });
    // Another session of the same user is not touched.
    expect((await login(app, someone.username)).status).toBe(200);
  });

  test('twenty at once with one token: at most one wins, and the session ends', async () => {
    const someone = await person(app, 'viewer');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => refresh(someone.refreshToken)),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(1);
    expect(codeOf(await refresh(won[0]?.body.refreshToken))).toEqual([401, 'session_invalid']);
  });

  test('stops at the idle and at the absolute limit, and an access token at its own', async () => {
    const someone = await person(app, 'viewer');
    const { db } = app.deps;
    const session = () => db('sessions').where({ user_id: someone.id });
    const past = new Date(Date.now() - 1_000);
    await db('session_tokens')
      .where({ kind: 'access' })
      .whereIn('session_id', session().select('id'))
      .update({ expires_at: past });
    expect(codeOf(await someone.client.get('/api/jobs'))).toEqual([401, 'session_invalid']);
    const { body } = await refresh(someone.refreshToken);
    await session().update({ idle_expires_at: past });
    expect(codeOf(await refresh(body.refreshToken))).toEqual([401, 'session_invalid']);
    await session().update({
      idle_expires_at: new Date(Date.now() + 60_000),
      absolute_expires_at: past,
    });
    expect(codeOf(await refresh(body.refreshToken))).toEqual([401, 'session_invalid']);
    await session().update({ absolute_expires_at: new Date(Date.now() + 5_000) });
    const last = await refresh(body.refreshToken);
    expect(last.body.expiresIn).toBeLessThanOrEqual(5);
  });
});

describe('a session', () => {
  test('says who it is and what may be done', async () => {
    const someone = await person(app, { roleId: 'viewer', tenantId: 'red' });
    const { body } = await someone.client.get('/api/auth/session');
    expect(body).toMatchObject({
      current: true,
      tenantId: 'red',
      user: { username: someone.username, enabled: true },
    });
    expect(body.permissions).toContain('job:read');
    expect(body.permissions).not.toContain('job:write');
    expect(JSON.stringify(body)).not.toContain('argon2');
    expect(codeOf(await app.client.get('/api/auth/session'))).toEqual([401, 'session_invalid']);
  });

  test('begins at the tenant asked for at the login', async () => {
    const someone = await person(app, { roleId: 'operator', tenantId: 'red' });
    const { body } = await login(app, someone.username, PASSWORD, { tenantId: 'red' });
    const job = await bearer(body.accessToken).post('/api/jobs', {
      type: 'core.echo',
      payload: {},
    });
    expect(job.body.tenantId).toBe('red');
  });

  test('ends with logout, of either token, once and for all', async () => {
    const someone = await person(app, 'viewer');
    expect((await someone.client.post('/api/auth/logout')).status).toBe(204);
    expect(codeOf(await someone.client.get('/api/jobs'))).toEqual([401, 'session_invalid']);
    expect(codeOf(await refresh(someone.refreshToken))).toEqual([401, 'session_invalid']);
    expect((await someone.client.post('/api/auth/logout')).status).toBe(204);
    const { body } = await login(app, someone.username);
    expect(
      (await nobody().post('/api/auth/logout', { refreshToken: body.refreshToken })).status,
    ).toBe(204);
    expect(codeOf(await bearer(body.accessToken).get('/api/jobs'))).toEqual([
      401,
      'session_invalid',
    ]);
    expect(codeOf(await nobody().post('/api/auth/logout'))).toEqual([401, 'session_invalid']);
    // An access token that is gone does not hide the refresh token beside it.
    const third = await login(app, someone.username);
    await nobody().post(
      '/api/auth/logout',
      { refreshToken: third.body.refreshToken },
      { authorization: 'Bearer hfa_gone' },
    );
    expect(codeOf(await refresh(third.body.refreshToken))).toEqual([401, 'session_invalid']);
  });

  test('can be listed and ended from another one; those of others cannot', async () => {
    const [mine, other] = [await person(app), await person(app)];
    const second = await login(app, mine.username);
    const { body } = await mine.client.get('/api/auth/sessions');
    expect(body.items.map((session: any) => session.current)).toEqual([false, true]);
    expect(codeOf(await other.client.delete(`/api/auth/sessions/${body.items[0].id}`))).toEqual([
      404,
      'not_found',
    ]);
    expect((await mine.client.delete(`/api/auth/sessions/${body.items[0].id}`)).status).toBe(204);
    expect(codeOf(await bearer(second.body.accessToken).get('/api/auth/session'))).toEqual([
      401,
      'session_invalid',
    ]);
    expect((await mine.client.get('/api/auth/sessions')).body.items).toHaveLength(1);
  });

  test('all of them end with logout everywhere', async () => {
    const someone = await person(app);
    const second = await login(app, someone.username);
    await someone.client.post('/api/auth/logout', { everywhere: true });
    for (const token of [someone.accessToken, second.body.accessToken]) {
      expect(codeOf(await bearer(token).get('/api/auth/session'))).toEqual([
        401,
        'session_invalid',
      ]);
    }
  });
});

describe('in a browser', () => {
  const cookieOf = (headers: Headers) => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';

  test('the refresh token is in a cookie that scripts and other sites cannot use', async () => {
    const someone = await person(app, 'viewer');
    const { headers, body } = await login(app, someone.username, PASSWORD, { cookie: true });
    expect(body.refreshToken).toBeNull();
    expect(headers.get('set-cookie')).toMatch(
      /^holdfast_refresh=hfr_[^;]+; Max-Age=\d+; Path=\/api\/auth; HttpOnly; SameSite=Strict$/,
    );
    const cookie = cookieOf(headers);
    const origin = app.client.base;
    for (const bad of [
      {},
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { origin: `${origin}.evil.example` },
    ]) {
      expect(codeOf(await nobody().post('/api/auth/refresh', {}, { cookie, ...bad }))).toEqual([
        400,
        'invalid_request',
      ]);
      expect(codeOf(await nobody().post('/api/auth/logout', {}, { cookie, ...bad }))).toEqual([
        400,
        'invalid_request',
      ]);
    }
    const next = await nobody().post('/api/auth/refresh', undefined, { cookie, origin });
    expect([next.status, next.body.refreshToken]).toEqual([200, null]);
    expect(cookieOf(next.headers)).not.toBe(cookie);
    const out = await nobody().post('/api/auth/logout', undefined, {
      cookie: cookieOf(next.headers),
      origin,
    });
    expect([out.status, out.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining('holdfast_refresh=; Max-Age=0'),
    ]);
    expect(codeOf(await bearer(next.body.accessToken).get('/api/jobs'))).toEqual([
      401,
      'session_invalid',
    ]);
  });

  test('over https the cookie is Secure, and the origin is the configured one whatever Host says', async () => {
    const secure = await startApp({
      HOLDFAST_ROLE: 'api',
      HOLDFAST_PUBLIC_URL: 'https://holdfast.example.net',
    });
    try {
      const someone = await person(secure, 'viewer');
      const { headers } = await login(secure, someone.username, PASSWORD, { cookie: true });
      expect(headers.get('set-cookie')).toMatch(
        /^__Secure-holdfast_refresh=.*; HttpOnly; Secure; SameSite=Strict$/,
      );
      const cookie = cookieOf(headers);
      const send = (more: Record<string, string>) =>
        secure.client.as({ token: null }).post('/api/auth/refresh', {}, { cookie, ...more });
      expect((await send({ origin: 'https://evil.example', host: 'evil.example' })).status).toBe(
        400,
      );
      expect((await send({ origin: 'https://holdfast.example.net' })).status).toBe(200);
    } finally {
      await secure.stop();
    }
  });
});

test('a session moves only to tenants where its user holds anything, and that is told at the home of the user', async () => {
  const someone = await person(
    app,
    { roleId: 'viewer', tenantId: 'red' },
    { roleId: 'viewer', tenantId: 'blue' },
  );
  expect(codeOf(await someone.client.put('/api/auth/session', { tenantId: 'victim' }))).toEqual([
    400,
    'invalid_request',
  ]);
  expect(codeOf(await login(app, someone.username, PASSWORD, { tenantId: 'victim' }))).toEqual([
    400,
    'invalid_request',
  ]);
  for (const tenantId of ['red', 'red', 'blue', 'platform'])
    expect((await someone.client.put('/api/auth/session', { tenantId })).body.tenantId).toBe(
      tenantId,
    );
  const moves = await app.deps
    .db('audit_entries')
    .where({ action: 'session.move', actor_id: someone.id });
  expect(moves.map((entry) => entry.tenant_id)).toEqual(['platform', 'platform', 'platform']);
});

test('a denial is told where it was tried, by somebody who holds anything there', async () => {
  const someone = await person(
    app,
    { roleId: 'viewer', tenantId: 'red' },
    { roleId: 'operator', tenantId: 'blue' },
  );
  await someone.client.put('/api/auth/session', { tenantId: 'blue' });
  const job = await app.client
    .as({ tenant: 'red' })
    .post('/api/jobs', { type: 'core.echo', payload: {} });
  expect((await someone.client.post(`/api/jobs/${job.body.id}/retry`)).status).toBe(403);
  const entries = await app.deps
    .db('audit_entries')
    .where({ action: 'access.denied', actor_id: someone.id });
  expect(entries.map((entry) => entry.tenant_id)).toEqual(['red']);
});

test('spent tokens of a session are not kept without end', async () => {
  const someone = await person(app, 'viewer');
  const session = await app.deps.db('sessions').where({ user_id: someone.id }).first();
  await app.deps.db.raw(
    `INSERT INTO session_tokens (hash, session_id, kind, expires_at, spent_at)
    SELECT sha256(n::text::bytea), ?, 'refresh', now() - interval '1 hour', now() FROM generate_series(1, 700) AS n`,
    [session.id],
  );
  const { body } = await refresh(someone.refreshToken);
  const kept = (kind: string) =>
    app.deps.db('session_tokens').where({ session_id: session.id, kind });
  expect([(await kept('refresh')).length, (await kept('access')).length]).toEqual([500, 2]);
  expect((await bearer(body.accessToken).get('/api/jobs')).status).toBe(200);
  expect(codeOf(await refresh(someone.refreshToken))).toEqual([401, 'session_invalid']);
  expect(codeOf(await refresh(body.refreshToken))).toEqual([401, 'session_invalid']);
});

test('what has run out is forgotten, and nothing else', async () => {
  const { purgeExpired } = await import('../../../db/core/purge.ts');
  const { db } = app.deps;
  const [gone, ended, live] = [await person(app), await person(app), await person(app, 'viewer')];
  const old = new Date(Date.now() - 3_600_000);
  await db('sessions').where({ user_id: gone.id }).update({ absolute_expires_at: old });
  await db('sessions').where({ user_id: ended.id }).update({ ended_at: old, end_reason: 'logout' });
  await db('rate_limits').insert({ key: 'old', points: 1, expire: old.getTime() });
  expect(await purgeExpired(db, new Date(Date.now() - 60_000), 1_000)).toBeGreaterThan(0);
  expect(await db('sessions').whereIn('user_id', [gone.id, ended.id])).toEqual([]);
  expect(await db('rate_limits').where({ key: 'old' })).toEqual([]);
  expect((await live.client.get('/api/jobs')).status).toBe(200);
  expect(await purgeExpired(db, new Date(Date.now() - 60_000), 1_000)).toBe(0);
});

test('a refresh looks at the account, not at the session alone; idle sessions are not listed', async () => {
  const [someone, other] = [await person(app), await person(app)];
  await app.deps.db('users').where({ id: someone.id }).update({ enabled: false });
  expect(codeOf(await refresh(someone.refreshToken))).toEqual([401, 'session_invalid']);
  await login(app, other.username);
  await app.deps.db('sessions').where({ user_id: other.id }).orderBy('id').limit(1);
  const [first] = await app.deps.db('sessions').where({ user_id: other.id }).orderBy('id', 'desc');
  await app.deps
    .db('sessions')
    .where({ id: first.id })
    .update({ idle_expires_at: new Date(Date.now() - 1) });
  const listed = (await other.client.get('/api/auth/sessions')).body.items.map(
    (session: any) => session.id,
  );
  expect(listed).toHaveLength(1);
  expect(listed).not.toContain(first.id);
});

test('a log that is followed ends when its reader is disabled', async () => {
  const someone = await person(app, 'operator');
  const job = await someone.client.post('/api/jobs', {
    type: 'core.sleep',
    payload: { durationMs: 60_000 },
  });
  const answer = await fetch(`${app.client.base}/api/jobs/${job.body.id}/logs?follow`, {
    headers: { authorization: `Bearer ${someone.accessToken}` },
  });
  await admin(app).put(`/api/users/${someone.id}`, { enabled: false });
  await expect(answer.text()).rejects.toThrow();
});

test('a log that is followed ends when its reader loses the job, though not the permission', async () => {
  const someone = await person(
    app,
    { roleId: 'auditor', tenantId: 'red' },
    { roleId: 'viewer', tenantId: 'blue' },
  );
  const job = await app.client
    .as({ tenant: 'red' })
    .post('/api/jobs', { type: 'core.sleep', payload: { durationMs: 60_000 } });
  const answer = await fetch(`${app.client.base}/api/jobs/${job.body.id}/logs?follow`, {
    headers: { authorization: `Bearer ${someone.accessToken}` },
  });
  const [red] = (await admin(app).get(`/api/rbac/assignments?userId=${someone.id}&tenantId=red`))
    .body.items;
  await admin(app).delete(`/api/rbac/assignments/${red.id}`);
  await expect(answer.text()).rejects.toThrow();
});

test('a session ends at once when its user is disabled', async () => {
  const someone = await person(app, 'viewer');
  await admin(app).put(`/api/users/${someone.id}`, { enabled: false });
  expect(codeOf(await someone.client.get('/api/jobs'))).toEqual([401, 'session_invalid']);
  expect(codeOf(await refresh(someone.refreshToken))).toEqual([401, 'session_invalid']);
  await admin(app).put(`/api/users/${someone.id}`, { enabled: true });
  expect(codeOf(await refresh(someone.refreshToken))).toEqual([401, 'session_invalid']);
});
