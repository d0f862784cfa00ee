import { describe, expect, test } from '@jest/globals';
import type { TestApp } from '../support/app.ts';
import { backUp, dump, STATE, withBackups, type archiveFolder } from '../support/backups.ts';
import type { TestClient } from '../support/client.ts';
import { making } from '../support/inventory.ts';

let archives: Awaited<ReturnType<typeof archiveFolder>>;
let app: TestApp;
let root: TestClient;
withBackups((there) => void ({ app, root, archives } = there));

const make = making(() => root);
const take = backUp(() => root);

describe('a backup', () => {
  test('is made, read, listed, restored from and deleted', async () => {
    const site = await make('sites', { name: 'ams1', description: 'before' });
    await make('prefixes', { cidr: '10.0.0.0/8' });
    const backup = await take({ mode: 'full', label: 'first' });
    expect(backup).toMatchObject({ mode: 'full', label: 'first', engine: 'snapshot', store: 'folder', workflowId: `backup:${backup.id}` });
    expect(await archives.files()).toEqual([backup.archive]);
    const before = await dump(app.databaseUrl, STATE);
    await root.put(`/api/inventory/sites/${site.id}`, { description: 'after' });
    await make('sites', { name: 'fra1' });
    const look = await root.post('/api/backup/restore/validate', { backupId: backup.id });
    expect([look.status, look.body.errors]).toEqual([200, []]);
    expect(look.body.preview.counts).toMatchObject({ created: 0, changed: 1, deleted: 1 });
    const restored = await root.post('/api/backup/restore', { backupId: backup.id, planHash: look.body.planHash }, { prefer: 'wait=50' });
    expect([restored.status, restored.body.error, restored.body.status]).toEqual([202, null, 'succeeded']);
    expect(await dump(app.databaseUrl, STATE)).toEqual(before);
    const list = await root.get('/api/backup');
    expect(list.body.backups.map((each: any) => each.label)).toEqual(['before a restore', 'first']);
    expect((await root.delete(`/api/backup/${backup.id}`)).status).toBe(204);
    expect((await root.get(`/api/backup/${backup.id}`)).status).toBe(404);
    expect(await archives.files()).toEqual([`${restored.body.safetyBackupId as string}.hfb`]);
  });
});
