import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describeConsole } from '../support/console/console.ts';
import { createUser, type TestUser } from '../support/users.ts';

type Versioned = { id: string; version: number };

/** A dialog about a record that another user changes while it is open. */
type Case = {
  of: string;
  api: string;
  page: string;
  record: object;
  /** What the other user does. */
  change: object;
  /** What the page shows then. */
  shown: string;
  /** Opens the dialog. */
  open: string;
  fill?: (page: Page) => Promise<void>;
  confirm: string;
  /** What the other user did is what the dialog asks about: there is nothing to confirm again. */
  isDone?: true;
};

const SCHEDULE = { name: 'hello', cronExpression: '*/5 * * * *', jobType: 'core.echo' };
const ENDPOINT = { endpointUrl: 'https://hooks.invalid/', eventTypes: ['job.failed'] };

const CASES: readonly Case[] = [
  {
    of: 'disabling a webhook',
    ...{ api: '/api/webhooks', page: '/webhooks', record: ENDPOINT },
    ...{ change: { enabled: false }, shown: 'Disabled' },
    ...{ open: 'Disable', confirm: 'Disable webhook', isDone: true },
  },
  {
    of: 'disabling a webhook that others describe',
    ...{ api: '/api/webhooks', page: '/webhooks', record: ENDPOINT },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    ...{ open: 'Disable', confirm: 'Disable webhook' },
  },
  {
    of: 'rotating the secret of a webhook',
    ...{ api: '/api/webhooks', page: '/webhooks', record: ENDPOINT },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    ...{ open: 'Rotate secret', confirm: 'Rotate secret' },
  },
  {
    of: 'disabling a user',
    api: '/api/users',
    page: '/access/users',
    record: { username: 'opened', password: 'correct horse battery', mustChangePassword: false },
    ...{ change: { enabled: false }, shown: 'Disabled' },
    ...{ open: 'Disable', confirm: 'Disable user', isDone: true },
  },
  {
    of: 'replacing the value of a secret',
    api: '/api/secrets',
    page: '/secrets',
    record: { name: 'opened', value: 'first', pools: ['lab'] },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    open: 'Replace value',
    fill: (page) => page.getByLabel('New value').fill('second'),
    confirm: 'Replace value',
  },
  {
    of: 'deleting a webhook',
    ...{ api: '/api/webhooks', page: '/webhooks', record: ENDPOINT },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    ...{ open: 'Delete', confirm: 'Delete webhook' },
  },
  {
    of: 'deleting a secret',
    ...{ api: '/api/secrets', page: '/secrets' },
    record: { name: 'unwanted', value: 'first', pools: ['lab'] },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    open: 'Delete',
    fill: (page) => page.getByRole('dialog').getByRole('textbox').fill('unwanted'),
    confirm: 'Delete secret',
  },
  {
    of: 'deleting a schedule',
    ...{ api: '/api/schedules', page: '/schedules', record: { ...SCHEDULE, name: 'unwanted' } },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    ...{ open: 'Delete', confirm: 'Delete schedule' },
  },
  {
    of: 'deleting a record of the inventory',
    ...{ api: '/api/inventory/sites', page: '/inventory/sites', record: { name: 'unwanted' } },
    ...{ change: { description: 'Another one' }, shown: 'Another one' },
    open: 'Delete',
    // What it does is planned before.
    fill: (page) => page.locator('[aria-busy="false"]').getByText('Delete').first().waitFor(),
    confirm: 'Delete site',
  },
];

describeConsole('a dialog that is open', (console) => {
  let user: TestUser;

  beforeAll(async () => {
    user = await createUser(console.app, 'platform-admin');
  });

  const root = () =>
    console.app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });

  describe.each(CASES)('for $of', (each) => {
    test('does not change what one has not seen, and goes on with it after that was said', async () => {
      const client = root();
      const { id } = await client.post<Versioned>(each.api, each.record).expect(201);
      const page = await console.open(user, `${each.page}/${id}`);
      await page.getByRole('main').getByRole('button', { name: each.open, exact: true }).click();
      await each.fill?.(page);
      const { version } = await client.put<Versioned>(`${each.api}/${id}`, each.change).expect(200);
      // The page behind the dialog is read again.
      await page.evaluate('window.dispatchEvent(new Event("focus"))');
      await page.locator('main').getByText(each.shown).first().waitFor({ state: 'attached' });
      const dialog = page.getByRole('dialog');
      const confirm = dialog.getByRole('button', { name: each.confirm, exact: true });
      await confirm.click();
      await dialog.getByRole('alert').getByText('version_conflict').waitFor();
      expect((await client.get<Versioned>(`${each.api}/${id}`).expect(200)).version).toBe(version);
      if (each.isDone) return;
      await confirm.click();
      await confirm.waitFor({ state: 'detached' });
    });
  });

  test('for rotating a token of a list goes on with the token as it is after that was said', async () => {
    const { client } = user;
    const token = { name: 'first', permissions: ['job:read'] };
    const { id } = await client.post<Versioned>('/api/auth/tokens', token).expect(201);
    const page = await console.open(user, '/account');
    await page.getByRole('button', { name: 'Rotate first' }).click();
    await client.put(`/api/auth/tokens/${id}`, { name: 'second' }).expect(200);
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await dialog.getByRole('alert').getByText('version_conflict').waitFor();
    await page.locator('main').getByText('second').first().waitFor({ state: 'attached' });
    await dialog.getByRole('button', { name: 'Rotate' }).click();
    await page.locator('[data-secret]').waitFor();
  });

  test('for pausing a schedule does not resume one that others have paused', async () => {
    const client = root();
    const { id } = await client.post<Versioned>('/api/schedules', SCHEDULE).expect(201);
    const page = await console.open(user, `/schedules/${id}`);
    await page.getByRole('main').getByRole('button', { name: 'Pause', exact: true }).click();
    await client.post(`/api/schedules/${id}/pause`, { reason: 'Broken' }).expect(200);
    await page.locator('main').getByText('Broken').first().waitFor({ state: 'attached' });
    await page.getByRole('dialog').getByRole('button', { name: 'Pause schedule' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    const now = await client.get<{ enabled: boolean }>(`/api/schedules/${id}`).expect(200);
    expect(now.enabled).toBe(false);
  });
});
