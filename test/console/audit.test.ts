import { beforeAll, expect, test } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

describePages('the audit log', (console) => {
  let auditor: TestUser;
  let site: string;

  beforeAll(async () => {
    auditor = await createUser(console.app, 'auditor');
    const client = admin(console.app);
    const made = await client.post<{ id: string }>('/api/inventory/sites', { name: 'ams1' });
    site = made.body.id;
    await client
      .put(`/api/inventory/sites/${site}`, { address: 'New street 2' }, { 'if-match': '"1"' })
      .expect(200);
    const mutations = ['fra1', 'lon1', 'ber1'].map((name) => ({
      ...{ resource: 'sites', operation: 'create' },
      record: { name },
    }));
    await client.post('/api/inventory/bulk', { mode: 'all', mutations }).expect(200);
    const viewer = await createUser(console.app, 'viewer');
    await viewer.client.post('/api/inventory/sites', { name: 'osl1' }).expect(403);
  });

  test('lists who did what, and an entry has the fields before and after', async () => {
    const page = await console.open(auditor, `/audit?subjectId=${site}`);
    const rows = page.getByRole('row').filter({ hasText: 'inventory.' });
    await rows.nth(1).waitFor();
    expect(await rows.count()).toBe(2);
    await page.getByRole('link', { name: 'inventory.site.update' }).click();
    const changed = page.getByRole('table', { name: 'What changed' });
    await changed.getByText('New street 2').waitFor();
    // What every change changes is not shown.
    expect(await changed.getByText('Updated').count()).toBe(0);
    await page.getByRole('link', { name: 'ams1' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('link', { name: 'All about it' }).click();
    await rows.nth(1).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('has everything of one request together', async () => {
    const page = await console.open(auditor, '/audit');
    await page.getByRole('row').filter({ hasText: 'lon1' }).getByRole('link').first().click();
    const others = page.getByRole('region', { name: 'Of the same request' });
    await others.getByText('fra1').waitFor();
    await others.getByText('ber1').waitFor();
    await others.getByRole('link', { name: 'As a list' }).click();
    const rows = page.getByRole('row').filter({ hasText: 'inventory.site.create' });
    await rows.nth(2).waitFor();
    expect(await rows.count()).toBe(3);
  });

  test('shows what was refused, and exports what the filters leave', async () => {
    const page = await console.open(auditor, '/audit');
    await page.getByRole('button', { name: /^Denied/ }).click();
    await page.getByRole('link', { name: 'access.denied' }).first().waitFor();
    await page.goto('/audit?action=inventory.site.create');
    await page.getByRole('row').filter({ hasText: 'ber1' }).waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Export' }).click(),
    ]);
    expect(file.suggestedFilename()).toBe('audit.ndjson');
    const lines = (await readFile(await file.path(), 'utf8')).trim().split('\n');
    const actions = lines.map((line) => (JSON.parse(line) as { action: string }).action);
    expect(actions).toEqual(Array(4).fill('inventory.site.create'));
  });

  test('has no link to what has no page, and the address of any id leads somewhere', async () => {
    const page = await console.open(auditor, '/audit?action=login');
    await page.getByRole('row').filter({ hasText: 'login' }).first().waitFor();
    await page.goto('/audit?action=access.denied');
    const refused = page.getByText(/^request req_/).first();
    await refused.waitFor();
    expect(await page.getByRole('link', { name: /req_/ }).count()).toBe(0);
    const [, request] = ((await refused.textContent()) ?? '').split(' ');
    await page.goto(`/id/${request}`);
    await page.waitForURL(`**/audit?requestId=${request}`);
    await page.getByRole('row').filter({ hasText: 'access.denied' }).waitFor();
    const hold = 'hld_01jd0cmxk5e5v8kyzwq0q8s3rt';
    await page.goto(`/id/${hold}`);
    await page.getByText('The console has no page for legal holds.').waitFor();
    await page.getByText(`/api/legal-holds/${hold}`).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('link', { name: 'What the audit log has about it' }).click();
    await page.waitForURL(`**/audit?subjectId=${hold}`);
  });

  test('is for those who may read it', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/jobs');
    await page.getByRole('link', { name: 'Inventory' }).waitFor();
    expect(await page.getByRole('link', { name: 'Audit' }).count()).toBe(0);
    await page.goto('/audit');
    await page.getByText('audit:read').waitFor();
  });
});
