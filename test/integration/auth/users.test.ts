import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { admin, login, PASSWORD, person } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const codeOf = ({ status, body }: { status: number; body: any }) => [status, body.code ?? null];
const as = (token: string) => app.client.as({ token });

describe('accounts', () => {
  test('are made with a one-time password, which is shown once and must be changed', async () => {
    const made = await admin(app).post(
      '/api/users',
      { username: 'Carol', displayName: 'Carol C.', email: 'carol@example.net' },
      { 'idempotency-key': 'carol' },
    );
    expect([made.status, made.headers.get('location')]).toEqual([
      201,
      `/api/users/${made.body.id}`,
    ]);
    expect(made.body).toMatchObject({
      username: 'Carol',
      mustChangePassword: true,
      enabled: true,
      providerId: 'local',
      oneTimePassword: expect.any(String),
    });
    const again = await admin(app).post(
      '/api/users',
      { username: 'Carol', displayName: 'Carol C.', email: 'carol@example.net' },
      { 'idempotency-key': 'carol' },
    );
    expect([
      again.status,
      again.headers.get('idempotent-replayed'),
      again.body.id,
      again.body.oneTimePassword,
    ]).toEqual([201, 'true', made.body.id, null]);
    const stored = JSON.stringify(
      await Promise.all(
        ['idempotency_keys', 'audit_entries', 'events', 'users'].map((table) => app.deps.db(table)),
      ),
    );
    expect(stored).not.toContain(made.body.oneTimePassword);

    const { body } = await login(app, 'carol', made.body.oneTimePassword);
    await admin(app).post('/api/rbac/assignments', {
      userId: made.body.id,
      roleId: 'platform-admin',
    });
    for (const path of ['/api/jobs', '/api/users', '/api/rbac', '/api/audit']) {
      expect(codeOf(await as(body.accessToken).get(path))).toEqual([
        403,
        'password_change_required',
      ]);
    }
    expect((await as(body.accessToken).get('/api/rbac/summary')).body.can['job:read']).toBe(false);
    const change = (newPassword: string, currentPassword = made.body.oneTimePassword) =>
      as(body.accessToken).post('/api/auth/password', { currentPassword, newPassword });
    expect(codeOf(await change(PASSWORD, 'wrong'))).toEqual([401, 'login_failed']);
    expect(codeOf(await change(made.body.oneTimePassword))).toEqual([400, 'invalid_request']);
    expect((await change(PASSWORD)).status).toBe(204);
    expect((await as(body.accessToken).get('/api/jobs')).status).toBe(200);
    expect(codeOf(await login(app, 'carol', made.body.oneTimePassword))).toEqual([
      401,
      'login_failed',
    ]);
    expect((await login(app, 'CAROL')).status).toBe(200);
  });

  test.each([
    ['too short', 'elevenchars'],
    ['too long', 'long enough '.repeat(30)],
    ['common', 'qwertyuiop123'],
    ['common with digits', 'password12345678'],
    ['the user name', 'dave.dave.dave.dave'],
    ['one character', 'aaaaaaaaaaaaaaaa'],
  ])('refuse a password that is %s', async (_what, password) => {
    const answer = await admin(app).post('/api/users', { username: 'dave', password });
    expect([answer.status, answer.body.errors?.[0]?.pointer]).toEqual([400, '/password']);
  });

  test('take any characters in a password, however they are composed', async () => {
    const password = 'Grüße aus Köln ☂ 雨';
    await admin(app).post('/api/users', {
      username: 'umlaut',
      password: password.normalize('NFD'),
      mustChangePassword: false,
    });
    expect((await login(app, 'umlaut', password.normalize('NFC'))).status).toBe(200);
  });

  test('have one name each, without regard to case', async () => {
    await admin(app).post('/api/users', { username: 'Erin' });
    expect(codeOf(await admin(app).post('/api/users', { username: 'eRIN' }))).toEqual([
      409,
      'conflict',
    ]);
    const both = await Promise.all(
      [1, 2, 3, 4].map(() => admin(app).post('/api/users', { username: 'frank' })),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test('are listed inside the scope only', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'hr',
      name: 'HR',
      permissions: ['user:read', 'user:write'],
    });
    const red = await person(app, { roleId: 'hr', tenantId: 'red' });
    await red.client.put('/api/auth/session', { tenantId: 'red' });
    const made = await red.client.post('/api/users', { username: 'gina' });
    expect(made.body.tenantId).toBe('red');
    expect(
      (await red.client.get('/api/users')).body.items.map((user: any) => user.username),
    ).toEqual(['gina']);
    expect(codeOf(await red.client.get(`/api/users/${red.id}`))).toEqual([404, 'not_found']);
    expect(
      codeOf(await red.client.post('/api/users', { username: 'x', tenantId: 'blue' })),
    ).toEqual([403, 'permission_denied']);
    expect(
      codeOf(await red.client.put(`/api/users/${made.body.id}`, { tenantId: 'blue' })),
    ).toEqual([403, 'permission_denied']);
    expect(
      (await red.client.put(`/api/users/${made.body.id}`, { displayName: 'Gina G.' })).body
        .displayName,
    ).toBe('Gina G.');
  });

  test('change with If-Match, and only what is given', async () => {
    const { id, username } = await person(app);
    const before = await admin(app).get(`/api/users/${id}`);
    const changed = await admin(app).send(
      'PUT',
      `/api/users/${id}`,
      { email: 'a@example.net' },
      { 'if-match': before.headers.get('etag') ?? '' },
    );
    expect(changed.body).toMatchObject({
      email: 'a@example.net',
      displayName: username,
      version: Number(before.body.version) + 1,
    });
    expect(
      codeOf(
        await admin(app).send(
          'PUT',
          `/api/users/${id}`,
          { email: null },
          { 'if-match': before.headers.get('etag') ?? '' },
        ),
      ),
    ).toEqual([412, 'version_stale']);
    expect((await admin(app).put(`/api/users/${id}`, { email: null })).body.email).toBeNull();
  });

  test('are filtered by name, provider, tenant and whether they are enabled', async () => {
    const someone = await person(app);
    await admin(app).put(`/api/users/${someone.id}`, { enabled: false, tenantId: 'filtered' });
    const ids = async (query: string) =>
      (await admin(app).get(`/api/users?limit=200&${query}`)).body.items.map(
        (user: any) => user.id,
      );
    for (const query of [
      `username=${someone.username.toUpperCase()}`,
      'tenantId=filtered',
      'enabled=false&tenantId=filtered',
      `providerId=local&username=${someone.username}`,
    ]) {
      expect(await ids(query)).toEqual([someone.id]);
    }
    for (const query of [
      'username=other',
      'tenantId=other',
      'enabled=true&tenantId=filtered',
      `providerId=idp_${'0'.repeat(26)}`,
    ])
      expect(await ids(query)).toEqual([]);
  });

  test('a wrong current password is recorded; a login shows in the entity tag', async () => {
    const someone = await person(app);
    await someone.client.post('/api/auth/password', {
      currentPassword: 'wrong',
      newPassword: 'another fine sentence',
    });
    expect(
      await app.deps
        .db('audit_entries')
        .where({ actor_id: someone.id, action: 'user.change_password', outcome: 'denied' }),
    ).toHaveLength(1);
    const before = await admin(app).get(`/api/users/${someone.id}`);
    await login(app, someone.username);
    const after = await admin(app).get(`/api/users/${someone.id}`, {
      'if-none-match': before.headers.get('etag') ?? '',
    });
    expect(after.status).toBe(200);
  });

  test('keep no quick hash of a password for an Idempotency-Key', async () => {
    const body = { username: 'keyed', password: 'a fine long sentence' };
    const send = (change: object = {}) =>
      admin(app).post('/api/users', { ...body, ...change }, { 'idempotency-key': 'keyed' });
    expect((await send()).status).toBe(201);
    expect((await send()).headers.get('idempotent-replayed')).toBe('true');
    expect((await send({ password: 'another long sentence' })).status).toBe(422);
    const { fingerprint } = await app.deps.db('idempotency_keys').where({ key: 'keyed' }).first();
    const quick = createHash('sha256')
      .update(
        JSON.stringify([
          'POST',
          '/api/users',
          JSON.stringify({ ...body, mustChangePassword: true }),
        ]),
      )
      .digest();
    expect(quick.equals(fingerprint)).toBe(false);
  });

  test('a reset ends the sessions and gives a password for one login', async () => {
    const someone = await person(app, 'viewer');
    const { body } = await admin(app).post(`/api/users/${someone.id}/reset-password`, {});
    expect(codeOf(await someone.client.get('/api/jobs'))).toEqual([401, 'session_invalid']);
    expect(codeOf(await login(app, someone.username))).toEqual([401, 'login_failed']);
    expect(
      (await login(app, someone.username, body.oneTimePassword)).body.user.mustChangePassword,
    ).toBe(true);
  });

  test('changing the own password ends the other sessions, not this one', async () => {
    const someone = await person(app, 'viewer');
    const other = await login(app, someone.username);
    expect(
      (
        await someone.client.post('/api/auth/password', {
          currentPassword: PASSWORD,
          newPassword: 'another fine sentence',
        })
      ).status,
    ).toBe(204);
    expect((await someone.client.get('/api/jobs')).status).toBe(200);
    expect(codeOf(await as(other.body.accessToken).get('/api/jobs'))).toEqual([
      401,
      'session_invalid',
    ]);
  });
});

describe('signing in', () => {
  test('fails the same way for an unknown name, a wrong password and a disabled account', async () => {
    const someone = await person(app);
    await admin(app).put(`/api/users/${someone.id}`, { enabled: false });
    const known = await person(app);
    const answers = [
      await login(app, 'no-such-name'),
      await login(app, known.username, 'wrong password'),
      await login(app, someone.username),
    ];
    const comparable = answers.map(({ status, body: { requestId: _, ...body } }) => ({
      status,
      body,
    }));
    expect(comparable[0]).toMatchObject({ status: 401, body: { code: 'login_failed' } });
    expect(new Set(comparable.map((answer) => JSON.stringify(answer))).size).toBe(1);
    const entries = (await admin(app).get('/api/audit?action=login.failed')).body.items;
    expect(entries.map((entry: any) => entry.after.reason)).toEqual(
      expect.arrayContaining(['wrong password', 'disabled']),
    );
    expect(JSON.stringify(entries)).not.toContain('no-such-name');
  });

  test('takes as long for an unknown name as for a wrong password', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const { username } = await person(fresh);
      await login(fresh, 'warm-up', 'wrong password');
      const times = { known: [] as number[], unknown: [] as number[] };
      for (let i = 0; i < 8; i++) {
        for (const [kind, name] of [
          ['known', username],
          ['unknown', `nobody-${i}`],
        ] as const) {
          const began = performance.now();
          expect((await login(fresh, name, 'wrong password')).status).toBe(401);
          times[kind].push(performance.now() - began);
        }
      }
      const median = (values: number[]) => values.sort((a, b) => a - b)[4] ?? 0;
      // A hash takes tens of milliseconds; without it the unknown name would be several times quicker.
      expect(median(times.unknown) / median(times.known)).toBeGreaterThan(0.6);
      expect(median(times.unknown) / median(times.known)).toBeLessThan(1.7);
    } finally {
      await fresh.stop();
    }
  });

  test('is throttled for each account, also when many try at once, known or not; a success starts anew', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const { username } = await person(fresh);
      for (let i = 0; i < 5; i++) await login(fresh, username, 'wrong');
      expect((await login(fresh, username)).status).toBe(200);
      for (const name of [username, 'unknown-name']) {
        const answers = await Promise.all(
          Array.from({ length: 15 }, () => login(fresh, name, 'wrong')),
        );
        expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
        const blocked = answers.find(({ status }) => status === 429);
        expect(blocked?.body.code).toBe('too_many_requests');
        expect(Number(blocked?.headers.get('retry-after'))).toBeGreaterThan(60);
      }
      // The right password does not help now, nor another spelling; but the owner, who sits elsewhere, gets in.
      expect((await login(fresh, username)).status).toBe(429);
      for (const spelling of [username.toUpperCase(), username.replace('p', '\uff50')])
        expect((await login(fresh, spelling)).status).toBe(429);
      const elsewhere = await fresh.client
        .as({ token: null })
        .post(
          '/api/auth/login/local',
          { username, password: PASSWORD },
          { 'x-forwarded-for': '203.0.113.77' },
        );
      expect(elsewhere.status).toBe(200);
      expect(await fresh.deps.db('audit_entries').where({ action: 'login.throttled' })).not.toEqual(
        [],
      );
      // A reset opens it for the owner everywhere.
      const [user] = (await admin(fresh).get(`/api/users?username=${username}`)).body.items;
      const reset = await admin(fresh).post(`/api/users/${user.id}/reset-password`, {});
      expect((await login(fresh, username, reset.body.oneTimePassword)).status).toBe(200);
    } finally {
      await fresh.stop();
    }
  });

  test('is throttled for each address, which only a gateway may name', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const attempt = (name: string, address: string) =>
        fresh.client
          .as({ token: null })
          .post(
            '/api/auth/login/local',
            { username: name, password: 'wrong' },
            { 'x-forwarded-for': address },
          );
      const first = await Promise.all(
        Array.from({ length: 55 }, (_, i) => attempt(`name-${i}`, `198.51.100.66, 203.0.113.7`)),
      );
      expect(first.filter(({ status }) => status === 429)).toHaveLength(5);
      expect((await attempt('other', '198.51.100.66, 203.0.113.7')).status).toBe(429);
      expect((await attempt('other', '203.0.113.7:4455')).status).toBe(429);
      expect((await attempt('other', '203.0.113.8')).status).toBe(401);
      expect((await attempt('other', '[2001:db8::1]:443')).status).toBe(401);
    } finally {
      await fresh.stop();
    }
    const stranger = await startApp({
      HOLDFAST_ROLE: 'api',
      HOLDFAST_TRUSTED_GATEWAYS: '10.9.9.0/24',
    });
    try {
      await stranger.client
        .as({ token: null })
        .post(
          '/api/auth/login/local',
          { username: 'x', password: 'y' },
          { 'x-forwarded-for': '203.0.113.9' },
        );
      expect(
        await stranger.deps.db('audit_entries').where({ action: 'login.failed' }).pluck('address'),
      ).toEqual([expect.stringContaining('127.0.0.1')]);
    } finally {
      await stranger.stop();
    }
  });
});

describe('the first administrator', () => {
  test('is made once, however many start at once, and can be let in again', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' });
    try {
      const made = await Promise.all([1, 2, 3].map(() => fresh.deps.administrator.first()));
      const [first] = made.filter((login) => login !== undefined);
      expect(made.filter((login) => login !== undefined)).toHaveLength(1);
      expect(await fresh.deps.administrator.first()).toBeUndefined();
      const { body } = await login(fresh, 'admin', first?.oneTimePassword);
      expect(body.user.mustChangePassword).toBe(true);
      await fresh.client
        .as({ token: body.accessToken })
        .post('/api/auth/password', {
          currentPassword: first?.oneTimePassword,
          newPassword: PASSWORD,
        });
      expect((await fresh.client.as({ token: body.accessToken }).get('/api/rbac')).status).toBe(
        200,
      );

      await fresh.deps.db('users').update({ enabled: false });
      await fresh.deps.db('grants').delete();
      expect(await fresh.deps.administrator.recover()).toBeUndefined();
      const back = await fresh.deps.administrator.recover('admin', true);
      const again = await login(fresh, 'admin', back?.oneTimePassword);
      expect(again.status).toBe(200);
      expect(codeOf(await fresh.client.as({ token: body.accessToken }).get('/api/rbac'))).toEqual([
        401,
        'session_invalid',
      ]);
      expect((await fresh.deps.administrator.recover('second'))?.username).toBe('second');
    } finally {
      await fresh.stop();
    }
  });
});
