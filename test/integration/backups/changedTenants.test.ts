import { expect, test } from '@jest/globals';
import type { EventList } from '../../../api/events/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, restorer, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { seedEstate } from '../../support/estate.ts';
import { recordFactory } from '../../support/inventory.ts';

let app: TestApp;
let root: TestClient;
withBackups(async (fixture) => {
  ({ app, root } = fixture);
  await seedEstate(app);
});

const make = recordFactory(() => root);
const member = (tenant: string) => app.client.as({ actor: 'kim', roles: 'platform-admin', tenant });
const pathOf = ({ id }: { id: string }) => `/api/inventory/sites/${id}`;

/** The events of a tenant about restores of a backup. */
async function restoresIn(tenant: string, backupId: string) {
  const { items } = await member(tenant)
    .get<EventList>('/api/events?type=restore.completed')
    .expect(200);
  return items
    .filter(({ subject, tenantId }) => subject.id === backupId && tenantId === tenant)
    .map(({ data }) => data);
}

const entriesIn = (tenant: string, backupId: string) =>
  app.deps
    .db('audit_entries')
    .where({ action: 'backup.restore', subject_id: backupId, tenant_id: tenant, outcome: 'done' })
    .select('actor_id', 'after');

test('consumers of each tenant whose records a restore of the platform changes learn it', async () => {
  const tenants = ['changes', 'moves', 'joins', 'newer', 'same'];
  for (const id of tenants) await make('tenants', { id, name: id });
  const site = (name: string, tenantId: string) => make('sites', { name, tenantId });
  const [changed, deleted, moved] = [
    await site('changed', 'changes'),
    await site('deleted', 'changes'),
    await site('moved', 'moves'),
  ];
  await site('same', 'same');
  const backup = await backupCreator(() => root)({ mode: 'partial', sections: ['inventory'] });
  await root.put(pathOf(changed), { description: 'later' }).expect(200);
  await root.delete(pathOf(deleted)).expect(204);
  await root.put(pathOf(moved), { tenantId: 'joins' }).expect(200);
  await site('newer', 'newer');
  const { jobId } = await restorer(() => root)({ backupId: backup.id });
  const about = { backupId: backup.id, jobId, sections: ['inventory'] };
  const counts = {
    changes: { created: 1, changed: 1, deleted: 0 },
    moves: { created: 0, changed: 1, deleted: 0 },
    joins: { created: 0, changed: 1, deleted: 0 },
    newer: { created: 0, changed: 0, deleted: 1 },
  };
  for (const [tenant, count] of Object.entries(counts)) {
    const data = { ...about, ...count, preRestoreBackupId: null, error: null };
    expect([tenant, await restoresIn(tenant, backup.id)]).toEqual([tenant, [data]]);
    expect([tenant, await entriesIn(tenant, backup.id)]).toEqual([
      tenant,
      [{ actor_id: 'root', after: { ...about, ...count } }],
    ]);
  }
  expect(await restoresIn('same', backup.id)).toEqual([]);
  expect(await restoresIn('platform', backup.id)).toEqual([
    expect.objectContaining({ created: 1, changed: 2, deleted: 1 }),
  ]);
});

test('each record that decides who may do what, or what is sent and run, has an entry', async () => {
  const backup = await backupCreator(() => root)();
  const types = {
    providers: ['provider'],
    roles: ['role'],
    users: ['user'],
    grants: ['assignment'],
    views: ['view'],
    tenant_quotas: ['quota'],
    retention_settings: ['retention'],
    webhooks: ['webhook'],
    secrets: ['secret'],
    schedules: ['schedule'],
  };
  const { db } = app.deps;
  const changed: string[] = [];
  for (const [table, subjects] of Object.entries(types)) {
    const column = table === 'grants' ? 'created_at' : 'updated_at';
    const count = await db(table).update({ [column]: db.raw(`${column} + interval '1 s'`) });
    if (count > 0) changed.push(...subjects);
  }
  await restorer(() => root)({ backupId: backup.id });
  const entries = await db('audit_entries')
    .where('action', 'like', '%.restore')
    .whereNot('action', 'like', 'inventory.%')
    .whereNot('subject_type', 'backup')
    .select('subject_type', 'action', 'before', 'after');
  const found = new Set(entries.map(({ subject_type }) => subject_type as string));
  expect([...found].sort()).toEqual(changed.sort());
  for (const { action, subject_type, before, after } of entries) {
    expect(action).toBe(`${subject_type}.restore`);
    expect(Object.keys((before ?? after) as object)).toContain(
      subject_type === 'assignment' ? 'createdAt' : 'updatedAt',
    );
  }
  const stored = JSON.stringify(entries);
  expect(stored).toContain('"endpointOrigin":"http://127.0.0.1:9"');
  for (const secret of [
    '"secret":',
    '"previousSecret":',
    'sealed',
    'passwordHash',
    'argon2',
    'v1.test.',
    'whsec_',
  ])
    expect(stored).not.toContain(secret);
});
