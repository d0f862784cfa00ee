import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { TokenResponse } from '../../../api/auth/schemas.ts';
import type { ConsoleSettings } from '../../../api/console/routes.ts';
import { createSessions } from '../../../services/auth/sessions.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { expectProblem } from '../../support/problem.ts';
import { createUser, login, PASSWORD, type TestUser } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp(
    { HOLDFAST_ROLE: 'api', HOLDFAST_TEMPORAL_UI_URL: 'http://127.0.0.1:8233' },
    { idle: true },
  );
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
    const third = refresh(someone.refreshToken);
    await expectProblem(third, 401, 'session_invalid');
    expect((await third).headers.get('retry-after')).toBe('1');
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

  /** The same server under another name of this machine. */
  const under = (host: string) => `http://${host}:${new URL(app.client.base).port}`;
  const hostOf = (origin: string) => ({ host: new URL(origin).host });

  test.each(['127.0.0.1', 'localhost', '127.0.0.2', '[::1]'])(
    'a page under %s of this machine signs in and refreshes',
    async (name) => {
      const someone = await createUser(app, 'viewer');
      const page = { ...hostOf(under(name)), origin: under(name) };
      const credentials = { username: someone.username, password: PASSWORD, cookie: true };
      const { headers } = await anonymous().post('/api/auth/login/local', credentials, page);
      const cookie = cookieOf(headers);
      const send = (more: Record<string, string>) =>
        anonymous().post<TokenResponse>('/api/auth/refresh', {}, { ...page, cookie, ...more });
      // Another port, another scheme, another name than the request was sent to.
      for (const origin of [
        'http://localhost:1',
        under(name).replace('http:', 'https:'),
        under('localhost.evil.example'),
        under(name === 'localhost' ? '[::1]' : 'localhost'),
      ])
        await expectProblem(send({ origin }), 400, 'invalid_request');
      await expectProblem(
        send({ origin: under('evil.example'), host: hostOf(under('evil.example')).host }),
        400,
        'invalid_request',
      );
      await send({}).expect(200);
    },
  );

  test('a page under another loopback address is redirected to the origin, nothing else is', async () => {
    const own = app.client.base;
    const get = async (path: string, host: string, accept = 'text/html,*/*;q=0.8') => {
      const { status, headers } = await anonymous().get(path, { host, accept });
      return [status, headers.get('location')];
    };
    const { host } = hostOf(under('localhost'));
    expect(await get('/api/docs?a=b', host)).toEqual([307, `${own}/api/docs?a=b`]);
    expect(await get('/prefixes/%2e%2e//evil', host)).toEqual([307, `${own}//evil`]);
    expect(await get('//evil.example/x', host)).toEqual([307, `${own}//evil.example/x`]);
    expect(await get('/api/docs', hostOf(own).host)).toEqual([200, null]);
    expect(await get('/api/docs', host, '*/*')).toEqual([200, null]);
    expect(await get('/livez', host)).toEqual([200, null]);
    for (const other of ['evil.example', 'localhost', 'localhost:1', `user@${host}`])
      expect(await get('/api/docs', other)).toEqual([200, null]);
    const posted = await anonymous().post(
      '/api/auth/saml/callback',
      'SAMLResponse=x&RelayState=x',
      {
        host,
        accept: 'text/html',
        'content-type': 'application/x-www-form-urlencoded',
      },
    );
    expect(posted.status).toBe(303);
  });

  test('the settings of the user interface are public, and no more than that', async () => {
    const settings = await anonymous().get<ConsoleSettings>('/api/console').expect(200);
    expect(settings).toEqual({
      version: 'test',
      origin: app.client.base,
      temporalUi: { url: 'http://127.0.0.1:8233', namespace: 'default' },
      timezone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    });
  });

  test('over https the cookie is Secure, and the origin is the configured one, not the Host header', async () => {
    const secure = await startApp({
      HOLDFAST_ROLE: 'api',
      HOLDFAST_PUBLIC_URL: 'https://holdfast.example.net',
    });
    try {
      const someone = await createUser(secure, 'viewer');
      const { headers } = await login(secure, someone.username, PASSWORD, { cookie: true });
      expect(headers.getSetCookie()).toEqual([
        expect.stringMatching(
          /^__Host-holdfast_refresh=hfr_[^;]+; Max-Age=\d+; Path=\/; HttpOnly; Secure; SameSite=Strict$/,
        ),
        expect.stringMatching(/^__Secure-holdfast_refresh=; Max-Age=0; Path=\/api\/auth; /),
      ]);
      const cookie = cookieOf(headers);
      const send = (more: Record<string, string>) =>
        secure.client
          .as({ token: null })
          .post<TokenResponse>('/api/auth/refresh', {}, { cookie, ...more });
      await send({ origin: 'https://evil.example', host: 'evil.example' }).expect(400);
      await send({ origin: 'https://holdfast.example.net' }).expect(200);
      // The cookie of 0.2.0, which another host of the domain may have set, does not precede ours.
      const next = await login(secure, someone.username, PASSWORD, { cookie: true });
      const planted = cookieOf(next.headers).replace('__Host-', '__Secure-');
      const own = cookieOf(
        (await login(secure, someone.username, PASSWORD, { cookie: true })).headers,
      );
      const origin = 'https://holdfast.example.net';
      const sessionsLeft = () =>
        secure.deps
          .db('sessions')
          .where({ user_id: someone.id })
          .whereNull('ended_at')
          .orderBy('id');
      const before = await sessionsLeft();
      await secure.client
        .as({ token: null })
        .post('/api/auth/logout', {}, { cookie: `${planted}; ${own}`, origin })
        .expect(204);
      expect(await sessionsLeft()).toEqual(before.slice(0, -1));
      await send({ origin, cookie: planted }).expect(200);
      // Proxies on this machine send such a Host header: no page is redirected to another name.
      const proxied = {
        host: `localhost:${new URL(secure.client.base).port}`,
        accept: 'text/html',
      };
      await secure.client.get('/api/docs', proxied).expect(200);
      expect(await secure.client.get('/api/console', proxied).expect(200)).toMatchObject({
        origin: 'https://holdfast.example.net',
        temporalUi: null,
      });
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
