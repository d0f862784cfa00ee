import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { DAY_MS } from '../../domain/shared/durations.ts';
import type { TokenRecord } from '../../api/auth/tokenSchemas.ts';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import {
  createUser,
  login,
  PASSWORD,
  seedSiteAndDevice,
  seedTenant,
  type Page as ListPage,
} from '../support/users.ts';

/** The text of a new token, which its dialog shows. */
const secretIn = (page: Page) => page.getByText(/^hft_[A-Za-z0-9_-]{40,}$/).textContent();

describePages('the account', (console) => {
  test('shows who one is, and which roles one has where', async () => {
    await seedTenant(console.app, 'red');
    await seedSiteAndDevice(console.app, { site: 'site_ams', tenant: 'red' });
    const user = await createUser(console.app, 'viewer', {
      roleId: 'operator',
      siteId: 'site_ams',
      tenantId: 'red',
    });
    const page = await console.open(user);
    await page.getByRole('button', { name: /^Account of/ }).click();
    await page.getByRole('menuitem', { name: 'Account and tokens' }).click();
    await page.getByRole('heading', { name: 'Account', exact: true }).waitFor();
    expect(await page.title()).toBe('Account · Holdfast');
    await page.getByText('Local account').waitFor();
    await page.getByRole('row', { name: 'Viewer everywhere' }).waitFor();
    await page.getByRole('row', { name: 'Operator site site_ams of red' }).waitFor();
    await page.getByText('No active tokens').waitFor();
    await page.getByText(/^\d+ permissions$/).click();
    await page.getByRole('row', { name: 'job:read everywhere' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('creates a token with limits, shows it once, rotates and revokes it', async () => {
    const user = await createUser(console.app, 'operator');
    const page = await console.open(user, '/account');
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('nightly export');
    await dialog.getByLabel('Only these', { exact: true }).check();
    await dialog.getByText('Choose at least one permission.').waitFor();
    // The owner may not approve, so a token of theirs is not offered it.
    expect(await dialog.getByLabel('workflow:approve').count()).toBe(0);
    await dialog.getByLabel('job:read').check();
    await dialog.getByLabel('Networks').fill('127.0.0.0/99');
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Create token' }).click();
    await dialog.getByText('is not a CIDR such as').first().waitFor();
    await dialog.getByLabel('Networks').press('Backspace');
    await dialog.getByLabel('Networks').fill('127.0.0.0/8');
    await dialog.getByRole('button', { name: 'Create token' }).click();
    const first = (await secretIn(page)) ?? '';
    await dialog.getByText('It is not shown again').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    const withFirst = console.app.client.as({ token: first });
    const { items } = await withFirst.get<ListPage<unknown>>('/api/jobs').expect(200);
    expect(items).toEqual([]);
    await withFirst.get('/api/inventory/sites').expect(403);
    await page.keyboard.press('Escape');
    await dialog.getByRole('button', { name: 'I have stored it' }).click();

    const row = page.getByRole('listitem').filter({ hasText: 'nightly export' });
    await row.getByText('job:read · from 127.0.0.0/8').waitFor();
    expect(await page.content()).not.toContain(first);
    await row.getByRole('button', { name: 'Rotate nightly export' }).click();
    const [rotation] = await Promise.all([
      page.waitForRequest('**/rotate'),
      dialog.getByRole('button', { name: 'Rotate' }).click(),
    ]);
    const headers = await rotation.allHeaders();
    expect([headers['if-match'], headers['idempotency-key']]).toEqual([
      '"1"',
      expect.stringMatching(/^[0-9a-f]{32}$/),
    ]);
    const second = (await secretIn(page)) ?? '';
    expect(second).not.toBe(first);
    await withFirst.get('/api/auth/token').expect(200);
    await dialog.getByRole('button', { name: 'I have stored it' }).click();
    await row.getByText('Former secret valid until').waitFor();
    await row.getByRole('button', { name: 'Rotate nightly export' }).click();
    await dialog.getByText('The secret before the present one is valid until').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Back' }).click();

    await row.getByRole('button', { name: 'Revoke nightly export' }).click();
    await dialog.getByText('This cannot be undone').waitFor();
    await dialog.getByRole('button', { name: 'Revoke token' }).click();
    await page.getByText('No active tokens').waitFor();
    await console.app.client.as({ token: second }).get('/api/auth/token').expect(401);
    await page.getByText('Revoked', { exact: true }).click();
    await page.waitForURL('**/account?tokens=revoked');
    await row.waitFor();
    expect(await row.getByRole('button').count()).toBe(0);
  });

  test('narrows a token, refuses to widen it, and warns before the expiry', async () => {
    const user = await createUser(console.app, 'operator');
    const { id } = await user.client
      .post<TokenRecord>('/api/auth/tokens', {
        name: 'ci',
        permissions: ['job:read', 'job:write'],
        expiresAt: new Date(Date.now() + 3 * DAY_MS).toISOString(),
      })
      .expect(201);
    const page = await console.open(user, '/account');
    await page.getByText('Programs that use these tokens will stop working.').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'Expires soon' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'Rename or narrow ci' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.getByLabel('inventory:read').count()).toBe(0);
    await dialog.getByLabel('job:write').uncheck();
    // A change that another page has made is not overwritten.
    await user.client.put(`/api/auth/tokens/${id}`, { name: 'pipeline' }).expect(200);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('row', { name: 'Name ci pipeline ci' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Back to the form' }).click();
    expect(await dialog.getByLabel('job:write').isChecked()).toBe(false);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByRole('button', { name: 'Save the marked values' }).click();
    await dialog.waitFor({ state: 'detached' });
    const both = await user.client.get<TokenRecord>(`/api/auth/tokens/${id}`).expect(200);
    expect(both).toMatchObject({ name: 'pipeline', permissions: ['job:read'] });
    await page.getByRole('button', { name: 'Rename or narrow pipeline' }).click();
    await dialog.getByLabel('Expires').click();
    await page.getByRole('option', { name: 'In 30 days' }).click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog
      .getByText(/would let the token|widen/i)
      .first()
      .waitFor();
    await dialog.getByLabel('Expires').click();
    await page.getByRole('option', { name: 'As it is' }).click();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    const token = await user.client.get<TokenRecord>(`/api/auth/tokens/${id}`).expect(200);
    expect(token).toMatchObject({ name: 'pipeline', permissions: ['job:read'] });
  });

  test('ends sessions, one and all others', async () => {
    const user = await createUser(console.app, 'viewer');
    const others = [
      await login(console.app, user.username),
      await login(console.app, user.username),
    ];
    const page = await console.open(user, '/account');
    const sessions = page.getByRole('list', { name: 'Sessions' });
    await sessions.getByRole('listitem').nth(3).waitFor();
    await sessions
      .getByRole('listitem')
      .filter({ hasText: 'This session' })
      .getByText(/^Chrome on/)
      .waitFor();
    await page
      .getByRole('button', { name: /^End the session/ })
      .first()
      .click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'End session' }).click();
    await sessions.getByRole('listitem').nth(3).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'End all others' }).click();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'End 2 sessions' }).click();
    await sessions.getByRole('listitem').nth(1).waitFor({ state: 'detached' });
    for (const { body } of others)
      await console.app.client.as({ token: body.accessToken }).get('/api/auth/session').expect(401);
  });

  test('changes the password by the rules of the service', async () => {
    const user = await createUser(console.app, 'viewer');
    const page = await console.open(user, '/account');
    await page.getByRole('button', { name: 'Change password' }).click();
    const dialog = page.getByRole('dialog');
    const fill = async (current: string, next: string) => {
      await dialog.getByLabel('Current password').fill(current);
      await dialog.getByLabel('New password', { exact: true }).fill(next);
      await dialog.getByLabel('New password again').fill(next);
      await dialog.getByRole('button', { name: 'Change the password' }).click();
    };
    await fill('not the password', 'another horse battery');
    await dialog.getByText('The current password is wrong.').waitFor();
    await fill(PASSWORD, 'short');
    await dialog.getByText('must have at least 12 characters').first().waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await fill(PASSWORD, 'another horse battery');
    await page.getByText('The password is changed.').waitFor();
    await login(console.app, user.username, 'another horse battery').expect(200);
  });
});
