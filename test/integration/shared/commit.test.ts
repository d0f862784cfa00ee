import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';

let app: TestApp;
beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api' });
});
afterAll(() => app.stop());

const caller = (tenantId = 'platform') => systemCaller(tenantId, 'trail-test');
const subject = (id: string) => ({ type: 'thing', id });

describe('commit', () => {
  test('leaves nothing when the use case fails at its end', async () => {
    const { db, commit } = app.deps;
    const failing = commit(caller(), async (work) => {
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
      work.dispatch({ kind: 'cancel', workflowId: 'job:half' });
      throw new Error('at the very end');
    });
    await expect(failing).rejects.toThrow('at the very end');
    const left = await Promise.all([
      db('audit_heads').where({ tenant_id: 'half' }),
      db('audit_entries').where({ subject_id: 'half' }),
      db('events').where({ subject_id: 'half' }),
      db('outbox').where({ workflow_id: 'job:half' }),
    ]);
    expect(left).toEqual([[], [], [], []]);
  });

  test('of a caller without an audit entry is refused, and undone', async () => {
    const { db, commit } = app.deps;
    const silent = commit(caller(), async (work) => {
      await (
        await work.trx()
      )('audit_heads').insert({ tenant_id: 'silent', position: 1, hash: Buffer.alloc(32) });
    });
    await expect(silent).rejects.toThrow('must leave an audit entry');
    expect(await db('audit_heads').where({ tenant_id: 'silent' })).toEqual([]);
  });

  test('whose COMMIT is refused fails and leaves nothing', async () => {
    const { db, commit } = app.deps;
    const make = (id: string, regionId: string | null) =>
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
    await expect(make('sit_deferred', 'reg_nowhere')).rejects.toMatchObject({ code: '23503' });
    expect(
      await Promise.all([
        db('sites').where({ id: 'sit_deferred' }),
        db('audit_entries').where({ subject_id: 'sit_deferred' }),
      ]),
    ).toEqual([[], []]);
    // The connection went back whole.
    await make('sit_deferred', null);
    expect(await db('sites').where({ id: 'sit_deferred' })).toHaveLength(1);
  });
});

describe('the audit trail', () => {
  const make = (tenant: string, id: string) =>
    app.deps.commit(caller(tenant), async (work) => {
      work.audit('thing.make', subject(id), { after: { id } });
      return Promise.resolve();
    });
  const sealed = (tenant: string) =>
    eventually(
      async () => {
        await app.deps.sealer.seal();
        return app.deps.sealer.verify(tenant);
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
    await make('guarded', 'one');
    await sealed('guarded');
    await expect(app.deps.db.raw(sql)).rejects.toThrow('append-only');
  });

  test('is sealed into one whole chain, with forty writers and three sealers at once', async () => {
    await Promise.all([
      ...Array.from({ length: 40 }, (_, i) => make('chain', `c${i}`)),
      ...Array.from({ length: 3 }, () => app.deps.sealer.seal()),
    ]);
    expect(await sealed('chain')).toEqual({ checked: 40, unsealed: 0, broken: null });
    const positions = await app.deps
      .db('audit_entries')
      .where({ tenant_id: 'chain' })
      .orderBy('position')
      .pluck('position');
    expect(positions).toEqual(Array.from({ length: 40 }, (_, i) => i + 1));
  });

  /** Does to the table what only somebody with the owner's rights could. */
  const tamper = (sql: string, ...bindings: any[]) =>
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
  ])('%s is found at its place', async (what, sql, position) => {
    const tenant = `tampered-${what.replaceAll(' ', '-')}`;
    for (let i = 1; i <= 5; i++) await make(tenant, `t${i}`);
    expect(await sealed(tenant)).toMatchObject({ checked: 5, broken: null });
    await tamper(sql, tenant);
    expect((await app.deps.sealer.verify(tenant)).broken?.position).toBe(position);
  });
});
