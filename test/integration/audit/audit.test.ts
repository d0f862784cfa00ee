import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { admin, login, person } from '../../support/users.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };
const at = (tenant: string) => app.client.as({ tenant });

describe('the audit trail', () => {
  test('says who did what to which record, from where and through what, and how it ended', async () => {
    const { body: job } = await at('red').post('/api/jobs', echo, { 'x-request-id': 'audit-1' });
    const { body } = await admin(app).get('/api/audit?requestId=audit-1');
    expect(body.items).toEqual([
      expect.objectContaining({
        actorId: 'alice',
        via: 'gateway',
        action: 'job.create',
        outcome: 'done',
        tenantId: 'red',
        subject: { type: 'job', id: job.id },
        before: null,
        after: expect.objectContaining({ type: 'core.echo' }),
        requestId: 'audit-1',
        address: expect.stringContaining('127.0.0.1'),
      }),
    ]);
    expect((await admin(app).get(`/api/audit/${body.items[0].id}`)).body).toMatchObject({
      id: body.items[0].id,
    });
  });

  test('shows the unsealed end as such, and the seal a moment later', async () => {
    await at('seal').post('/api/jobs', echo);
    const sealed = await eventually(
      () => admin(app).get('/api/audit?tenantId=seal'),
      ({ body }) => body.items[0]?.seal !== null,
    );
    expect(sealed.body.items[0].seal).toEqual({
      position: 1,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test('is shown inside the scope only', async () => {
    await at('blue').post('/api/jobs', echo);
    const red = app.client.as({ roles: 'auditor', tenant: 'red' });
    const { body } = await red.get('/api/audit?limit=200');
    expect(new Set(body.items.map((entry: any) => entry.tenantId))).toEqual(new Set(['red']));
    expect((await red.get('/api/audit?tenantId=blue')).body.items).toEqual([]);
    const blue = (await admin(app).get('/api/audit?tenantId=blue')).body.items[0].id;
    expect((await red.get(`/api/audit/${blue}`)).status).toBe(404);
    expect(await (await red.get('/api/audit/export')).body).not.toContain('"tenantId":"blue"');
    expect((await app.client.get('/api/audit')).status).toBe(403);
  });

  test('holds denied attempts, logins and failed ones', async () => {
    const someone = await person(app, 'viewer');
    await someone.client.post('/api/jobs', echo);
    await login(app, someone.username, 'wrong password');
    const actions = (query: string) =>
      admin(app)
        .get(`/api/audit?${query}`)
        .then(({ body }) => body.items.map((entry: any) => `${entry.action} ${entry.outcome}`));
    expect(await actions(`actorId=${someone.id}`)).toEqual(['access.denied denied', 'login done']);
    expect(await actions('action=login.failed')).toEqual(['login.failed denied']);
    expect((await actions('outcome=denied')).every((line: string) => line.endsWith('denied'))).toBe(
      true,
    );
  });

  test('keeps what was tried on an account, whatever noise there is beside it', async () => {
    const someone = await person(app);
    const noise = await Promise.all(
      Array.from({ length: 70 }, () =>
        app.client.as({ token: null }).get('/api/auth/oidc/callback?state=x&code=y'),
      ),
    );
    expect(new Set(noise.map(({ status }) => status))).toEqual(new Set([401]));
    await login(app, someone.username, 'wrong password');
    const { body } = await admin(app).get('/api/audit?action=login.failed&limit=1');
    expect(body.items[0].after).toMatchObject({ userId: someone.id, reason: 'wrong password' });
  });

  test('filters by time, subject and page', async () => {
    const before = new Date().toISOString();
    const jobs = [];
    for (let i = 0; i < 5; i++) jobs.push((await at('pages').post('/api/jobs', echo)).body.id);
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const { body } = await admin(app).get(`/api/audit?tenantId=pages&limit=2${cursor}`);
      seen.push(...body.items.map((entry: any) => entry.subject.id));
      if (body.nextCursor === null) break;
      cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
    }
    expect(seen).toEqual(jobs.toReversed());
    expect(
      (await admin(app).get(`/api/audit?tenantId=pages&since=${before}`)).body.items,
    ).toHaveLength(5);
    expect(
      (await admin(app).get(`/api/audit?tenantId=pages&until=${before}`)).body.items,
    ).toHaveLength(0);
    await eventually(
      () => new Date().toISOString(),
      (now) => now > before,
    );
    const middle = await eventually(
      () => new Date().toISOString(),
      (now) => now > before,
    );
    await at('pages').post('/api/jobs', echo);
    expect(
      (await admin(app).get(`/api/audit?tenantId=pages&since=${middle}`)).body.items,
    ).toHaveLength(1);
    expect(
      (await admin(app).get(`/api/audit?tenantId=pages&until=${middle}`)).body.items,
    ).toHaveLength(5);
    expect(
      (await admin(app).get(`/api/audit?subjectType=job&subjectId=${jobs[0]}`)).body.items,
    ).toHaveLength(1);
    expect((await admin(app).get('/api/audit?since=yesterday')).status).toBe(400);
    expect((await admin(app).get('/api/audit?colour=red')).status).toBe(400);
    expect((await admin(app).get('/api/audit?cursor=xyz')).status).toBe(400);
  });

  test('is exported whole, oldest first, one entry a line', async () => {
    // More than one batch.
    await app.deps.db
      .raw(`INSERT INTO audit_entries (id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, request_id, at)
      SELECT 'aud_' || lpad(n::text, 26, '0'), 'export', 'test', 'system', 'test.made', 'done', 'test', n::text, 'test', now() FROM generate_series(1, 1234) AS n`);
    const answer = await admin(app).get('/api/audit/export?tenantId=export');
    expect(answer.headers.get('content-type')).toContain('application/x-ndjson');
    const lines = String(answer.body)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.map((entry) => entry.subject.id)).toEqual(
      Array.from({ length: 1234 }, (_, i) => String(i + 1)),
    );
  });

  test.each([
    'UPDATE audit_heads SET position = 0',
    'DELETE FROM audit_heads',
    'TRUNCATE audit_heads',
    "UPDATE audit_heads SET hash = '\\x00'",
  ])('refuses %s', async (sql) => {
    await app.deps.sealer.seal();
    await expect(app.deps.db.raw(sql)).rejects.toThrow('only grow');
  });
});

describe('commands', () => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['commands/main.ts', ...args], {
      env: { ...process.env, ...app.env },
      encoding: 'utf8',
    });
  const verify = (...args: string[]) => run('verify-audit', ...args);

  test('admin lets somebody in, reseal seals again, anything else shows what there is', async () => {
    const made = run('admin', 'rescue');
    const password = /One-time password +(\S+)/.exec(made.stdout)?.[1] ?? '';
    expect((await login(app, 'rescue', password)).body.user).toMatchObject({
      username: 'rescue',
      mustChangePassword: true,
    });
    const someone = await person(app, 'viewer');
    expect([run('admin', someone.username).status, run('admin', '--help').status]).toEqual([1, 2]);
    expect(
      await app.deps.db('grants').where({ user_id: someone.id, role_id: 'platform-admin' }),
    ).toEqual([]);
    for (let i = 0; i < 11; i++) await login(app, someone.username, 'wrong');
    expect((await login(app, someone.username)).status).toBe(429);
    const promoted = run('admin', someone.username, '--promote');
    expect(
      (await login(app, someone.username, /One-time password +(\S+)/.exec(promoted.stdout)?.[1]))
        .status,
    ).toBe(200);
    expect([
      run('verify-audit', 'no-such-tenant').status,
      run('verify-audit', 'no-such-tenant').stdout,
    ]).toEqual([1, expect.stringContaining('there are no entries')]);
    expect([run('reseal').status, run('reseal').stdout]).toEqual([
      0,
      expect.stringMatching(/^0 secrets/),
    ]);
    expect([run('nothing').status, run('nothing').stderr]).toEqual([
      2,
      expect.stringContaining('verify-audit'),
    ]);
  });

  test('verify-audit finds the chains whole, and names the first broken link', async () => {
    for (let i = 0; i < 5; i++) await at('forged').post('/api/jobs', echo);
    await eventually(
      async () => {
        await app.deps.sealer.seal();
        return app.deps.sealer.verify('forged');
      },
      ({ unsealed }) => unsealed === 0,
    );
    const whole = verify();
    expect([whole.status, whole.stdout]).toEqual([
      0,
      expect.stringContaining('forged: 5 entries, whole'),
    ]);
    await app.deps.db.transaction(async (trx) => {
      await trx.raw('ALTER TABLE audit_entries DISABLE TRIGGER USER');
      await trx('audit_entries')
        .where({ tenant_id: 'forged', position: 3 })
        .update({ actor_id: 'somebody-else' });
      await trx.raw('ALTER TABLE audit_entries ENABLE TRIGGER USER');
    });
    const { id } = await app.deps
      .db('audit_entries')
      .where({ tenant_id: 'forged', position: 3 })
      .first();
    const broken = verify('forged');
    expect([broken.status, broken.stdout]).toEqual([
      1,
      expect.stringContaining(
        `forged: BROKEN at position 3, entry ${id}; 2 entries before it are whole`,
      ),
    ]);
  });
});
