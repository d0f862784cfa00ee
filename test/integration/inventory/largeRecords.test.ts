import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readEntries } from '../../../db/audit/archives.ts';
import { MAX_LOADED } from '../../../db/inventory/load.ts';
import { MAX_EFFECTS } from '../../../domain/inventory/planning.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { insertLargePrefixes, largePrefixId, type Validation } from '../../support/inventory.ts';
import { assignedToApprovers, changeRequest } from '../../support/approvals.ts';
import { admin } from '../../support/users.ts';
import type { ProblemBody } from '../../support/client.ts';

/** Records have up to 64 KiB of custom fields: the size of what a plan loads is bounded, too. */
const SIZE = 65_000;
/** A bulk write changes some of them. */
const CHANGED = 200;
const MANY = Math.ceil((MAX_LOADED.bytes / SIZE) * 1.2);

let app: TestApp;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  await insertLargePrefixes(app.deps.db, MANY, SIZE);
});
afterAll(() => app.stop());

const updates = (count: number) =>
  Array.from({ length: count }, (_, n) => ({
    resource: 'prefixes',
    operation: 'update',
    record: { id: largePrefixId(n), status: 'reserved' },
  }));

test('a change that depends on too large records is refused before they are loaded', async () => {
  const around = { resource: 'prefixes', operation: 'create', record: { cidr: '10.0.0.0/8' } };
  const asked = await admin(app).post<ProblemBody>('/api/validation/inventory', around).expect(409);
  expect(asked).toMatchObject({ code: 'limit_reached' });
  expect(asked.detail).toContain('records of more than 64 MiB');
  await admin(app).post('/api/inventory/prefixes', around.record).expect(409);
  // A part of them is planned as ever.
  const some = { ...around, record: { cidr: '10.0.0.0/17' } };
  const { effects } = await admin(app)
    .post<Validation>('/api/validation/inventory', some)
    .expect(200);
  expect(effects).toHaveLength(129);
});

test('steps of a question add up, and records that it has loaded before count once', async () => {
  await app.deps.inventory.questions.dryRunInSteps(
    systemCaller('platform', 'test'),
    new AbortController().signal,
    async (questions) => {
      const all = updates(MANY);
      const fitting = Math.floor(MAX_LOADED.bytes / SIZE / 500) * 500;
      for (let from = 0; from < fitting; from += 500)
        await questions.plan(all.slice(from, from + 500));
      const { bytes, statements } = questions.cost;
      await questions.plan(all.slice(0, fitting));
      expect(questions.cost.bytes).toBe(bytes);
      const planning = expect.objectContaining({ code: 'limit_reached' });
      await expect(questions.plan(all.slice(fitting))).rejects.toEqual(planning);
      // The rest is refused without reading it.
      const asked = questions.cost.statements;
      await expect(questions.plan(all.slice(-1))).rejects.toEqual(planning);
      expect([asked > statements, questions.cost.statements]).toEqual([true, asked]);
    },
  );
});

test('a step with too many effects can be split, also when much is loaded already', async () => {
  const create = (resource: string, record: object) =>
    admin(app).post<{ id: string }>(`/api/inventory/${resource}`, record).expect(201);
  const [from, to] = [await create('sites', { name: 'A' }), await create('sites', { name: 'B' })];
  const manufacturer = await create('manufacturers', { name: 'Maker' });
  const type = await create('device-types', { manufacturerId: manufacturer.id, model: 'M' });
  const devices: string[] = [];
  for (const name of ['one', 'two'])
    devices.push((await create('devices', { name, siteId: from.id, deviceTypeId: type.id })).id);
  await app.deps.db.raw(
    `INSERT INTO interfaces (id, tenant_id, device_id, site_id, name, kind, enabled, management_only)
     SELECT 'int_' || lpad((d * 10000 + n)::text, 26, '0'), 'platform', id, ?, 'eth' || n, 'copper', true, false
     FROM unnest(?::text[]) WITH ORDINALITY AS device (id, d), generate_series(1, ?::int) AS n`,
    [from.id, devices, MAX_EFFECTS / 2 + 1],
  );
  const moves = devices.map((id) => ({
    resource: 'devices',
    operation: 'update' as const,
    record: { id, siteId: to.id },
  }));
  await app.deps.inventory.questions.dryRunInSteps(
    systemCaller('platform', 'test'),
    new AbortController().signal,
    async (questions) => {
      await questions.plan(updates(Math.ceil((MAX_LOADED.bytes / SIZE) * 0.6)));
      expect(questions.cost.bytes).toBeGreaterThan(MAX_LOADED.bytes / 2);
      await expect(questions.plan(moves)).rejects.toMatchObject({ code: 'limit_reached' });
      for (const move of moves) {
        const { planned, changes } = await questions.plan([move]);
        expect(planned[0]).toMatchObject({ errors: [], conflicts: [] });
        expect(changes).toHaveLength(1 + MAX_EFFECTS / 2 + 1);
      }
    },
  );
});

test('the plan of an approval request is not larger than its readers can load', async () => {
  const deletes = (count: number) =>
    updates(count).map(({ record: { id } }): [string, string, object] => [
      'delete',
      'prefixes',
      { id },
    ]);
  const request = (count: number) =>
    admin(app).post<ProblemBody>('/api/workflows', {
      title: 'large',
      ...assignedToApprovers,
      ...changeRequest(...deletes(count)),
    });
  expect(await request(150).expect(409)).toMatchObject({ code: 'limit_reached' });
  await request(50).expect(201);
});

test('steps of a write add up to the size of what they change', async () => {
  const all = updates(MANY);
  const write = app.deps.inventory.writes.applyInSteps(
    systemCaller('platform', 'test'),
    new AbortController().signal,
    async (_, _trx, apply) => {
      for (let from = 0; from < MANY; from += 500) await apply(all.slice(from, from + 500));
    },
  );
  await expect(write).rejects.toMatchObject({ code: 'limit_reached' });
  expect(await app.deps.db('prefixes').where('version', '>', 1)).toEqual([]);
});

test('a change of many large records, and its audit, are written in parts', async () => {
  const { db } = app.deps;
  let longest = 0;
  const note = ({ bindings = [] }: { bindings?: readonly unknown[] }) => {
    for (const value of bindings)
      if (typeof value === 'string') longest = Math.max(longest, value.length);
  };
  db.on('query', note);
  await admin(app)
    .post('/api/inventory/bulk', { mutations: updates(CHANGED) })
    .expect(200);
  db.off('query', note);
  expect(longest).toBeLessThan(8 * 1_048_576);
  const changed = db('prefixes').where({ status: 'reserved', version: 2 });
  expect(await changed.count()).toEqual([{ count: CHANGED }]);
  const kept = await db('prefixes').whereRaw("length(custom_fields->>'note') = ?", [SIZE]).count();
  expect(kept).toEqual([{ count: MANY }]);
});

test('large entries of the audit log are sealed, verified and archived in parts', async () => {
  const { db, auditSealer } = app.deps;
  const sealed: number[] = [];
  for (let count: number; (count = await auditSealer.seal()) > 0;) sealed.push(count);
  expect(Math.max(...sealed)).toBeLessThan(100);
  const { checked, broken } = await auditSealer.verify('platform');
  expect([checked >= CHANGED, broken]).toEqual([true, null]);
  const read: number[] = [];
  for await (const batch of readEntries(db, 'platform', { firstPosition: 1, position: checked }))
    read.push(batch.length);
  expect(Math.max(...read)).toBeLessThan(100);
  expect(read.reduce((sum, count) => sum + count, 0)).toBe(checked);
});
