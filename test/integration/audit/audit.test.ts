import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemCaller, type Caller } from '../../../domain/shared/caller.ts';
import { admin as adminCommand } from '../../../processes/cli/admin.ts';
import { reencryptSecrets } from '../../../processes/cli/reencryptSecrets.ts';
import { verifyAudit } from '../../../processes/cli/verifyAudit.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { runHere } from '../../support/commands.ts';
import { runCommand } from '../../support/processes.ts';
import { eventually } from '../../support/eventually.ts';
import { admin, createUser, first, login, type Page } from '../../support/users.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const echo = { type: 'core.echo', payload: {} };
const atTenant = (tenant: string) => app.client.as({ tenant });

describe('the audit log', () => {
  test('contains actor, action, record, origin and outcome of a change', async () => {
    const { body: job } = await atTenant('red').post<JobRecord>('/api/jobs', echo, {
      'x-request-id': 'audit-1',
    });
    const { body } = await admin(app).get<Page<AuditEntryRecord>>('/api/audit?requestId=audit-1');
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
    expect(
      (await admin(app).get<AuditEntryRecord>(`/api/audit/${first(body).id}`)).body,
    ).toMatchObject({
      id: first(body).id,
    });
  });

  test('shows a new entry without a seal, and later with it', async () => {
    await atTenant('seal').post('/api/jobs', echo);
    const sealed = await eventually(
      () => admin(app).get<Page<AuditEntryRecord>>('/api/audit?tenantId=seal'),
      ({ body }) => body.items[0]?.seal !== null,
    );
    expect(first(sealed.body).seal).toEqual({
      position: 1,
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test('shows credentials to their actor only, not to an actor of that name', async () => {
    const subject = { type: 'test', id: 'own' };
    const record = (caller: Caller, tenantId = caller.tenantId) =>
      app.deps.commit(caller, (work) => {
        const after = { password: 'hunter22', by: caller.kind };
        work.audit('test.own', subject, { tenantId, after });
      });
    const system = { ...systemCaller('platform', 'audit-own'), actorId: 'robot' };
    await record(system);
    await record({ ...system, kind: 'gateway' });
    await record({ ...system, kind: 'gateway', tenantId: 'elsewhere' });
    await record({ ...system, kind: 'gateway' }, 'elsewhere');
    const shownTo = async (tenant: string) => {
      const { items } = await app.client
        .as({ actor: 'robot', roles: 'platform-admin', tenant })
        .get<Page<AuditEntryRecord>>('/api/audit?requestId=audit-own')
        .expect(200);
      return items
        .map(({ tenantId, via, after }) => [
          tenantId,
          via,
          (after as { password: string }).password,
        ])
        .sort();
    };
    expect(await shownTo('platform')).toEqual([
      ['elsewhere', 'gateway', '********'],
      ['elsewhere', 'gateway:platform', 'hunter22'],
      ['platform', 'gateway', 'hunter22'],
      ['platform', 'system', '********'],
    ]);
    expect(await shownTo('elsewhere')).toEqual([
      ['elsewhere', 'gateway', 'hunter22'],
      ['elsewhere', 'gateway:platform', '********'],
    ]);
  });

  test('is readable inside the scope of the caller only', async () => {
    await atTenant('blue').post('/api/jobs', echo);
    const red = app.client.as({ roles: 'auditor', tenant: 'red' });
    const { body } = await red.get<Page<AuditEntryRecord>>('/api/audit?limit=200');
    expect(new Set(body.items.map((entry) => entry.tenantId))).toEqual(new Set(['red']));
    expect((await red.get<Page<AuditEntryRecord>>('/api/audit?tenantId=blue')).body.items).toEqual(
      [],
    );
    const blue = first(
      await admin(app).get<Page<AuditEntryRecord>>('/api/audit?tenantId=blue').expect(200),
    ).id;
    await red.get(`/api/audit/${blue}`).expect(404);
    expect((await red.get<string>('/api/audit/export')).body).not.toContain('"tenantId":"blue"');
    await app.client.get('/api/audit').expect(403);
  });

  test('contains denied attempts, logins and failed logins', async () => {
    const someone = await createUser(app, 'viewer');
    await someone.client.post('/api/jobs', echo);
    await login(app, someone.username, 'wrong password');
    const actions = (query: string) =>
      admin(app)
        .get<Page<AuditEntryRecord>>(`/api/audit?${query}`)
        .then(({ body }) => body.items.map((entry) => `${entry.action} ${entry.outcome}`));
    expect(await actions(`actorId=${someone.id}`)).toEqual(['access.denied denied', 'login done']);
    expect(await actions('action=login.failed')).toEqual(['login.failed denied']);
    expect((await actions('outcome=denied')).every((line: string) => line.endsWith('denied'))).toBe(
      true,
    );
  });

  test('contains an attack on an account in spite of a flood of other attempts', async () => {
    const someone = await createUser(app);
    for (let n = 0; n < 7; n++) {
      // Few at a time: callers without an identity share few slots.
      const noise = await Promise.all(
        Array.from({ length: 10 }, () =>
          app.client.as({ token: null }).get('/api/auth/oidc/callback?state=x&code=y'),
        ),
      );
      expect(new Set(noise.map(({ status }) => status))).toEqual(new Set([401]));
    }
    await login(app, someone.username, 'wrong password');
    const { body } = await admin(app).get<Page<AuditEntryRecord>>(
      '/api/audit?action=login.failed&limit=1',
    );
    expect(first(body).after).toMatchObject({ userId: someone.id, reason: 'wrong password' });
  });

  test('an entry of a commit that took long is found by the time at which that began', async () => {
    const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);
    await app.deps.db('audit_entries').insert({
      id: app.deps.ids.next('aud'),
      tenant_id: 'long-commit',
      actor_id: 'ann',
      via: 'gateway',
      action: 'restore',
      outcome: 'done',
      subject_type: 'backup',
      subject_id: 'bkp_long',
      request_id: 'req',
      at: minutesAgo(30),
    });
    const found = async (query: string) =>
      (
        await admin(app)
          .get<Page<AuditEntryRecord>>(`/api/audit?tenantId=long-commit&${query}`)
          .expect(200)
      ).items.length;
    expect(await found(`until=${minutesAgo(20).toISOString()}`)).toBe(1);
    expect(await found(`until=${minutesAgo(40).toISOString()}`)).toBe(0);
    expect(await found(`since=${minutesAgo(40).toISOString()}`)).toBe(1);
    expect(await found(`since=${minutesAgo(20).toISOString()}`)).toBe(0);
  });

  test('filters by time, subject and page', async () => {
    const before = new Date().toISOString();
    const jobs = [];
    for (let i = 0; i < 5; i++)
      jobs.push((await atTenant('pages').post<JobRecord>('/api/jobs', echo)).body.id);
    const seen: string[] = [];
    for (let cursor = ''; ;) {
      const { body } = await admin(app).get<Page<AuditEntryRecord>>(
        `/api/audit?tenantId=pages&limit=2${cursor}`,
      );
      seen.push(...body.items.map((entry) => entry.subject.id));
      if (body.nextCursor === null) break;
      cursor = `&cursor=${encodeURIComponent(body.nextCursor)}`;
    }
    expect(seen).toEqual(jobs.toReversed());
    expect(
      (await admin(app).get<Page<AuditEntryRecord>>(`/api/audit?tenantId=pages&since=${before}`))
        .body.items,
    ).toHaveLength(5);
    expect(
      (await admin(app).get<Page<AuditEntryRecord>>(`/api/audit?tenantId=pages&until=${before}`))
        .body.items,
    ).toHaveLength(0);
    await eventually(
      () => new Date().toISOString(),
      (now) => now > before,
    );
    const middle = await eventually(
      () => new Date().toISOString(),
      (now) => now > before,
    );
    await atTenant('pages').post('/api/jobs', echo);
    expect(
      (await admin(app).get<Page<AuditEntryRecord>>(`/api/audit?tenantId=pages&since=${middle}`))
        .body.items,
    ).toHaveLength(1);
    expect(
      (await admin(app).get<Page<AuditEntryRecord>>(`/api/audit?tenantId=pages&until=${middle}`))
        .body.items,
    ).toHaveLength(5);
    expect(
      (
        await admin(app).get<Page<AuditEntryRecord>>(
          `/api/audit?subjectType=job&subjectId=${jobs[0]}`,
        )
      ).body.items,
    ).toHaveLength(1);
    await admin(app).get('/api/audit?since=yesterday').expect(400);
    await admin(app).get('/api/audit?colour=red').expect(400);
    await admin(app).get('/api/audit?cursor=xyz').expect(400);
  });

  test('is exported completely, oldest entry first, one entry per line', async () => {
    // More than one batch.
    await app.deps.db
      .raw(`INSERT INTO audit_entries (id, tenant_id, actor_id, via, action, outcome, subject_type, subject_id, request_id, at)
      SELECT 'aud_' || lpad(n::text, 26, '0'), 'export', 'test', 'system', 'test.made', 'done', 'test', n::text, 'test', now() FROM generate_series(1, 1234) AS n`);
    const answer = await admin(app).get<string>('/api/audit/export?tenantId=export');
    expect(answer.headers.get('content-type')).toContain('application/x-ndjson');
    const lines = answer.body
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
    await app.deps.auditSealer.seal();
    await expect(app.deps.db.raw(sql)).rejects.toThrow('only grow');
  });
});

describe('commands', () => {
  const oneTimePassword = (output: string) => /One-time password +(\S+)/.exec(output)?.[1] ?? '';

  test('admin creates or recovers an administrator; an unknown command prints the usage', async () => {
    const someone = await createUser(app, 'viewer');
    const unknown = await runCommand(app.env, 'nothing');
    const misspelt = await runHere(app, adminCommand, 'rescue');
    const made = await runHere(app, adminCommand, 'rescue', '--create');
    const refused = await runHere(app, adminCommand, someone.username);
    const usage = await runHere(app, adminCommand, '--no-such-option');
    expect((await login(app, 'rescue', oneTimePassword(made.text))).body.user).toMatchObject({
      username: 'rescue',
      mustChangePassword: true,
    });
    expect(misspelt).toEqual({
      status: 1,
      text: expect.stringMatching(/^There is no local user named rescue; [^]* --create\n$/),
    });
    expect([refused.status, usage.status]).toEqual([1, 2]);
    expect(
      await app.deps.db('grants').where({ user_id: someone.id, role_id: 'platform-admin' }),
    ).toEqual([]);
    for (let i = 0; i < 11; i++) await login(app, someone.username, 'wrong');
    await login(app, someone.username).expect(429);
    const promoted = await runHere(app, adminCommand, someone.username, '--promote');
    await login(app, someone.username, oneTimePassword(promoted.text)).expect(200);
    expect(await runHere(app, verifyAudit, 'no-such-tenant')).toEqual({
      status: 1,
      text: expect.stringContaining('there are no entries'),
    });
    expect(await runHere(app, reencryptSecrets)).toEqual({
      status: 0,
      text: expect.stringMatching(/^Encrypted again: 0 secrets/),
    });
    expect([unknown.status, unknown.stderr]).toEqual([2, expect.stringContaining('verify-audit')]);
  });

  test('verify-audit accepts intact chains, and reports the first broken link', async () => {
    for (let i = 0; i < 5; i++) await atTenant('forged').post('/api/jobs', echo);
    await eventually(
      async () => {
        await app.deps.auditSealer.seal();
        return app.deps.auditSealer.verify('forged');
      },
      ({ unsealed }) => unsealed === 0,
    );
    expect(await runHere(app, verifyAudit)).toEqual({
      status: 0,
      text: expect.stringContaining('forged: 5 entries, intact'),
    });
    await app.deps.db.transaction(async (trx) => {
      await trx.raw('ALTER TABLE audit_entries DISABLE TRIGGER USER');
      await trx('audit_entries')
        .where({ tenant_id: 'forged', position: 3 })
        .update({ actor_id: 'another-actor' });
      await trx.raw('ALTER TABLE audit_entries ENABLE TRIGGER USER');
    });
    const { id } = await app.deps
      .db('audit_entries')
      .where({ tenant_id: 'forged', position: 3 })
      .first();
    expect(await runHere(app, verifyAudit, 'forged')).toEqual({
      status: 1,
      text: expect.stringContaining(
        `forged: BROKEN at position 3, entry ${id}; intact before it: 2 entries`,
      ),
    });
  });
});
