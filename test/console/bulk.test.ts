import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type Site = { id: string; name: string; status: string; description: string; version: number };

describePages('several records together', (console) => {
  let administrator: TestUser;

  beforeAll(async () => {
    administrator = await createUser(console.app, 'platform-admin');
    const client = admin(console.app);
    for (const name of ['ams1', 'ber1', 'fra1', 'lon1'])
      await client.post('/api/inventory/sites', { name, description: 'old' }).expect(201);
    await client.post('/api/inventory/racks', { name: 'r1', siteId: { name: 'ams1' } }).expect(201);
  });

  const sites = async (): Promise<Site[]> =>
    (await admin(console.app).get<{ items: Site[] }>('/api/inventory/sites?sort=name').expect(200))
      .items;

  const select = async (page: Page, ...names: string[]) => {
    for (const name of names) await page.getByLabel(`Select ${name}`).click();
    await page.getByRole('group', { name: 'Selected' }).waitFor();
  };

  test('are changed in the fields that one chooses, after the plan was shown', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    await select(page, 'ber1', 'lon1');
    await page.getByRole('button', { name: 'Change …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Change 2 sites' });
    const confirm = dialog.getByRole('button', { name: 'Change 2 sites' });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByRole('combobox', { name: 'Fields to change' }).click();
    await page.getByRole('option', { name: 'Description' }).click();
    await page.getByRole('option', { name: 'Status' }).click();
    await page.keyboard.press('Escape');
    await dialog.getByLabel('Status').selectOption({ label: 'Retired' });
    // A field that is chosen and has no value is cleared.
    await dialog.getByText('changes 2').waitFor();
    await dialog.locator('[aria-busy="true"]').waitFor({ state: 'detached' });
    expect(await accessibilityProblems(page)).toEqual([]);
    await confirm.click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByRole('group', { name: 'Selected' }).count()).toBe(0);
    expect(await sites()).toMatchObject([
      { name: 'ams1', status: 'active', version: 1 },
      { name: 'ber1', status: 'retired', description: '', version: 2 },
      { name: 'fra1', status: 'active', version: 1 },
      { name: 'lon1', status: 'retired', description: '', version: 2 },
    ]);
  });

  test('are deleted all or not at all, and the reason names who uses one', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    await select(page, 'ams1', 'fra1');
    await page.getByRole('button', { name: 'Delete …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete 2 sites' });
    await dialog.getByRole('link', { name: 'open the rack' }).waitFor();
    expect(await dialog.getByRole('button', { name: 'Delete 2 sites' }).isDisabled()).toBe(true);
    await dialog.getByRole('button', { name: 'Back' }).click();
    await page.getByRole('button', { name: 'Clear selection' }).click();
    await select(page, 'fra1', 'lon1');
    await page.getByRole('button', { name: 'Delete …' }).click();
    await dialog.getByText('deletes 2').waitFor();
    await dialog.getByRole('button', { name: 'Delete 2 sites' }).click();
    await page.getByRole('gridcell', { name: 'fra1', exact: true }).waitFor({ state: 'detached' });
    expect((await sites()).map(({ name }) => name)).toEqual(['ams1', 'ber1']);
  });

  test('are not changed if others have changed one since the dialog was opened', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    await select(page, 'ams1', 'ber1');
    await page.getByRole('button', { name: 'Change …' }).click();
    const [first] = await sites();
    await admin(console.app)
      .put(`/api/inventory/sites/${first?.id}`, { description: 'by another' })
      .expect(200);
    const dialog = page.getByRole('dialog', { name: 'Change 2 sites' });
    await dialog.getByRole('combobox', { name: 'Fields to change' }).click();
    await page.getByRole('option', { name: 'Description' }).click();
    await page.keyboard.press('Escape');
    await dialog.getByText('the version is now 2').waitFor();
    expect(await dialog.getByRole('button', { name: 'Change 2 sites' }).isDisabled()).toBe(true);
    await dialog.getByText('Others have changed 1 site since you chose them.').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Go on with them as they are now' }).click();
    // The fields are those that were chosen before. The description of the other one is empty already.
    await dialog.getByText('changes 1').waitFor();
    await dialog.getByRole('button', { name: 'Back' }).click();
  });

  test('are no longer selected when others have deleted them', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    const client = admin(console.app);
    const { id } = await client.post<Site>('/api/inventory/sites', { name: 'rio1' }).expect(201);
    await page.getByLabel('Select rio1').waitFor();
    await select(page, 'ams1', 'rio1');
    await client.delete(`/api/inventory/sites/${id}`).expect(204);
    await page.getByRole('group', { name: 'Selected' }).getByText('1 site selected').waitFor();
  });

  test('stay in a dialog with what was typed when others have deleted them', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    const client = admin(console.app);
    const { id } = await client.post<Site>('/api/inventory/sites', { name: 'rio2' }).expect(201);
    await page.getByLabel('Select rio2').waitFor();
    await select(page, 'rio2');
    await page.getByRole('button', { name: 'Change …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Change 1 site' });
    await dialog.getByRole('combobox', { name: 'Fields to change' }).click();
    await page.getByRole('option', { name: 'Description' }).click();
    await page.keyboard.press('Escape');
    await dialog.getByRole('textbox', { name: 'Description' }).fill('typed');
    await client.delete(`/api/inventory/sites/${id}`).expect(204);
    await page.getByLabel('Select rio2').waitFor({ state: 'detached' });
    expect(await dialog.getByRole('textbox', { name: 'Description' }).inputValue()).toBe('typed');
    await dialog.getByRole('button', { name: 'Back' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByRole('group', { name: 'Selected' }).count()).toBe(0);
  });

  test('are asked for as one request', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    await select(page, 'ams1', 'ber1');
    await page.getByRole('button', { name: 'Change …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Change 2 sites' });
    await dialog.getByRole('combobox', { name: 'Fields to change' }).click();
    await page.getByRole('option', { name: 'Description' }).click();
    await page.keyboard.press('Escape');
    await dialog.getByLabel('Description').fill('new hall');
    await dialog.getByText('changes 2').waitFor();
    await dialog.getByRole('button', { name: 'Ask for approval' }).click();
    const asking = page.getByRole('dialog', { name: 'Ask for approval' });
    await asking.getByRole('checkbox').first().check();
    await asking.getByRole('button', { name: 'Ask for approval' }).click();
    await page.getByRole('heading', { name: 'Change 2 sites' }).waitFor();
    await page.getByText('changes 2').waitFor();
  });

  test('are not offered to those who may change none', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/inventory/sites');
    await page.getByRole('link', { name: 'ams1' }).waitFor();
    expect(await page.getByLabel('Select ams1').count()).toBe(0);
  });
});
