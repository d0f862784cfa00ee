import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { PASSWORD, admin, createUser, login, seedTenant, type Page } from '../../support/users.ts';
import type { TokenResponse, UserRecord, UserWithPassword } from '../../../api/auth/schemas.ts';
import type { PermissionSummary } from '../../../api/access/routes.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';
import type { ProblemBody, TestResponse } from '../../support/client.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
});
afterAll(() => app.stop());

const withToken = (token: string) => app.client.as({ token });

describe('accounts', () => {
  test('are created with a one-time password, which is returned once and must be changed', async () => {
    const made = await admin(app).post<UserWithPassword>(
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
    const again = await admin(app).post<UserWithPassword>(
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
      await expectProblem(withToken(body.accessToken).get(path), 403, 'password_change_required');
    }
    expect(
      (await withToken(body.accessToken).get<PermissionSummary>('/api/rbac/summary')).body.can[
        'job:read'
      ],
    ).toBe(false);
    const change = (newPassword: string | null, currentPassword = made.body.oneTimePassword) =>
      withToken(body.accessToken).post('/api/auth/password', { currentPassword, newPassword });
    await expectProblem(change(PASSWORD, 'wrong'), 401, 'login_failed');
    await expectProblem(change(made.body.oneTimePassword), 400, 'invalid_request');
    await change(PASSWORD).expect(204);
    await withToken(body.accessToken).get('/api/jobs').expect(200);
    await expectProblem(login(app, 'carol', made.body.oneTimePassword), 401, 'login_failed');
    await login(app, 'CAROL').expect(200);
  });

  test.each([
    ['too short', 'elevenchars'],
    ['too long', 'long enough '.repeat(30)],
    ['common', 'qwertyuiop123'],
    ['common with digits', 'password12345678'],
    ['the user name', 'dave.dave.dave.dave'],
    ['one character', 'aaaaaaaaaaaaaaaa'],
  ])('reject a password that is %s', async (_what, password) => {
    await expectInvalid(
      admin(app).post<UserWithPassword>('/api/users', {
        username: 'dave',
        password,
      }),
      '/password',
    );
  });

  test('name every rule that a password breaks', async () => {
    const { status, body } = await admin(app).post<ProblemBody>('/api/users', {
      username: 'anna',
      password: 'anna',
    });
    expect(status).toBe(400);
    expect(body.errors?.map(({ pointer, code }) => [pointer, code])).toEqual([
      ['/password', 'minLength'],
      ['/password', 'username'],
      ['/password', 'common'],
      ['/password', 'common'],
    ]);
  });

  test('accept any characters in a password, in any Unicode normalization', async () => {
    const password = 'Grüße aus Köln ☂ 雨';
    await admin(app).post('/api/users', {
      username: 'umlaut',
      password: password.normalize('NFD'),
      mustChangePassword: false,
    });
    await login(app, 'umlaut', password.normalize('NFC')).expect(200);
  });

  test('have unique names, compared case-insensitively', async () => {
    await admin(app).post('/api/users', { username: 'Erin' });
    await expectProblem(admin(app).post('/api/users', { username: 'eRIN' }), 409, 'conflict');
    const both = await Promise.all(
      [1, 2, 3, 4].map(() =>
        admin(app).post<UserWithPassword>('/api/users', { username: 'frank' }),
      ),
    );
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409]);
  });

  test.each([
    ['Åsa', ['ÅSA', 'åsa', 'åSA', 'A\u030asa']],
    ['ΟΔΥΣΣΕΑΣ', ['Οδυσσεας', 'οδυσσεασ']],
    ['ｊürgen', ['JÜRGEN', 'jürgen']],
    ['\u{10400}', ['\u{10428}']],
    ['\u0130lker', ['i\u0307lker']],
  ])('named %s have one name in all letter cases and Unicode forms', async (username, others) => {
    const account = { username, password: PASSWORD, mustChangePassword: false };
    const user = await admin(app).post<UserRecord>('/api/users', account).expect(201);
    for (const other of others) {
      await expectProblem(admin(app).post('/api/users', { username: other }), 409, 'conflict');
      await login(app, other, PASSWORD).expect(200);
      const found = await admin(app).get<Page<UserRecord>>(
        `/api/users?username=${encodeURIComponent(other)}`,
      );
      expect(found.body.items.map(({ id }) => id)).toEqual([user.id]);
    }
  });

  test('that earlier versions have created with one name each stay apart', async () => {
    const [first, second] = await Promise.all(
      ['one', 'second'].map(async (username) => {
        const account = {
          username,
          password: `${PASSWORD} of ${username.length}`,
          mustChangePassword: false,
        };
        return admin(app).post<UserRecord>('/api/users', account).expect(201);
      }),
    );
    for (const [user, username] of [
      [first, 'Örjan'],
      [second, 'örjan'],
    ] as const)
      await app.deps.db('users').where({ id: user?.id }).update({ username });
    await login(app, 'Örjan', `${PASSWORD} of 3`).expect(200);
    await login(app, 'örjan', `${PASSWORD} of 6`).expect(200);
    await admin(app).put(`/api/users/${second?.id}`, { displayName: 'Second' }).expect(200);
  });

  test('are listed inside the scope of the caller only', async () => {
    await admin(app).post('/api/rbac/roles', {
      id: 'hr',
      name: 'HR',
      permissions: ['user:read', 'user:write'],
    });
    const red = await createUser(app, { roleId: 'hr', tenantId: 'red' });
    await red.client.put('/api/auth/session', { tenantId: 'red' });
    const made = await red.client.post<UserWithPassword>('/api/users', { username: 'gina' });
    expect(made.body.tenantId).toBe('red');
    expect(
      (await red.client.get<Page<UserRecord>>('/api/users')).body.items.map(
        (user) => user.username,
      ),
    ).toEqual(['gina']);
    await expectProblem(red.client.get(`/api/users/${red.id}`), 404, 'not_found');
    await expectProblem(
      red.client.post('/api/users', { username: 'x', tenantId: 'blue' }),
      403,
      'permission_denied',
    );
    await expectProblem(
      red.client.put(`/api/users/${made.body.id}`, { tenantId: 'blue' }),
      403,
      'permission_denied',
    );
    expect(
      (await red.client.put<UserRecord>(`/api/users/${made.body.id}`, { displayName: 'Gina G.' }))
        .body.displayName,
    ).toBe('Gina G.');
  });

  test('can be changed partially, with If-Match', async () => {
    const { id, username } = await createUser(app);
    const before = await admin(app).get<UserRecord>(`/api/users/${id}`);
    const changed = await admin(app).send<UserRecord>(
      'PUT',
      `/api/users/${id}`,
      { email: 'a@example.net' },
      { 'if-match': before.headers.get('etag') ?? '' },
    );
    expect(changed.body).toMatchObject({
      email: 'a@example.net',
      displayName: username,
      version: before.body.version + 1,
    });
    await expectProblem(
      admin(app).send(
        'PUT',
        `/api/users/${id}`,
        { email: null },
        { 'if-match': before.headers.get('etag') ?? '' },
      ),
      412,
      'version_conflict',
    );
    expect(
      (await admin(app).put<UserRecord>(`/api/users/${id}`, { email: null })).body.email,
    ).toBeNull();
  });

  test('can be filtered by name, provider, tenant and state', async () => {
    const someone = await createUser(app);
    const disabled = { enabled: false, tenantId: 'filtered' };
    await expectInvalid(admin(app).put(`/api/users/${someone.id}`, disabled), '/tenantId');
    await expectInvalid(
      admin(app).post('/api/users', { username: 'nowhere', tenantId: 'filtered' }),
      '/tenantId',
    );
    await seedTenant(app, 'filtered');
    await admin(app).put(`/api/users/${someone.id}`, disabled).expect(200);
    const ids = async (query: string) =>
      (await admin(app).get<Page<UserRecord>>(`/api/users?limit=200&${query}`)).body.items.map(
        (user) => user.id,
      );
    for (const query of [
      `username=${someone.username.toUpperCase()}`,
      `q=${someone.username.slice(1).toUpperCase()}`,
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

  test('a wrong current password is audited; a login changes the ETag', async () => {
    const someone = await createUser(app);
    await someone.client.post('/api/auth/password', {
      currentPassword: 'wrong',
      newPassword: 'another fine sentence',
    });
    expect(
      await app.deps
        .db('audit_entries')
        .where({ actor_id: someone.id, action: 'user.change_password', outcome: 'denied' }),
    ).toHaveLength(1);
    const before = await admin(app).get<UserRecord>(`/api/users/${someone.id}`);
    await login(app, someone.username);
    const after = await admin(app).get<UserRecord>(`/api/users/${someone.id}`, {
      'if-none-match': before.headers.get('etag') ?? '',
    });
    expect(after.status).toBe(200);
  });

  test('store no fast hash of a password for an Idempotency-Key', async () => {
    const body = { username: 'keyed', password: 'a fine long sentence' };
    const send = (change: object = {}) =>
      admin(app).post<UserWithPassword>(
        '/api/users',
        { ...body, ...change },
        { 'idempotency-key': 'keyed' },
      );
    await send().expect(201);
    expect((await send()).headers.get('idempotent-replayed')).toBe('true');
    await send({ password: 'another long sentence' }).expect(422);
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

  test('a reset ends the sessions and sets a one-time password', async () => {
    const someone = await createUser(app, 'viewer');
    const { body } = await admin(app).post<UserWithPassword>(
      `/api/users/${someone.id}/reset-password`,
      {},
    );
    await expectProblem(someone.client.get('/api/jobs'), 401, 'session_invalid');
    await expectProblem(login(app, someone.username), 401, 'login_failed');
    expect(
      (await login(app, someone.username, body.oneTimePassword)).body.user.mustChangePassword,
    ).toBe(true);
  });

  test("changing one's own password ends the other sessions only", async () => {
    const someone = await createUser(app, 'viewer');
    const other = await login(app, someone.username);
    await someone.client
      .post('/api/auth/password', {
        currentPassword: PASSWORD,
        newPassword: 'another fine sentence',
      })
      .expect(204);
    await someone.client.get('/api/jobs').expect(200);
    await expectProblem(withToken(other.body.accessToken).get('/api/jobs'), 401, 'session_invalid');
    expect(
      await app.deps.db('events').where({ type: 'auth.user.updated', subject_id: someone.id }),
    ).toMatchObject([{ actor_id: someone.id }]);
  });
});

describe('signing in', () => {
  test('fails the same way for an unknown name, a wrong password and a disabled account', async () => {
    const someone = await createUser(app);
    await admin(app).put(`/api/users/${someone.id}`, { enabled: false });
    const known = await createUser(app);
    const answers = [
      await login(app, 'no-such-name'),
      await login(app, known.username, 'wrong password'),
      await login(app, someone.username),
    ];
    const comparable = answers.map(
      ({
        status,
        body: { requestId, ...body },
      }: TestResponse<object & { requestId?: string }>) => ({
        status,
        body,
      }),
    );
    expect(comparable[0]).toMatchObject({ status: 401, body: { code: 'login_failed' } });
    expect(new Set(comparable.map((answer) => JSON.stringify(answer))).size).toBe(1);
    const entries = (await admin(app).get<Page<AuditEntryRecord>>('/api/audit?action=login.failed'))
      .body.items;
    expect(entries.map((entry) => (entry.after as { reason: string }).reason)).toEqual(
      expect.arrayContaining(['wrong password', 'disabled']),
    );
    expect(JSON.stringify(entries)).not.toContain('no-such-name');
  });

  test('computes a hash for an unknown name as for a wrong password', async () => {
    const options = { idle: true, slowPasswords: true };
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' }, options);
    try {
      const { username } = await createUser(fresh);
      await login(fresh, 'warm-up', 'wrong password');
      const usedMs = { known: [] as number[], unknown: [] as number[] };
      for (let i = 0; i < 8; i++) {
        for (const [kind, name] of [
          ['known', username],
          ['unknown', `nobody-${i}`],
        ] as const) {
          const before = process.cpuUsage();
          await login(fresh, name, 'wrong password').expect(401);
          const { user, system } = process.cpuUsage(before);
          usedMs[kind].push((user + system) / 1_000);
        }
      }
      // The least of several: other work only adds. A hash takes most of it.
      const ratio = Math.min(...usedMs.unknown) / Math.min(...usedMs.known);
      expect(ratio).toBeGreaterThan(0.5);
      expect(ratio).toBeLessThan(2);
    } finally {
      await fresh.stop();
    }
  });

  test('is throttled per account, also for concurrent attempts and unknown names; a success resets it', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
    try {
      const { username } = await createUser(fresh);
      for (let i = 0; i < 5; i++) await login(fresh, username, 'wrong');
      await login(fresh, username).expect(200);
      for (const name of [username, 'unknown-name']) {
        const answers = await Promise.all(
          Array.from({ length: 15 }, () => login(fresh, name, 'wrong')),
        );
        expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
        const blocked = answers.find(({ status }) => status === 429);
        expect(blocked?.body).toMatchObject({ code: 'too_many_requests' });
        expect(Number(blocked?.headers.get('retry-after'))).toBeGreaterThan(60);
      }
      // Neither the right password nor another spelling helps; the owner at another address can
      // sign in.
      await login(fresh, username).expect(429);
      for (const spelling of [username.toUpperCase(), username.replace('p', '\uff50')])
        await login(fresh, spelling).expect(429);
      const otherAddress = await fresh.client
        .as({ token: null })
        .post<TokenResponse>(
          '/api/auth/login/local',
          { username, password: PASSWORD },
          { 'x-forwarded-for': '203.0.113.77' },
        );
      expect(otherAddress.status).toBe(200);
      expect(await fresh.deps.db('audit_entries').where({ action: 'login.throttled' })).not.toEqual(
        [],
      );
      // A reset unlocks the account at every address.
      const [user] = (await admin(fresh).get<Page<UserRecord>>(`/api/users?username=${username}`))
        .body.items;
      const reset = await admin(fresh).post<UserWithPassword>(
        `/api/users/${user?.id}/reset-password`,
        {},
      );
      await login(fresh, username, reset.body.oneTimePassword).expect(200);
    } finally {
      await fresh.stop();
    }
  });

  test('is throttled per address, which only a gateway may forward', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
    try {
      const attempt = (name: string, address: string) =>
        fresh.client
          .as({ token: null })
          .post<TokenResponse>(
            '/api/auth/login/local',
            { username: name, password: 'wrong' },
            { 'x-forwarded-for': address },
          );
      const statuses: number[] = [];
      // An address may make 20 requests at a time.
      for (let sent = 0; sent < 55; sent += 11) {
        const attempts = Array.from({ length: 11 }, (_, i) =>
          attempt(`name-${sent + i}`, `198.51.100.66, 203.0.113.7`),
        );
        statuses.push(...(await Promise.all(attempts)).map(({ status }) => status));
      }
      expect(statuses.filter((status) => status === 429)).toHaveLength(5);
      await attempt('other', '198.51.100.66, 203.0.113.7').expect(429);
      await attempt('other', '203.0.113.7:4455').expect(429);
      await attempt('other', '203.0.113.8').expect(401);
      await attempt('other', '[2001:db8::1]:443').expect(401);
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
  test('is created once by concurrent starts, and can be recovered', async () => {
    const fresh = await startApp({ HOLDFAST_ROLE: 'api' }, { idle: true });
    try {
      const command = systemCaller('platform', 'command-line');
      await fresh.deps.serviceAccounts.create(command, { name: 'prometheus' });
      const made = await Promise.all([1, 2, 3].map(() => fresh.deps.bootstrapAdmin.createFirst()));
      const [first] = made.filter((login) => login !== undefined);
      expect(made.filter((login) => login !== undefined)).toHaveLength(1);
      expect(await fresh.deps.bootstrapAdmin.createFirst()).toBeUndefined();
      const { body } = await login(fresh, 'admin', first?.oneTimePassword);
      expect(body.user.mustChangePassword).toBe(true);
      await fresh.client.as({ token: body.accessToken }).post('/api/auth/password', {
        currentPassword: first?.oneTimePassword,
        newPassword: PASSWORD,
      });
      await fresh.client.as({ token: body.accessToken }).get('/api/rbac').expect(200);

      await fresh.deps.db('users').update({ enabled: false });
      await fresh.deps.db('grants').delete();
      const { recover } = fresh.deps.bootstrapAdmin;
      const plain = { create: false, promote: false };
      expect(await recover(undefined, plain)).toMatchObject({ refusal: 'not_administrator' });
      const back = await recover('admin', { ...plain, promote: true });
      const again = await login(
        fresh,
        'admin',
        'oneTimePassword' in back ? back.oneTimePassword : undefined,
      );
      expect(again.status).toBe(200);
      await expectProblem(
        fresh.client.as({ token: body.accessToken }).get('/api/rbac'),
        401,
        'session_invalid',
      );

      // A misspelt name creates nobody.
      expect(await recover('second', plain)).toMatchObject({ refusal: 'unknown' });
      expect(await fresh.deps.db('users').where({ username: 'second' })).toEqual([]);
      expect(await recover('second', { ...plain, create: true })).toMatchObject({ account: 'new' });
      expect(await recover('second', { ...plain, create: true })).toMatchObject({
        refusal: 'exists',
      });

      // Without a name, only the first user of an installation is created.
      await fresh.deps.db('users').where({ username: 'admin' }).update({ username: 'former' });
      expect(await recover(undefined, plain)).toMatchObject({ refusal: 'unknown' });
      await fresh.deps.db.raw('truncate users cascade');
      expect(await recover(undefined, plain)).toMatchObject({ account: 'new', username: 'admin' });
    } finally {
      await fresh.stop();
    }
  });
});
