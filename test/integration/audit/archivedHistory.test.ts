import { beforeAll, expect, test } from '@jest/globals';
import type { Static } from 'typebox';
import type { ChangeView } from '../../../api/inventory/schemas.ts';
import type { JobRecord } from '../../../api/jobs/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import { withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import type { InventoryRecord } from '../../support/inventory.ts';
import { expectProblem } from '../../support/problem.ts';
import { seedTenant, type Page } from '../../support/users.ts';

const [JANUARY, FEBRUARY] = ['2020-01-01T12:00:00.000Z', '2020-02-01T12:00:00.000Z'];

let app: TestApp;
let root: TestClient;
withBackups(async (fixture) => {
  ({ app } = fixture);
  root = app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'aged' });
  await seedTenant(app, 'aged');
});

const id = 'sit_00000000000000000000000001';
const path = `/api/inventory/sites/${id}`;
const read = () => root.get<InventoryRecord>(path).expect(200);
const at = (time: string) => root.get<InventoryRecord>(`${path}?at=${time}`);
type Changes = Page<Static<typeof ChangeView>> & { archivedUntil: string | null };
const changes = () => root.get<Changes>(`${path}/changes`).expect(200);

let made: InventoryRecord;
let changed: InventoryRecord;
/** A site that was created and changed long ago, and its entries in the audit log. */
beforeAll(async () => {
  const { db, ids, auditSealer } = app.deps;
  await db('sites').insert({
    id,
    tenant_id: 'aged',
    name: 'second',
    created_at: JANUARY,
    updated_at: FEBRUARY,
    version: 2,
  });
  changed = await read();
  made = { ...changed, name: 'first', updatedAt: JANUARY, version: 1 };
  for (const [verb, before, after] of [
    ['create', null, made],
    ['update', made, changed],
  ] as const)
    await db('audit_entries').insert({
      id: ids.at('aud', new Date(after.updatedAt)),
      tenant_id: 'aged',
      actor_id: 'ann',
      via: 'gateway',
      action: `inventory.site.${verb}`,
      outcome: 'done',
      subject_type: 'site',
      subject_id: id,
      before: before && JSON.stringify(before),
      after: JSON.stringify(after),
      request_id: 'req',
      at: after.updatedAt,
    });
  while (await db('audit_entries').where({ position: null }).first()) await auditSealer.seal();
});

test('records keep what is known of them when their entries are archived, and the rest is refused', async () => {
  expect((await at('2020-01-15T00:00:00Z')).body).toEqual(made);
  expect(await changes()).toMatchObject({ items: [{}, {}], archivedUntil: null });
  const job = await root
    .post<JobRecord>('/api/jobs', { type: 'audit.archive', payload: {} }, { prefer: 'wait=50' })
    .expect(201);
  expect(job).toMatchObject({ status: 'succeeded', result: { entries: 2 } });

  const expectKnown = async () => {
    expect((await at('2019-12-31T00:00:00Z')).status).toBe(404);
    const { detail } = await expectProblem(at('2020-01-15T00:00:00Z'), 410, 'history_incomplete');
    expect(detail).toContain(FEBRUARY);
    expect((await at('2020-03-01T00:00:00Z')).body).toEqual(changed);
  };
  await expectKnown();
  expect(await changes()).toEqual({ items: [], nextCursor: null, archivedUntil: FEBRUARY });

  const later = await root.put<InventoryRecord>(path, { name: 'third' }).expect(200);
  await expectKnown();
  expect((await at(later.updatedAt)).body).toEqual(later);
  expect(await changes()).toMatchObject({
    items: [{ action: 'update', version: 3 }],
    archivedUntil: FEBRUARY,
  });

  await root.delete(path).expect(204);
  await expectKnown();
  expect((await at(new Date().toISOString())).status).toBe(404);
  expect((await changes()).items.map(({ action }) => action)).toEqual(['delete', 'update']);
});
