import { expect, test } from '@jest/globals';
import type { RetentionRecord } from '../../../api/retention/schemas.ts';
import type { ViewRecord } from '../../../api/views/schemas.ts';
import type { TestApp } from '../../support/app.ts';
import { backupCreator, restorer, withBackups } from '../../support/backups.ts';
import type { TestClient } from '../../support/client.ts';
import { recordFactory } from '../../support/inventory.ts';
import type { Page } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
withBackups((fixture) => void ({ app, root } = fixture));

const make = recordFactory(() => root);
const createBackup = backupCreator(() => root);
const restore = restorer(() => root);
const partial = (...sections: string[]) => ({ mode: 'partial', sections });
const member = (tenant: string) => app.client.as({ actor: 'ann', roles: 'platform-admin', tenant });

const viewsOf = async (tenant: string) =>
  (await member(tenant).get<Page<ViewRecord>>('/api/views').expect(200)).items.map(({ id }) => id);

/**
 * Creates a tenant with a shared view and a period of its own, which a process changes whose clock is `behindMs` behind.
 * Returns the id of the view.
 */
async function createTenant(id: string, behindMs = 0): Promise<string> {
  await make('tenants', { id, name: id });
  const ahead = `${behindMs} milliseconds`;
  await app.deps.db.raw('UPDATE tenants SET created_at = created_at + ?::interval WHERE id = ?', [
    ahead,
    id,
  ]);
  await root.put(`/api/retention/${id}`, { days: { events: 7 } }).expect(200);
  return createView(id);
}

async function createView(tenant: string): Promise<string> {
  const view = { list: '/inventory/sites', name: 'Active', search: {}, shared: true };
  return (await member(tenant).post<ViewRecord>('/api/views', view).expect(201)).id;
}

test('a restore leaves no views and no periods of an earlier tenant to a later one', async () => {
  const withoutRed = await createBackup(partial('inventory'));
  await createTenant('red');
  const kept = await createView('named');
  const access = await createBackup(partial('access'));
  // The restore deletes the tenant; its views go with it.
  await restore({ backupId: withoutRed.id });
  await make('tenants', { id: 'red', name: 'Another red' });
  expect(await viewsOf('red')).toEqual([]);
  // The restore adds what the earlier tenant had.
  await restore({ backupId: access.id });
  expect(await viewsOf('red')).toEqual([]);
  expect(await root.get<RetentionRecord>('/api/retention/red').expect(200)).toMatchObject({
    days: { events: 90 },
    overridden: [],
  });
  // Of a tenant that a gateway names there is no record.
  expect(await viewsOf('named')).toEqual([kept]);
});

test('a restore brings a tenant back with its views and periods', async () => {
  const view = await createTenant('blue', 300);
  const backup = await createBackup(partial('settings', 'inventory', 'access'));
  await root.delete('/api/inventory/tenants/blue').expect(204);
  expect(await app.deps.db('views').where({ id: view })).toEqual([]);
  await restore({ backupId: backup.id });
  expect(await viewsOf('blue')).toEqual([view]);
  expect(await root.get<RetentionRecord>('/api/retention/blue').expect(200)).toMatchObject({
    days: { events: 7 },
    overridden: ['events'],
  });
});
