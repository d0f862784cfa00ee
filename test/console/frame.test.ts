import { describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { HOUR_MS } from '../../domain/shared/durations.ts';
import { describePages, signIn } from '../support/console/console.ts';
import { accessibilityProblems, OWN } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { admin, createUser, seedTenant } from '../support/users.ts';

type Record = { id: string };

/** Makes the clock of a page wrong. */
const shiftClock = (byMs: number): string => `{
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...parts) {
      if (parts.length === 0) super(Real.now() + ${byMs});
      else super(...parts);
    }
    static now() {
      return Real.now() + ${byMs};
    }
  };
}`;

describePages('the frame', (console) => {
  const createSite = (name: string) =>
    admin(console.app).post<Record>('/api/inventory/sites', { name }).expect(201);

  const endSessions = async (userId: string) => {
    for (const enabled of [false, true])
      await admin(console.app).put(`/api/users/${userId}`, { enabled }).expect(200);
  };

  test('finds a record, and opens it by keyboard', async () => {
    await createSite('ams-palette');
    const page = await console.open(await createUser(console.app, 'viewer'));
    await page.keyboard.press('/');
    const field = page.getByRole('combobox', { name: 'Search' });
    await field.fill('ams-pal');
    await page.getByRole('option', { name: /site ams-palette/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await field.press('Enter');
    await page.getByRole('heading', { name: 'ams-palette' }).waitFor();
    expect(await page.title()).toBe('ams-palette · Holdfast');
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('opens a page by its name, and says when nothing is found', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/nowhere');
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Search' });
    await field.fill('there is nothing like this');
    await page.getByText('Nothing found among what you may read.').waitFor();
    await field.fill('hom');
    await page.getByRole('option', { name: /page Home/ }).waitFor();
    await field.press('Enter');
    await page.getByRole('heading', { name: 'Home' }).waitFor();
  });

  test('leads from an id to its record, and says if there is none to read', async () => {
    const { id } = await createSite('ams-by-id');
    const viewer = await createUser(console.app, 'viewer');
    const page = await console.open(viewer, `/id/${id}`);
    await page.getByRole('heading', { name: 'ams-by-id' }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/inventory/sites/${id}`);
    // As it may be pasted.
    await page.goto(`/id/%20${id.toUpperCase()}`);
    await page.waitForURL(`**/inventory/sites/${id}`);
    await page.goto('/id/sit_01jd0cmxk5e5v8kyzwq0q8s3rt');
    await page.getByText('Not found').first().waitFor();
    await page.goto('/id/out_01jd0cmxk5e5v8kyzwq0q8s3rt');
    await page.getByText('No record with this id').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('runs nothing in an answer of the API, and only its own scripts in the reference', async () => {
    const policyOf = async (path: string) =>
      (await fetch(console.base + path)).headers.get('content-security-policy');
    expect(await policyOf('/api/console')).toBe("default-src 'none';frame-ancestors 'none'");
    expect(await policyOf('/api/docs')).toContain("script-src 'self';");
    const page = await (await console.profile()).newPage();
    // The whole API takes long to draw.
    const tiny = { openapi: '3.1.0', info: { title: 'Tiny API', version: '1' }, paths: {} };
    await page.route('**/api/openapi.json', (route) => route.fulfill({ json: tiny }));
    await page.goto('/api/docs');
    await page.getByText('Tiny API').waitFor();
  });

  test('has a heading on a page of the inventory that cannot be read', async () => {
    const context = await console.profileOf(await createUser(console.app, 'viewer'));
    const page = await context.newPage();
    const json = { code: 'internal_error', title: 'Internal error', detail: 'It broke.' };
    await page.route('**/api/inventory/resources', (route) =>
      route.fulfill({ status: 500, contentType: 'application/problem+json', json, ...OWN }),
    );
    await page.goto('/inventory/sites');
    await page.getByRole('heading', { level: 1, name: 'Sites' }).waitFor();
    await page.getByText('It broke.').waitFor();
  });

  test('has keys that do nothing while one types, or when they are turned off', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/nowhere');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Search' });
    await field.pressSequentially('g h?');
    expect(await field.inputValue()).toBe('g h?');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page.getByRole('heading', { name: 'Home' }).waitFor();
  });

  test('has no single keys when they are turned off, in lists neither', async () => {
    await admin(console.app).post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
    const page = await console.open(await createUser(console.app, 'viewer'), '/jobs');
    const firstRow = page.getByRole('grid').locator('[aria-rowindex="2"]');
    await firstRow.waitFor();
    // After the listeners of the console: whether one of them has used the key.
    await page.evaluate(
      'addEventListener("keydown", (event) => (globalThis.isUsed = event.defaultPrevented))',
    );
    const isUsed = async (key: string) => {
      await page.evaluate('document.activeElement.blur()');
      await page.keyboard.press(key);
      return page.evaluate<boolean>('isUsed');
    };
    expect(await isUsed('j')).toBe(true);
    await page.getByRole('button', { name: /^Account of/ }).click();
    await page.getByRole('menuitemcheckbox', { name: 'Single keys' }).click();
    await page.keyboard.press('Escape');
    await page.getByRole('menu').waitFor({ state: 'detached' });
    for (const key of ['j', 'e', '/', '?']) expect([key, await isUsed(key)]).toEqual([key, false]);
    expect(await isUsed('Control+k')).toBe(true);
  });

  test('moves the focus to a page that is opened, and the first link skips to the content', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/nowhere');
    await page.keyboard.press('Tab');
    await expect(page.locator(':focus').textContent()).resolves.toBe('Skip to the content');
    await page.keyboard.press('Enter');
    await expect(page.locator(':focus').getAttribute('id')).resolves.toBe('main');
    await page.getByRole('link', { name: 'Home' }).first().click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await expect(page.locator(':focus').getAttribute('id')).resolves.toBe('main');
  });

  test('returns the focus to where it was when a dialog is closed', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/nowhere');
    const link = page.getByRole('main').getByRole('link', { name: 'Home' });
    for (const [key, name] of [
      ['Control+k', 'Search'],
      ['?', 'Keys'],
    ] as const) {
      await link.focus();
      await page.keyboard.press(key);
      const dialog = page.getByRole('dialog', { name });
      await dialog.locator(':focus').waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
      await link.and(page.locator(':focus')).waitFor();
    }
  });

  test('switches the tenant of the session, in all tabs', async () => {
    await seedTenant(console.app, 'red');
    await seedTenant(console.app, 'blue');
    const user = await createUser(
      console.app,
      { roleId: 'operator', tenantId: 'red' },
      { roleId: 'viewer', tenantId: 'blue' },
    );
    const page = await console.open(user);
    const other = await page.context().newPage();
    await other.goto('/');
    // The list of tenants is a button until it is opened for the first time.
    const list = (tab: Page) => tab.getByRole('combobox', { name: /^Tenant/ });
    const button = (tab: Page) => tab.getByRole('button', { name: /^Tenant/ });
    const choice = (tab: Page) => list(tab).or(button(tab));
    const tenantOf = async (tab: Page) =>
      (await list(tab).count()) > 0 ? list(tab).inputValue() : button(tab).textContent();
    await choice(page).click();
    const red = page.getByRole('option', { name: 'red' });
    await red.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await red.click();
    for (const tab of [page, other])
      await eventually(
        () => tenantOf(tab),
        (tenant) => tenant === 'red',
      );
    // A form keeps the tenant in which it was opened, also if another tab switches.
    const formOf = async (tab: Page) => {
      await tab.goto('/jobs/new?type=core.echo');
      await tab.getByText('The job belongs to the tenant red.').waitFor();
    };
    const tenantOfJob = async (tab: Page) => {
      await tab.waitForURL('**/jobs/job_*');
      const path = `/api/jobs/${tab.url().split('/').at(-1)}`;
      return (await admin(console.app).get<{ tenantId: string }>(path).expect(200)).tenantId;
    };
    await formOf(other);
    await choice(page).click();
    await page.getByRole('option', { name: 'blue' }).click();
    await other.getByText('You have switched to the tenant blue').waitFor();
    expect(await accessibilityProblems(other)).toEqual([]);
    await other.getByRole('button', { name: 'Start job' }).click();
    expect(await tenantOfJob(other)).toBe('red');
    await choice(page).click();
    await page.getByRole('option', { name: 'red' }).click();
    await eventually(
      () => tenantOf(other),
      (tenant) => tenant === 'red',
    );
    // A new login has the tenant of the user; what is sent after it belongs to the tenant of the page.
    await formOf(page);
    await endSessions(user.id);
    await page.getByRole('dialog', { name: 'Your session has expired' }).waitFor();
    await page.evaluate('document.querySelector("main form").requestSubmit()');
    await signIn(page, user.username);
    expect(await tenantOfJob(page)).toBe('red');
    // The new session has the tenant, too.
    await page.reload();
    await eventually(
      () => tenantOf(page),
      (tenant) => tenant === 'red',
    );
  });

  test('keeps the colours that were chosen, before anything is painted', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/', {
      colorScheme: 'light',
    });
    await page.getByRole('button', { name: 'Dark colours' }).click();
    await page.getByRole('button', { name: 'Light colours' }).waitFor();
    await page.goto('/', { waitUntil: 'commit' });
    await page.locator('html[data-mantine-color-scheme=dark]').waitFor();
  });

  test('has the times of the server in a browser whose clock is hours wrong', async () => {
    const operator = await createUser(console.app, 'operator');
    await admin(console.app).post('/api/jobs', { type: 'core.echo', payload: {} }).expect(201);
    await operator.client
      .post('/api/auth/tokens', {
        name: 'short',
        expiresAt: new Date(Date.now() + 2.5 * HOUR_MS).toISOString(),
      })
      .expect(201);
    for (const hours of [-3, 3]) {
      const context = await console.profileOf(operator);
      await context.addInitScript(shiftClock(hours * HOUR_MS));
      const page = await context.newPage();
      await page.goto('/account');
      await page.getByText('Expires in 2 h', { exact: true }).waitFor();
      await page.goto('/jobs?createdAt=1h');
      await page.getByRole('grid').getByText('core.echo').first().waitFor();
    }
  });

  describe('on a narrow screen', () => {
    test('has the pages in a drawer, and does not scroll sideways', async () => {
      const page = await console.open(await createUser(console.app, 'viewer'), '/nowhere', {
        viewport: { width: 360, height: 700 },
      });
      const width = await page.evaluate('document.documentElement.scrollWidth');
      expect(width).toBe(360);
      await page.getByRole('button', { name: 'Pages' }).click();
      const drawer = page.getByRole('dialog', { name: 'Pages' });
      await drawer.waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await drawer.getByRole('link', { name: 'Home' }).click();
      await drawer.waitFor({ state: 'detached' });
      await page.getByRole('heading', { name: 'Home' }).waitFor();
    });
  });

  test('of an expired session stays as it is below a sign-in', async () => {
    const user = await createUser(console.app, 'viewer');
    const page = await console.open(user);
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Search' });
    await field.fill('typed with care');
    await page.getByText('Nothing found').waitFor();
    await endSessions(user.id);
    await field.fill('typed with more care');
    const dialog = page.getByRole('dialog', { name: 'Your session has expired' });
    await dialog.waitFor();
    expect(await dialog.getByLabel('User name').inputValue()).toBe(user.username);
    expect(await accessibilityProblems(page)).toEqual([]);
    // No key opens another dialog above it.
    await page.keyboard.press('Control+k');
    expect(await page.getByRole('combobox', { name: 'Search' }).count()).toBe(1);
    // The clock of the machine is set back: the new token seems to be older than the last one.
    await page.evaluate('{ const now = Date.now; Date.now = () => now() - 7_200_000; }');
    // What the page was about to send is sent.
    const sent = page.waitForResponse(
      (response) => response.url().includes('more') && response.status() === 200,
    );
    await Promise.all([sent, signIn(page, user.username)]);
    await dialog.waitFor({ state: 'detached' });
    expect(await field.inputValue()).toBe('typed with more care');
    await field.and(page.locator(':focus')).waitFor();
  });

  test('of an expired session stays below the change of a one-time password', async () => {
    const user = await createUser(console.app, 'operator');
    const page = await console.open(user, '/jobs/new?type=core.echo');
    const payload = page.getByRole('main').locator('textarea').first();
    await payload.fill('{"message": "typed"}');
    const { oneTimePassword } = await admin(console.app)
      .post<{ oneTimePassword: string }>(`/api/users/${user.id}/reset-password`, {})
      .expect(200);
    await page.getByRole('button', { name: 'Start job' }).click();
    await page.getByRole('dialog', { name: 'Your session has expired' }).waitFor();
    await signIn(page, user.username, oneTimePassword);
    await page.getByRole('heading', { name: 'Choose a password' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    for (const label of ['New password', 'New password again'])
      await page.getByLabel(label, { exact: true }).fill('another horse battery');
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByRole('heading', { name: 'New job' }).waitFor();
    expect(JSON.parse(await payload.inputValue())).toEqual({ message: 'typed' });
  });

  test('of an expired session stays, with what is typed, if the sign-in cannot be loaded', async () => {
    const user = await createUser(console.app, 'operator');
    const context = await console.profileOf(user);
    const page = await context.newPage();
    let loads = 0;
    page.on('load', () => (loads += 1));
    await page.route('**/assets/SignInOverlay-*.js', (route) => route.fulfill({ status: 404 }));
    console.expectProblem(/SignInOverlay|could not be loaded/);
    // After an upgrade, the server has another console.
    await page.route(`${console.base}/`, async (route) => {
      if (route.request().resourceType() !== 'fetch') return route.continue();
      return route.fulfill({ contentType: 'text/html', body: 'another console' });
    });
    await page.goto('/inventory/sites/new');
    const name = page.getByRole('textbox', { name: /^Name/ });
    await name.fill('typed with care');
    await endSessions(user.id);
    await page.getByLabel('Description').fill('asks for the plan');
    const bar = page.getByRole('alert').filter({ hasText: 'Your session has expired' });
    await bar.waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await bar.getByRole('button', { name: 'Try again' }).click();
    await bar.waitFor();
    const [other] = await Promise.all([
      context.waitForEvent('page'),
      bar.getByRole('link', { name: 'Sign in on another tab' }).click(),
    ]);
    await signIn(other, user.username);
    await bar.waitFor({ state: 'detached' });
    expect(await name.inputValue()).toBe('typed with care');
    expect(loads).toBe(1);
  });

  test('has its sign-in before the session expires', async () => {
    const user = await createUser(console.app, 'viewer');
    const context = await console.profileOf(user);
    const page = await context.newPage();
    await Promise.all([
      page.waitForResponse((response) => /SignInOverlay-.*\.js/.test(response.url())),
      page.goto('/'),
    ]);
    await page.route('**/assets/**', (route) => route.fulfill({ status: 404 }));
    await endSessions(user.id);
    await page.getByRole('link', { name: 'Home' }).click();
    await page.evaluate('window.dispatchEvent(new Event("focus"))');
    await page.getByRole('dialog', { name: 'Your session has expired' }).waitFor();
  });

  test('opens a dialog again that could not be loaded before', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'));
    const part = '**/assets/KeysDialog-*.js';
    await page.route(part, (route) => route.fulfill({ status: 404 }));
    console.expectProblem(/KeysDialog|could not be loaded/);
    await page.getByRole('heading', { name: 'Home' }).click();
    await page.keyboard.press('?');
    await page.getByText('A part of the console could not be loaded').first().waitFor();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.unroute(part);
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  });

  describe('that cannot load a part of the console', () => {
    const PART = '**/assets/JobsPage-*.js';
    const isMissing = /JobsPage|A part of the console could not be loaded/;

    const openWithoutPart = async () => {
      const page = await console.open(await createUser(console.app, 'viewer'), '/nowhere');
      let loads = 0;
      page.on('load', () => (loads += 1));
      await page.route(PART, (route) => route.fulfill({ status: 404 }));
      console.expectProblem(isMissing);
      return { page, loads: () => loads };
    };
    const failed = (page: Page) =>
      page.getByRole('heading', { name: 'This page cannot be shown' }).waitFor();

    test('says so, stays, and tries again', async () => {
      const { page, loads } = await openWithoutPart();
      await page.getByRole('link', { name: 'Jobs' }).first().click();
      await failed(page);
      expect(loads()).toBe(0);
      await page.unroute(PART);
      await page.getByRole('button', { name: 'Reload the page' }).click();
      await page.getByRole('heading', { name: 'Jobs' }).waitFor();
    });

    test('reloads once if the server has another console', async () => {
      const { page, loads } = await openWithoutPart();
      await page.route(`${console.base}/`, async (route) => {
        if (route.request().resourceType() !== 'fetch') return route.continue();
        return route.fulfill({ contentType: 'text/html', body: 'another console' });
      });
      await page.getByRole('link', { name: 'Jobs' }).first().click();
      await eventually(loads, (count) => count === 1);
      const compared = page.waitForResponse(
        (response) => response.request().resourceType() === 'fetch' && response.url().endsWith('/'),
      );
      await Promise.all([compared, failed(page)]);
      expect(loads()).toBe(1);
    });
  });
});
