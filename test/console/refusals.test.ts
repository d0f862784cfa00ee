import { beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems, OWN } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

/** A phone: forms are longer than it. */
const NARROW = { viewport: { width: 390, height: 700 } };

type Failure = { pointer: string; message: string };

/** Answers everything that a page sends to a path as the API does when it refuses it. */
async function refuse(page: Page, path: string, status: number, errors: readonly Failure[] = []) {
  const json = {
    ...{ code: 'invalid_request', title: 'Invalid request', detail: 'It is refused.' },
    errors: errors.map((error) => ({ ...error, in: 'body', code: 'invalid' })),
  };
  await page.route(path, (route) =>
    route.request().method() === 'GET'
      ? route.continue()
      : route.fulfill({ status, contentType: 'application/problem+json', json, ...OWN }),
  );
}

/** What has the focus, if it is in view as a whole. */
const FOCUSED = `(() => {
  const { activeElement } = document;
  const { top, bottom } = activeElement.getBoundingClientRect();
  const isInView = top >= 0 && bottom <= innerHeight;
  return isInView ? (activeElement.labels?.[0] ?? activeElement).innerText : 'not in view';
})()`;

const focused = (page: Page) => page.evaluate<string>(FOCUSED);

/** A form that is filled in, and the field to which an error at its pointer belongs. */
type Case = {
  of: string;
  open: (page: Page) => Promise<void>;
  path: string;
  submit: string;
  pointer?: string;
  field?: string;
};

const fill = (path: string, fields: Readonly<Record<string, string>>) => async (page: Page) => {
  await page.goto(path);
  for (const [label, value] of Object.entries(fields))
    await page.getByRole('textbox', { name: label, exact: true }).fill(value);
};

const CASES: readonly Case[] = [
  {
    of: 'a role',
    open: async (page) => {
      await fill('/access/new-role', { Name: 'refused' })(page);
      await page.getByRole('checkbox', { name: 'job:read', exact: true }).check();
    },
    ...{ path: '**/api/rbac/roles', submit: 'Create role', pointer: '/name', field: 'Name' },
  },
  {
    of: 'a schedule',
    open: async (page) => {
      await page.goto('/schedules/new?jobType=core.echo');
      await page.getByRole('textbox', { name: 'Name', exact: true }).fill('refused');
      await page.getByLabel('Expression').fill('0 5 * * *');
    },
    ...{ path: '**/api/schedules', submit: 'Create schedule', pointer: '/name', field: 'Name' },
  },
  {
    of: 'a job',
    open: (page) => page.goto('/jobs/new?type=core.echo').then(() => undefined),
    ...{ path: '**/api/jobs', submit: 'Start job' },
  },
  {
    of: 'a record of the inventory',
    open: fill('/inventory/sites/new', { Name: 'refused' }),
    ...{ path: '**/api/inventory/sites', submit: 'Create site', pointer: '/name', field: 'Name' },
  },
  {
    of: 'a view, in a dialog',
    open: async (page) => {
      await page.goto('/inventory/sites');
      await page.getByRole('button', { name: 'Views' }).click();
      await page.getByRole('menuitem', { name: 'Save as a new view' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('refused');
    },
    ...{ path: '**/api/views', submit: 'Save view', pointer: '/name', field: 'Name' },
  },
  {
    of: 'a token, in a dialog',
    open: async (page) => {
      await page.goto('/account');
      await page.getByRole('button', { name: 'New token' }).click();
      await page.getByRole('dialog').getByLabel('Name').fill('refused');
    },
    ...{ path: '**/api/auth/tokens', submit: 'Create token', pointer: '/name', field: 'Name' },
  },
];

describePages('what is refused', (console) => {
  let user: TestUser;

  beforeAll(async () => {
    user = await createUser(console.app, 'platform-admin');
  });

  const openPage = () => console.profileOf(user, NARROW).then((context) => context.newPage());

  describe.each(CASES)('for $of', ({ open, path, submit, pointer, field }) => {
    test('has the focus, in view, at the note or at the first refused field', async () => {
      const page = await openPage();
      await open(page);
      const button = page.getByRole('button', { name: submit, exact: true });
      const send = () => button.and(page.locator(':not([aria-disabled=true])')).press('Enter');
      await refuse(page, path, 400, [{ pointer: '/nowhere', message: 'must not be there' }]);
      await send();
      await page.getByText('must not be there').first().waitFor();
      expect(await focused(page)).toContain('Invalid request');
      await page.unroute(path);
      if (pointer === undefined) return;
      await refuse(page, path, 400, [{ pointer, message: 'must be another one' }]);
      await send();
      await page.getByText('must be another one').first().waitFor();
      expect(await focused(page)).toMatch(new RegExp(`^${field}`));
      await page.locator('[aria-invalid=true]').first().waitFor();
    });
  });

  test('for a new record shows the other record, marks the field and plans again', async () => {
    const page = await openPage();
    await fill('/inventory/device-roles/new', { Name: 'taken' })(page);
    await page.getByText('creates 1').waitFor();
    // Nothing is said of it before it is sent.
    await page.route('**/api/events/stream*', (route) => route.abort());
    const role = { name: 'taken' };
    const { id } = await admin(console.app)
      .post<WithId>('/api/inventory/device-roles', role)
      .expect(201);
    await page.getByRole('button', { name: 'Create device role' }).click();
    const note = page.getByRole('alert').filter({ hasText: 'Conflicts with another record' });
    await note.getByRole('link', { name: 'open the device role' }).waitFor();
    expect(await focused(page)).toContain('Conflicts with another record');
    await page
      .getByRole('textbox', { name: 'Name' })
      .and(page.locator('[aria-invalid=true]'))
      .waitFor();
    const panel = page.getByRole('region', { name: 'What changes' });
    await panel.getByRole('link', { name: 'open the device role' }).waitFor();
    expect(await page.getByText('creates 1').count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await note.getByRole('link', { name: 'open the device role' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Leave' }).click();
    await page.waitForURL(`**/${id}`);
  });

  test('for a new record shows every error, at its field or above the form', async () => {
    const page = await openPage();
    await fill('/inventory/sites/new', { Name: 'refused' })(page);
    await page.getByText('creates 1').waitFor();
    await refuse(page, '**/api/inventory/sites', 400, [
      { pointer: '/name', message: 'must be another one' },
      { pointer: '/nowhere', message: 'must not be there' },
    ]);
    await page.getByRole('button', { name: 'Create site' }).click();
    for (const text of ['must be another one', 'must not be there'])
      await page.getByText(text).first().waitFor();
  });
});
