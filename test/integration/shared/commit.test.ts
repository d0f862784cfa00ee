import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openDatabase, type Knex } from '../../../db/core/knex.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const caller = (tenantId = 'platform') => systemCaller(tenantId, 'commit-test');
const subject = (id: string) => ({ type: 'thing', id });

describe('commit', () => {
  test('writes nothing when the use case fails at its end', async () => {
    const { db, commit } = app.deps;
    const failingCommit = commit(caller(), async (work) => {
      await (
        await work.trx()
      )('audit_heads').insert({ tenant_id: 'half', position: 1, hash: Buffer.alloc(32) });
      work.audit('thing.make', subject('half'));
      work.emit('auth.user.created', subject('half'), {
        userId: 'half',
        providerId: 'local',
        tenantId: 'platform',
        enabled: true,
      });
      work.dispatch({ kind: 'cancel', tenantId: 'platform', workflowId: 'job:half' });
      throw new Error('at the very end');
    });
    await expect(failingCommit).rejects.toThrow('at the very end');
    const left = await Promise.all([
      db('audit_heads').where({ tenant_id: 'half' }),
      db('audit_entries').where({ subject_id: 'half' }),
      db('events').where({ subject_id: 'half' }),
      db('outbox').where({ workflow_id: 'job:half' }),
    ]);
    expect(left).toEqual([[], [], [], []]);
  });

  test.each([1, 10])('writes %i entries with text that only JSON can have', async (count) => {
    const { db, commit } = app.deps;
    const id = `odd-${count}`;
    const payload = { 'k\0': ['a\0b', 'half \ud83d of a pair', '\u{1f600}', '\\u0000'] };
    await commit(caller(), (work) => {
      for (let n = 0; n < count; n++) {
        work.audit('thing.make', subject(id), { after: { n, payload } });
        work.emit('auth.user.created', subject(id), {
          userId: 'half\udfff',
          providerId: 'local',
          tenantId: 'platform',
          enabled: true,
        });
      }
    });
    const entries: { after: { payload: Record<string, string[]> } }[] = await db(
      'audit_entries',
    ).where({ subject_id: id });
    expect(entries).toHaveLength(count);
    for (const { after } of entries)
      expect(Object.values(after.payload)[0]?.slice(2)).toEqual(['\u{1f600}', '\\u0000']);
    expect(await db('events').where({ subject_id: id })).toHaveLength(count);
  });

  test('is rolled back without an audit entry', async () => {
    const { db, commit } = app.deps;
    const unaudited = commit(caller(), async (work) => {
      await (
        await work.trx()
      )('audit_heads').insert({ tenant_id: 'silent', position: 1, hash: Buffer.alloc(32) });
    });
    await expect(unaudited).rejects.toThrow('must leave an audit entry');
    expect(await db('audit_heads').where({ tenant_id: 'silent' })).toEqual([]);
  });

  test('is rolled back without the result that an Idempotency-Key needs', async () => {
    const { db, commit } = app.deps;
    const claim = {
      actorId: 'alice',
      tenantId: 'platform',
      key: 'no-result',
      leaseUntil: new Date(),
    };
    const unnamed = commit({ ...caller(), idempotency: claim }, (work) => {
      work.audit('thing.make', subject('unnamed'));
    });
    await expect(unnamed).rejects.toThrow('result of a request with an Idempotency-Key');
    expect(await db('audit_entries').where({ subject_id: 'unnamed' })).toEqual([]);
  });

  test('fails and writes nothing when PostgreSQL rejects the COMMIT', async () => {
    const { db, commit } = app.deps;
    const insertSite = (id: string, regionId: string | null) =>
      commit(caller(), async (work) => {
        const now = work.now;
        await (
          await work.trx()
        )('sites').insert({
          id,
          name: id,
          region_id: regionId,
          tenant_id: 'platform',
          created_at: now,
          updated_at: now,
        });
        work.audit('thing.make', subject(id));
      });
    await expect(insertSite('sit_deferred', 'reg_nowhere')).rejects.toMatchObject({
      code: '23503',
    });
    expect(
      await Promise.all([
        db('sites').where({ id: 'sit_deferred' }),
        db('audit_entries').where({ subject_id: 'sit_deferred' }),
      ]),
    ).toEqual([[], []]);
    // The connection went back whole.
    await insertSite('sit_deferred', null);
    expect(await db('sites').where({ id: 'sit_deferred' })).toHaveLength(1);
  });
});

describe('a connection that PostgreSQL terminates', () => {
  const terminate = 'SELECT pg_terminate_backend(pg_backend_pid())';
  const AT_COMMIT = `
    CREATE TEMP TABLE doomed (n int);
    CREATE FUNCTION pg_temp.terminate() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER doomed AFTER INSERT ON doomed DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION pg_temp.terminate();
    INSERT INTO doomed VALUES (1)`;

  test.each<[string, (db: Knex) => Promise<unknown>]>([
    ['by itself', async (db) => db.raw(terminate)],
    ['in a transaction', (db) => db.transaction(async (trx) => trx.raw(terminate))],
    ['at its COMMIT', (db) => db.transaction(async (trx) => trx.raw(AT_COMMIT))],
  ])('in a statement %s fails no later one', async (_where, fail) => {
    const { databaseUrl: url, deps } = app;
    const db = openDatabase({ url, poolSize: 1, statementTimeoutMs: 5_000, log: deps.log });
    try {
      for (let round = 0; round < 5; round++) {
        await expect(fail(db)).rejects.toThrow();
        await db.raw('SELECT 1');
      }
    } finally {
      await db.destroy();
    }
  });
});

describe('the audit log', () => {
  const commitEntry = (tenant: string, id: string) =>
    app.deps.commit(caller(tenant), async (work) => {
      work.audit('thing.make', subject(id), { after: { id } });
      return Promise.resolve();
    });
  const waitUntilSealed = (tenant: string) =>
    eventually(
      async () => {
        await app.deps.auditSealer.seal();
        return app.deps.auditSealer.verify(tenant);
      },
      ({ unsealed }) => unsealed === 0,
    );

  test.each([
    "UPDATE audit_entries SET actor_id = 'x'",
    'DELETE FROM audit_entries',
    'TRUNCATE audit_entries',
    'UPDATE audit_entries SET position = NULL, hash = NULL',
    'UPDATE audit_entries SET position = position + 1',
  ])('refuses %s', async (sql) => {
    await commitEntry('guarded', 'one');
    await waitUntilSealed('guarded');
    await expect(app.deps.db.raw(sql)).rejects.toThrow('append-only');
  });

  test('is sealed into one complete chain with forty writers and three sealers', async () => {
    await Promise.all([
      ...Array.from({ length: 40 }, (_, i) => commitEntry('chain', `c${i}`)),
      ...Array.from({ length: 3 }, () => app.deps.auditSealer.seal()),
    ]);
    expect(await waitUntilSealed('chain')).toMatchObject({
      checked: 40,
      unsealed: 0,
      broken: null,
    });
    const positions = await app.deps
      .db('audit_entries')
      .where({ tenant_id: 'chain' })
      .orderBy('position')
      .pluck('position');
    expect(positions).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  });

  /** Changes the table as only its owner can. */
  const tamper = (sql: string, ...bindings: string[]) =>
    app.deps.db.transaction(async (trx) => {
      await trx.raw('ALTER TABLE audit_entries DISABLE TRIGGER USER');
      await trx.raw(sql, bindings);
      await trx.raw('ALTER TABLE audit_entries ENABLE TRIGGER USER');
    });

  test.each([
    [
      'a changed entry',
      `UPDATE audit_entries SET after = '{"id":"forged"}' WHERE tenant_id = ? AND position = 3`,
      3,
    ],
    [
      'a changed time',
      `UPDATE audit_entries SET at = at + interval '1 ms' WHERE tenant_id = ? AND position = 2`,
      2,
    ],
    ['a deleted entry', 'DELETE FROM audit_entries WHERE tenant_id = ? AND position = 4', 4],
    ['a cut end', 'DELETE FROM audit_entries WHERE tenant_id = ? AND position = 5', 5],
    [
      'a moved entry',
      'UPDATE audit_entries SET position = CASE position WHEN 2 THEN 1002 ELSE 2 END WHERE tenant_id = ? AND position = 2',
      2,
    ],
  ])('%s is found at its position', async (what, sql, position) => {
    const tenant = `tampered-${what.replaceAll(' ', '-')}`;
    for (let i = 1; i <= 5; i++) await commitEntry(tenant, `t${i}`);
    expect(await waitUntilSealed(tenant)).toMatchObject({ checked: 5, broken: null });
    await tamper(sql, tenant);
    expect((await app.deps.auditSealer.verify(tenant)).broken?.position).toBe(position);
  });
});
