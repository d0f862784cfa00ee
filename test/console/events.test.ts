import { beforeAll, expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, seedTenant, type TestUser } from '../support/users.ts';

type WithId = { id: string };

describePages('events', (console) => {
  let reader: TestUser;

  beforeAll(async () => {
    reader = await createUser(console.app, 'platform-admin');
    await seedTenant(console.app, 'red');
  });

  const createSite = (name: string) =>
    admin(console.app).post<WithId>('/api/inventory/sites', { name }).expect(201);

  test('appear as they happen, with the filters of the address', async () => {
    const page = await console.open(reader, '/events?type=inventory.site.created');
    await page.getByText('Live', { exact: true }).waitFor();
    const rows = page.getByRole('grid').getByRole('row');
    const { id } = await createSite('ams1');
    await page.getByRole('link', { name: 'ams1' }).waitFor();
    // Another type is not shown, though it came after.
    await admin(console.app).put(`/api/inventory/sites/${id}`, { address: 'New' }).expect(200);
    await createSite('fra1');
    await page.getByRole('link', { name: 'fra1' }).waitFor();
    expect(await rows.count()).toBe(3);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(`/events?subject=${id}`);
    await page.getByRole('link', { name: 'inventory.site.updated' }).waitFor();
    expect(await rows.count()).toBe(3);
    await page.getByRole('link', { name: 'inventory.site.updated' }).click();
    await page.getByText('A site was changed.').waitFor();
    await page.getByRole('link', { name: 'ams1' }).waitFor();
    await page.getByText(/No webhook that you may see/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    const event = page.url().replace(/.*\//, '');
    await page.goto(`/id/${event}`);
    await page.waitForURL(`**/events/${event}`);
  });

  test('stay as they are during a pause, which says how many have come', async () => {
    const page = await console.open(reader, '/events?type=inventory.site.created');
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByRole('link', { name: 'fra1' }).waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await createSite('lon1');
    await page.getByRole('button', { name: '1 new · show' }).waitFor();
    await createSite('osl1');
    await page.getByRole('button', { name: '2 new · show' }).waitFor();
    expect(await page.getByRole('link', { name: 'lon1' }).count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: '2 new · show' }).click();
    await page.getByRole('link', { name: 'osl1' }).waitFor();
    await page.getByRole('link', { name: 'lon1' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    // By a key, too.
    await page.keyboard.press('p');
    await page.getByText('Paused', { exact: true }).waitFor();
  });

  test('have a catalogue, which leads to the webhooks and events of a type', async () => {
    const page = await console.open(reader, '/event-types');
    await page.getByRole('textbox', { name: 'Search event types' }).fill('failed last attempt');
    await page.getByText(/^1 of \d+ types$/).waitFor();
    expect(page.url()).toContain('q=failed');
    await page.getByRole('link', { name: 'job.failed' }).click();
    await page.getByText('A job has failed, after its last attempt.').waitFor();
    await page.getByRole('cell', { name: 'source.kind' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('link', { name: 'New webhook' }).click();
    await page.getByText(/^1 type of \d+ chosen$/).waitFor();
    await page.getByRole('checkbox', { name: /job\.failed/ }).waitFor();
    expect(await page.getByRole('checkbox', { name: /job\.failed/ }).isChecked()).toBe(true);
  });

  test('are those of the tenants of their reader', async () => {
    const viewer = await createUser(console.app, { roleId: 'viewer', tenantId: 'red' });
    const page = await console.open(viewer, '/events');
    await page.getByText('Live', { exact: true }).waitFor();
    await console.app.client
      .as({ actor: 'root', roles: 'platform-admin', tenant: 'red' })
      .post('/api/inventory/sites', { name: 'red1' })
      .expect(201);
    await page.getByRole('link', { name: 'red1' }).waitFor();
    expect(await page.getByRole('link', { name: 'ams1' }).count()).toBe(0);
  });
});
