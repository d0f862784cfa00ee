import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

/** Holds the requests of a page to a path until they are released. */
async function holdRequests(page: Page, path: string) {
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  const { promise: isHeld, resolve: held } = Promise.withResolvers<undefined>();
  await page.route(path, async (route) => {
    if (route.request().method() === 'GET') return route.continue();
    held(undefined);
    await released;
    return route.continue();
  });
  return { isHeld, release: () => release(undefined) };
}

/** A dialog that sends a request. */
type Case = {
  of: string;
  /** Makes what the page is about; returns its path. */
  page: (make: (path: string, record: object) => Promise<string>) => Promise<string>;
  open: (page: Page) => Promise<void>;
  sent: string;
  confirm: string;
  back?: string;
};

const clickButton = (name: string) => (page: Page) =>
  page.getByRole('main').getByRole('button', { name, exact: true }).click();

const CASES: readonly Case[] = [
  {
    of: 'a secret',
    page: async (make) => {
      const secret = { name: 'held', value: 'first', pools: ['lab'] };
      return `/secrets/${await make('/api/secrets', secret)}`;
    },
    open: async (page) => {
      await clickButton('Replace value')(page);
      await page.getByLabel('New value').fill('second');
    },
    ...{ sent: '**/api/secrets/*', confirm: 'Replace value' },
  },
  {
    of: 'a backfill',
    page: async (make) => {
      const schedule = { name: 'held', cronExpression: '*/5 * * * *', jobType: 'core.echo' };
      return `/schedules/${await make('/api/schedules', schedule)}`;
    },
    open: async (page) => {
      await clickButton('Backfill')(page);
      await page.getByRole('button', { name: /^Run \d/ }).waitFor();
    },
    ...{ sent: '**/backfill', confirm: 'Run' },
  },
  {
    of: 'an allocation',
    page: async (make) => {
      await make('/api/inventory/prefixes', { cidr: '10.99.0.0/24' });
      return '/inventory/prefixes/space?at=10.99.0.0/24';
    },
    open: clickButton('Allocate …'),
    ...{ sent: '**/allocate', confirm: 'Allocate', back: 'Cancel' },
  },
  {
    of: 'a request for an approval',
    page: () => Promise.resolve('/jobs/new?type=core.echo'),
    open: async (page) => {
      await clickButton('Ask for approval instead')(page);
      await page.getByLabel('Everyone with the role Approver').check();
    },
    ...{ sent: '**/api/workflows', confirm: 'Ask for approval' },
  },
  {
    of: 'a view',
    page: () => Promise.resolve('/inventory/sites'),
    open: async (page) => {
      await page.getByRole('button', { name: 'Views' }).click();
      await page.getByRole('menuitem', { name: 'Save as a new view' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('held');
    },
    ...{ sent: '**/api/views', confirm: 'Save view' },
  },
  {
    of: 'a token',
    page: () => Promise.resolve('/account'),
    open: async (page) => {
      await clickButton('New token')(page);
      await page.getByRole('dialog').getByLabel('Name').fill('held');
    },
    ...{ sent: '**/api/auth/tokens', confirm: 'Create token' },
  },
];

describePages('a dialog whose request runs', (console) => {
  let user: TestUser;

  beforeAll(async () => {
    user = await createUser(console.app, 'platform-admin');
  });

  const make = async (path: string, record: object): Promise<string> =>
    (await admin(console.app).post<WithId>(path, record).expect(201)).id;

  describe.each(CASES)('for $of', (each) => {
    test('stays open, and is not closed by a click outside before', async () => {
      const page = await console.open(user, await each.page(make));
      await each.open(page);
      const dialog = page.getByRole('dialog');
      await page.mouse.click(5, 5);
      const { isHeld, release } = await holdRequests(page, each.sent);
      await dialog.getByRole('button', { name: each.confirm }).click();
      await isHeld;
      await dialog.locator('button.mantine-Modal-close[disabled]').waitFor();
      await page.keyboard.press('Escape');
      await page.mouse.click(5, 5);
      const back = dialog.getByRole('button', { name: each.back ?? 'Back' });
      expect(await back.isDisabled()).toBe(true);
      release();
      await back.waitFor({ state: 'detached' });
    });
  });
});

describePages('a dialog that shows an answer', (console) => {
  test('waits for it: a test of a webhook is not closed before', async () => {
    const user = await createUser(console.app, 'platform-admin');
    const webhook = { endpointUrl: 'http://127.0.0.1:1/hook', eventTypes: ['job.failed'] };
    const { id } = await user.client.post<WithId>('/api/webhooks', webhook).expect(201);
    const page = await console.open(user, `/webhooks/${id}`);
    await clickButton('Test')(page);
    const dialog = page.getByRole('dialog');
    const { isHeld, release } = await holdRequests(page, '**/test');
    await dialog.getByRole('button', { name: 'Send the test message' }).click();
    await isHeld;
    await dialog.locator('button.mantine-Modal-close[disabled]').waitFor();
    await page.keyboard.press('Escape');
    expect(await dialog.getByRole('button', { name: 'Close' }).last().isDisabled()).toBe(true);
    release();
    await dialog.getByText('The endpoint does not accept it').waitFor();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
  });
});

describePages('what is shown once', (console) => {
  const leaving = (page: Page) => page.getByRole('dialog', { name: 'Leave this page?' });

  test('is not lost by leaving the page, while it is made and while it is shown', async () => {
    const user = await createUser(console.app, 'platform-admin');
    const page = await console.open(user, '/jobs');
    await page.getByRole('button', { name: /^Account of/ }).click();
    await page.getByRole('menuitem', { name: 'Account and tokens' }).click();
    await page.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog', { name: 'New API token' });
    await dialog.getByLabel('Name').fill('kept');
    const { isHeld, release } = await holdRequests(page, '**/api/auth/tokens');
    await dialog.getByRole('button', { name: 'Create token' }).click();
    await isHeld;
    await dialog.locator('button.mantine-Modal-close[disabled]').waitFor();
    await page.goBack();
    await leaving(page).getByRole('button', { name: 'Stay' }).click();
    release();
    const secret = page.locator('[data-secret]');
    await secret.waitFor();
    await page.goBack();
    await leaving(page).getByText('is not shown again').waitFor();
    await leaving(page).getByRole('button', { name: 'Stay' }).click();
    expect(await secret.isVisible()).toBe(true);
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.goBack();
    await page.waitForURL('**/jobs');
  });

  test('of a user is not lost either, and its dialog ends with its button', async () => {
    const user = await createUser(console.app, 'platform-admin');
    const other = await createUser(console.app, 'viewer');
    const page = await console.open(user, '/access/users');
    await page.getByRole('link', { name: other.username }).click();
    await page.getByRole('button', { name: 'Reset password' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reset password' }).click();
    await page.locator('[data-secret]').waitFor();
    await page.goBack();
    await leaving(page).getByRole('button', { name: 'Stay' }).click();
    await page.getByRole('button', { name: 'I have stored it' }).click();
    await page.goBack();
    await page.waitForURL('**/access/users');
  });
});
