import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TokenResponse } from '../../../api/access/schemas.ts';
import { createSessions } from '../../../services/auth/sessions.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { expectProblem } from '../../support/problem.ts';
import { createUser, login, PASSWORD, type TestUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const anonymous = () => app.client.as({ token: null });
const refresh = (refreshToken: string | null | undefined) =>
  anonymous().post<TokenResponse>('/api/auth/refresh', { refreshToken });
const bearer = (token: string) => app.client.as({ token });
const sessionOf = (someone: TestUser) => app.deps.db('sessions').where({ user_id: someone.id });
/** Moves the use of all spent tokens into the past, beyond the leeway. */
const passLeeway = (someone: TestUser) =>
  app.deps
    .db('session_tokens')
    .whereIn('session_id', sessionOf(someone).select('id'))
    .whereNotNull('spent_at')
    .update({ spent_at: app.deps.db.raw("spent_at - interval '20 seconds'") });

describe('refreshing', () => {
  test('returns new tokens; the old access token stays valid until it expires', async () => {
    const someone = await createUser(app, 'viewer');
    const { status, body } = await refresh(someone.refreshToken);
    expect([status, body.tokenType, body.user.id]).toEqual([200, 'Bearer', someone.id]);
    expect(body.refreshToken).not.toBe(someone.refreshToken);
    await bearer(body.accessToken).get('/api/jobs').expect(200);
    await someone.client.get('/api/jobs').expect(200);
  });

  const usesOf = async ({ id }: TestUser): Promise<string[]> => {
    const entries = await app.deps
      .db('audit_entries')
      .whereLike('action', 'session.token_%')
      .whereRaw("after ->> 'userId' = ?", [id])
      .orderBy('id');
    return entries.map(({ action, outcome }) => `${action} ${outcome}`);
  };
  const refused = (refreshToken: string | null | undefined) =>
    expectProblem(refresh(refreshToken), 401, 'session_invalid');

  test('with a spent token ends the session and is audited', async () => {
    const someone = await createUser(app, 'viewer');
    const { body: second } = await refresh(someone.refreshToken);
    await passLeeway(someone);
    await refused(someone.refreshToken);
    await refused(second.refreshToken);
    await expectProblem(bearer(second.accessToken).get('/api/jobs'), 401, 'session_invalid');
    expect(await usesOf(someone)).toEqual(['session.token_reuse denied']);
    // Another session of the same user is not touched.
    await login(app, someone.username).expect(200);
  });

  test('with a token spent moments ago returns one more pair, and no third one', async () => {
    const someone = await createUser(app, 'viewer');
    const first = await refresh(someone.refreshToken).expect(200);
    const second = await refresh(someone.refreshToken).expect(200);
    expect(second.refreshToken).not.toBe(first.refreshToken);
    await refused(someone.refreshToken);
    for (const { accessToken } of [first, second])
      await bearer(accessToken).get('/api/jobs').expect(200);
    expect(await usesOf(someone)).toEqual([
      'session.token_repeated done',
      'session.token_repeated denied',
    ]);
    await refresh(second.refreshToken).expect(200);
  });

  test('with one of two pairs spends the other', async () => {
    const someone = await createUser(app, 'viewer');
    const first = await refresh(someone.refreshToken).expect(200);
    const second = await refresh(someone.refreshToken).expect(200);
    const third = await refresh(first.refreshToken).expect(200);
    // The pairs of one generation together are worth one more pair.
    const fourth = await refresh(second.refreshToken).expect(200);
    await refused(first.refreshToken);
    await refresh(fourth.refreshToken).expect(200);
    await passLeeway(someone);
    await refused(third.refreshToken);
    expect(await sessionOf(someone).first()).toMatchObject({ end_reason: 'token_reuse' });
  });

  test('with a token of the generation before the last is refused within the leeway', async () => {
    const someone = await createUser(app, 'viewer');
    const first = await refresh(someone.refreshToken).expect(200);
    const second = await refresh(first.refreshToken).expect(200);
    await refused(someone.refreshToken);
    await refresh(second.refreshToken).expect(200);
    await passLeeway(someone);
    await refused(someone.refreshToken);
    expect(await sessionOf(someone).first()).toMatchObject({ end_reason: 'token_reuse' });
  });

  test('twenty times concurrently with one token succeeds twice; both pairs continue', async () => {
    const someone = await createUser(app, 'viewer');
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => refresh(someone.refreshToken)),
    );
    const won = answers.filter(({ status }) => status === 200);
    expect(won).toHaveLength(2);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 401]));
    for (const { body } of won) {
      await bearer(body.accessToken).get('/api/jobs').expect(200);
      await refresh(body.refreshToken).expect(200);
    }
  });

  test('without a leeway ends the session with the second use', async () => {
    const someone = await createUser(app, 'viewer');
    const limits = { ...app.deps.config, refreshLeewaySeconds: 0 };
    const strict = createSessions({ ...app.deps, limits });
    const source = { requestId: 'req_test', address: null, userAgent: null };
    const first = await strict.refresh(someone.refreshToken, source);
    await expect(strict.refresh(someone.refreshToken, source)).rejects.toMatchObject({
      code: 'session_invalid',
    });
    await refused(first.refreshToken);
    expect(await usesOf(someone)).toEqual(['session.token_reuse denied']);
  });

  test('that is interrupted before its commit has spent nothing', async () => {
    const someone = await createUser(app, 'viewer');
    const { db } = app.deps;
    const lock = await db.transaction();
    await lock('sessions').where({ user_id: someone.id }).forUpdate();
    const interrupted = refresh(someone.refreshToken);
    const waiting = () =>
      db.raw<{ rows: { pid: number }[] }>(
        `SELECT pid FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%session_tokens%'`,
      );
    const { rows } = await eventually(waiting, (found) => found.rows.length === 1);
    await db.raw('SELECT pg_terminate_backend(?)', [rows[0]?.pid ?? 0]);
    await expectProblem(interrupted, 503, 'unavailable');
    await lock.rollback();
    // As many pairs as if it had never been sent.
    await refresh(someone.refreshToken).expect(200);
    await refresh(someone.refreshToken).expect(200);
    await refused(someone.refreshToken);
  });

  test('fails after the idle and the absolute limit; access tokens expire on their own', async () => {
    const someone = await createUser(app, 'viewer');
    const { db } = app.deps;
    const session = () => db('sessions').where({ user_id: someone.id });
    const past = new Date(Date.now() - 1_000);
    await db('session_tokens')
      .where({ kind: 'access' })
      .whereIn('session_id', session().select('id'))
      .update({ expires_at: past });
    await expectProblem(someone.client.get('/api/jobs'), 401, 'session_invalid');
    const { body } = await refresh(someone.refreshToken);
    await session().update({ idle_expires_at: past });
    await expectProblem(refresh(body.refreshToken), 401, 'session_invalid');
    await session().update({
      idle_expires_at: new Date(Date.now() + 60_000),
      absolute_expires_at: past,
    });
    await expectProblem(refresh(body.refreshToken), 401, 'session_invalid');
    await session().update({ absolute_expires_at: new Date(Date.now() + 5_000) });
    const last = await refresh(body.refreshToken);
    expect(last.body.expiresIn).toBeLessThanOrEqual(5);
  });
});

describe('in a browser', () => {
  const cookieOf = (headers: Headers) => (headers.get('set-cookie') ?? '').split(';')[0] ?? '';

  test('the refresh token is in a cookie that scripts and other sites cannot use', async () => {
    const someone = await createUser(app, 'viewer');
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
      await expectProblem(
        anonymous().post('/api/auth/refresh', {}, { cookie, ...bad }),
        400,
        'invalid_request',
      );
      await expectProblem(
        anonymous().post('/api/auth/logout', {}, { cookie, ...bad }),
        400,
        'invalid_request',
      );
    }
    const next = await anonymous().post<TokenResponse>('/api/auth/refresh', undefined, {
      cookie,
      origin,
    });
    expect([next.status, next.body.refreshToken]).toEqual([200, null]);
    expect(cookieOf(next.headers)).not.toBe(cookie);
    const out = await anonymous().post('/api/auth/logout', undefined, {
      cookie: cookieOf(next.headers),
      origin,
    });
    expect([out.status, out.headers.get('set-cookie')]).toEqual([
      204,
      expect.stringContaining('holdfast_refresh=; Max-Age=0'),
    ]);
    await expectProblem(bearer(next.body.accessToken).get('/api/jobs'), 401, 'session_invalid');
  });

  test('over https the cookie is Secure, and the origin is the configured one, not the Host header', async () => {
    const secure = await startApp({
      HOLDFAST_ROLE: 'api',
      HOLDFAST_PUBLIC_URL: 'https://holdfast.example.net',
    });
    try {
      const someone = await createUser(secure, 'viewer');
      const { headers } = await login(secure, someone.username, PASSWORD, { cookie: true });
      expect(headers.get('set-cookie')).toMatch(
        /^__Secure-holdfast_refresh=.*; HttpOnly; Secure; SameSite=Strict$/,
      );
      const cookie = cookieOf(headers);
      const send = (more: Record<string, string>) =>
        secure.client
          .as({ token: null })
          .post<TokenResponse>('/api/auth/refresh', {}, { cookie, ...more });
      await send({ origin: 'https://evil.example', host: 'evil.example' }).expect(400);
      await send({ origin: 'https://holdfast.example.net' }).expect(200);
    } finally {
      await secure.stop();
    }
  });
});

test('the number of stored tokens per session is limited', async () => {
  const someone = await createUser(app, 'viewer');
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
  await bearer(body.accessToken).get('/api/jobs').expect(200);
  await passLeeway(someone);
  await expectProblem(refresh(someone.refreshToken), 401, 'session_invalid');
  await expectProblem(refresh(body.refreshToken), 401, 'session_invalid');
});
