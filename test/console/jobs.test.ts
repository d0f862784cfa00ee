import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { describeConsole } from '../support/console/console.ts';
import { eventually } from '../support/eventually.ts';
import { accessibilityProblems, OWN } from '../support/console/page.ts';
import { createUser, PASSWORD } from '../support/users.ts';

const status = (page: Page, name: string) =>
  page.locator('header').getByText(name, { exact: true }).first().waitFor();

/** The start of a log, as a connection that breaks after its first line has it. */
const CUT_STREAM = `event: job
data: {"status":"running","attempt":1,"progress":null}

id: 1
event: log
data: {"line":1,"attempt":1,"level":"info","message":"Attempt 1 started","data":null,"at":"2026-11-21T12:00:00.000Z"}

`;

/** Sends the form of the page, when what has arrived is drawn. */
const SEND_AGAIN = `new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
  .then(() => document.querySelector('main form').requestSubmit())`;

/** Sets the clock of a page to the next day, and shows the page again. */
const NEXT_DAY = `{
  const Today = Date;
  const ahead = 86_400_000;
  globalThis.Date = class extends Today {
    constructor(...at) {
      super(...(at.length === 0 ? [Today.now() + ahead] : at));
    }
    static now() {
      return Today.now() + ahead;
    }
  };
  document.dispatchEvent(new Event('visibilitychange'));
}`;

describeConsole('jobs', (console) => {
  test('are created once by a double click, and followed to their end', async () => {
    const operator = await createUser(console.app, 'operator');
    const page = await console.open(operator, '/jobs');
    await page.getByText('No jobs yet').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('link', { name: 'New job' }).first().click();
    await page.getByRole('button', { name: /core\.sleep/ }).click();
    await page.getByRole('button', { name: 'Start job' }).click();
    await page.getByText('Invalid request').waitFor();
    // What is wrong is said at the field.
    expect(await page.getByLabel('Duration (ms)').getAttribute('aria-invalid')).toBe('true');
    expect(await accessibilityProblems(page)).toEqual([]);

    // Text that is no number is not sent as the number that was there before it.
    const start = page.getByRole('button', { name: 'Start job' });
    await page.getByLabel('Duration (ms)').fill('12');
    await page.getByLabel('Duration (ms)').fill('12x');
    await page.getByLabel('Duration (ms)').press('Enter');
    const ask = page.getByRole('button', { name: 'Ask for approval instead' });
    for (const button of [start, ask])
      expect(await button.getAttribute('aria-disabled')).toBe('true');

    await page.getByLabel('Duration (ms)').fill('1200');
    // The page of the job is loaded slowly: the form is still there, and must not be sent again.
    const loaded = Promise.withResolvers<undefined>();
    await page.route('**/assets/JobPage-*.js', (route) =>
      loaded.promise.then(() => route.continue()),
    );
    const leaves = page.waitForRequest('**/assets/JobPage-*.js');
    await start.dblclick();
    await leaves;
    await page.evaluate(SEND_AGAIN);
    loaded.resolve(undefined);
    await page.waitForURL('**/jobs/job_*');
    await page.getByText('Attempt 1 started').waitFor();
    await status(page, 'Succeeded');
    await page.getByText('"sleptMs"').waitFor();
    expect(await page.title()).toBe('Job core.sleep succeeded · Holdfast');
    expect(await accessibilityProblems(page)).toEqual([]);
    const { items } = await operator.client
      .get<{ items: JobRecord[] }>('/api/jobs?internal=false')
      .expect(200);
    expect(items).toHaveLength(1);
  });

  test('show their progress, and that another person has cancelled them', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await operator.client
      .post<JobRecord>('/api/jobs', { type: 'core.sleep', payload: { durationMs: 120_000 } })
      .expect(201);
    const page = await console.open(operator, `/jobs/${id}`);
    await page.getByRole('progressbar').waitFor();
    const other = await console.open(await createUser(console.app, 'operator'), `/jobs/${id}`);
    await other.getByRole('button', { name: 'Cancel job' }).click();
    await other.getByRole('dialog').getByRole('button', { name: 'Cancel job' }).click();
    await Promise.all([status(page, 'Cancelled'), status(other, 'Cancelled')]);
    // The dialog is closed, and what can be done now is offered.
    await page.getByRole('button', { name: 'Retry' }).waitFor();
    await other.getByRole('link', { name: 'Copy as new' }).click();
    await other.getByLabel('Duration (ms)').waitFor();
    expect(await other.getByLabel('Duration (ms)').inputValue()).toMatch(/120.?000/);
  });

  test('say first why they failed, with each attempt, and offer a viewer nothing to change', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await operator.client
      .post<JobRecord>(
        '/api/jobs',
        {
          type: 'core.sleep',
          payload: { durationMs: 1, failAttempts: 2 },
          retryPolicy: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
        },
        { prefer: 'wait=20' },
      )
      .expect(201);
    const viewer = await createUser(console.app, 'viewer');
    const page = await console.open(viewer, '/jobs?status=failed');
    await page.getByRole('link', { name: 'core.sleep' }).click();
    await page.getByRole('alert').getByText('Asked to fail 2 attempts').waitFor();
    const attempts = page.getByRole('region', { name: 'Attempts' }).getByRole('listitem');
    expect(await attempts.allTextContents()).toEqual([
      expect.stringMatching(/^Attempt 1.*sleep_failed/),
      expect.stringMatching(/^Attempt 2.*no further attempt/),
    ]);
    expect(page.url()).toContain(id);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await page.getByRole('button', { name: /Retry|Cancel/ }).count()).toBe(0);
    expect(await page.getByRole('link', { name: 'Copy as new' }).count()).toBe(0);
    // The page is still open on the next day: times have a date then.
    await page.evaluate(NEXT_DAY);
    await page
      .getByRole('complementary')
      .locator('time')
      .filter({ hasText: /^\d+ [A-Z]/ })
      .first()
      .waitFor();
  });

  test('have a log that goes on after a cut connection, with each line once', async () => {
    const operator = await createUser(console.app, 'operator');
    const { id } = await operator.client
      .post<JobRecord>('/api/jobs', { type: 'core.sleep', payload: { durationMs: 600_000 } })
      .expect(201);
    const context = await console.profileOf(operator);
    const lastIds: (string | undefined)[] = [];
    await context.route(/logs\?follow/, (route) => {
      lastIds.push(route.request().headers()['last-event-id']);
      return lastIds.length === 1
        ? route.fulfill({ ...OWN, contentType: 'text/event-stream', body: CUT_STREAM })
        : route.continue();
    });
    const page = await context.newPage();
    await page.goto(`/jobs/${id}`);
    await eventually(
      () => Promise.resolve(lastIds.length),
      (count) => count >= 2,
    );
    expect(lastIds.slice(0, 2)).toEqual(['0', '1']);
    await operator.client.post(`/api/jobs/${id}/cancel`, {});
    await status(page, 'Cancelled');
    const { logs } = await operator.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
    await page
      .getByRole('log')
      .getByText(logs.at(-1)?.message ?? '')
      .waitFor();
    const lines = await page.locator('[data-line]').allTextContents();
    expect(lines).toEqual(logs.map(({ line }) => String(line)));
    expect(lines.length).toBeGreaterThan(1);
  });

  test('are read further towards the end of the list, all with the same range of times', async () => {
    const operator = await createUser(console.app, 'operator');
    const numbers = Array.from({ length: 120 }, (_, number) => number);
    await Promise.all(
      numbers.map((number) =>
        operator.client
          .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: { number } })
          .expect(201),
      ),
    );
    const page = await console.open(operator, '/jobs?type=core.echo&createdAt=24h');
    await page.getByText('120 jobs', { exact: true }).waitFor();
    const grid = page.getByRole('grid', { name: 'Jobs' });
    const row = (number: number) => grid.locator(`[aria-rowindex="${number + 1}"]`);
    // A page has 100 jobs: the rows after them are drawn when the second page has come.
    const goToEnd = async () => {
      await page.keyboard.press('Control+End');
      await row(101).waitFor();
      await page.keyboard.press('Control+End');
      await row(120).locator(':focus').waitFor();
    };
    // The list is read again for a change just when its end comes into view.
    const held = Promise.withResolvers<undefined>();
    const firstPage = /\/api\/jobs\?(?!.*cursor).*limit=100/;
    await page.route(firstPage, (route) => held.promise.then(() => route.continue()));
    const refresh = page.waitForRequest(firstPage);
    const other = { type: 'core.sleep', payload: { durationMs: 1 } };
    await operator.client.post('/api/jobs', other).expect(201);
    await refresh;
    await row(1).locator('[role=gridcell]').first().focus();
    await page.keyboard.press('Control+End');
    await row(100).locator(':focus').waitFor();
    held.resolve(undefined);
    await goToEnd();
    // Another order has a first page of as many jobs.
    const sorted = page.waitForResponse(/limit=100.*sort=createdAt|sort=createdAt.*limit=100/);
    await page.getByRole('columnheader', { name: 'Created' }).getByRole('button').click();
    await sorted;
    await grid.and(page.locator(':not([aria-busy])')).waitFor();
    await goToEnd();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press('e');
    await page.waitForURL('**/jobs/job_*');

    // A column stays as wide as the user has made it, in every tab; another user has it as it was.
    const header = (of: Page) => of.getByRole('columnheader', { name: 'Type' });
    const widthOn = async (of: Page) => Math.round((await header(of).boundingBox())?.width ?? 0);
    await page.goto('/jobs');
    const before = await widthOn(page);
    await header(page).getByRole('button').or(header(page)).last().focus();
    for (const _ of [1, 2, 3]) await page.keyboard.press('Alt+ArrowRight');
    expect(await widthOn(page)).toBe(before + 48);
    const context = page.context();
    await page.close();
    const tab = await context.newPage();
    await tab.goto('/jobs');
    expect(await widthOn(tab)).toBe(before + 48);
    await tab.close();
    const another = await createUser(console.app, 'operator');
    const login = { username: another.username, password: PASSWORD, cookie: true };
    await context.request.post('/api/auth/login/local', { data: login });
    const theirs = await context.newPage();
    await theirs.goto('/jobs');
    await theirs.getByRole('button', { name: `Account of ${another.username}` }).waitFor();
    expect(await widthOn(theirs)).toBe(before);
  });

  test('take lists whose entries are moved, with the mouse and with the keyboard', async () => {
    const operator = await createUser(console.app, 'operator');
    const page = await console.open(operator, '/jobs/new?type=http.request');
    const list = page.getByRole('group', { name: 'Expect status' });
    for (const code of ['200', '201', '204']) {
      await list.getByRole('button', { name: 'Add an entry' }).click();
      await page.keyboard.type(code);
    }
    const entries = async () =>
      Promise.all((await list.getByRole('textbox').all()).map((field) => field.inputValue()));
    expect(await entries()).toEqual(['200', '201', '204']);
    await list.getByRole('button', { name: 'Move expect status 3 up' }).click();
    expect(await entries()).toEqual(['200', '204', '201']);
    // The focus goes with the entry: the same key moves it on.
    await page.keyboard.press('Enter');
    expect(await entries()).toEqual(['204', '200', '201']);
    await list.getByRole('status').getByText('Expect status 2 is expect status 1 now').waitFor();
    await page.keyboard.press('Enter');
    expect(await entries()).toEqual(['204', '200', '201']);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Space');
    expect(await entries()).toEqual(['200', '204', '201']);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByLabel('URL').fill('http://127.0.0.1:1/');
    await page.getByRole('button', { name: 'Start job' }).click();
    await page.waitForURL('**/jobs/job_*');
    const id = new URL(page.url()).pathname.slice('/jobs/'.length);
    const { payload } = await operator.client.get<JobRecord>(`/api/jobs/${id}`).expect(200);
    expect(payload).toMatchObject({ expectStatus: [200, 204, 201] });
  });

  test('are asked for with an approval instead', async () => {
    const operator = await createUser(console.app, 'operator');
    const page = await console.open(operator, '/jobs/new?type=core.echo');
    await page.getByRole('button', { name: 'Ask for approval instead' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Ask for approval' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog.getByLabel('Everyone with the role Approver').check();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Ask for approval' }).click();
    await page.waitForURL('**/approvals/apr_*');
    const { items } = await operator.client.get<{ items: object[] }>('/api/workflows').expect(200);
    expect(items).toMatchObject([
      { title: 'Run core.echo', jobType: 'core.echo', assignedRoleIds: ['approver'] },
    ]);
  });
});
