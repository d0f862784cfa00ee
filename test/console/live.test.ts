import { afterAll, expect, test } from '@jest/globals';
import type { BrowserContext, Page } from 'playwright-core';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { writeJobChange } from '../../db/jobs/jobs.ts';
import { logChange } from '../../services/jobs/logChange.ts';
import type { TestApp } from '../support/app.ts';
import { describePages, signIn } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { startForwarder } from '../support/forwarder.ts';
import { killAll, startProcess } from '../support/processes.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

/** What every page shows of the approvals: it is read again after their events. */
const isBadge = (url: string) => url.includes('/api/workflows?assignedToMe');

describePages('changes', (console) => {
  afterAll(killAll);

  const createRequest = (user: TestUser) =>
    user.client
      .post('/api/workflows', {
        type: 'change',
        title: 'A change',
        payload: {},
        assignedUserIds: [],
        assignedRoleIds: ['approver'],
      })
      .expect(201);

  /** Counts the requests of each page. */
  function watchRequests(context: BrowserContext) {
    const requests: { page: Page; url: string }[] = [];
    context.on('request', (request) => {
      requests.push({ page: request.frame().page(), url: request.url() });
    });
    const count = (page: Page, matches: (url: string) => boolean) =>
      requests.filter((request) => request.page === page && matches(request.url)).length;
    return {
      badges: (page: Page) => count(page, isBadge),
      streams: (page: Page) => count(page, (url) => url.includes('/api/events?follow')),
    };
  }

  const openTabs = async (user: TestUser, count: number) => {
    const context = await console.profileOf(user);
    const requests = watchRequests(context);
    const pages: Page[] = [];
    for (let index = 0; index < count; index += 1) {
      const page = await context.newPage();
      await Promise.all([
        page.waitForResponse((response) => isBadge(response.url())),
        page.goto('/'),
      ]);
      if (index === 0)
        await eventually(
          () => requests.streams(page),
          (streams) => streams === 1,
        );
      pages.push(page);
    }
    return { context, pages, requests };
  };

  test('reach all tabs by one stream, and by another one when its tab is closed', async () => {
    const operator = await createUser(console.app, 'operator');
    const { pages, requests } = await openTabs(operator, 2);
    const [first, second] = pages as [Page, Page];
    const before = pages.map(requests.badges);
    await createRequest(operator);
    for (const [index, page] of pages.entries())
      await eventually(
        () => requests.badges(page),
        (count) => count > (before[index] ?? 0),
      );
    expect(requests.streams(second)).toBe(0);
    await first.close();
    await eventually(
      () => requests.streams(second),
      (count) => count === 1,
    );
    const later = requests.badges(second);
    await createRequest(operator);
    await eventually(
      () => requests.badges(second),
      (count) => count > later,
    );
  });

  test('reach the tab of another user who signs in, though a page of the former one was there first', async () => {
    const [former, present] = [
      await createUser(console.app, 'operator'),
      await createUser(console.app, 'operator'),
    ];
    const { pages, requests } = await openTabs(former, 2);
    const [first, second] = pages as [Page, Page];
    for (const enabled of [false, true])
      await admin(console.app).put(`/api/users/${former.id}`, { enabled }).expect(200);
    await second.getByRole('button', { name: 'Leave this page' }).click();
    await signIn(second, present.username);
    await first.getByRole('heading', { name: 'Another user has signed in' }).waitFor();
    expect(await accessibilityProblems(first)).toEqual([]);
    // Nothing of the former user is left on the screen.
    expect(await first.getByRole('navigation', { name: 'Pages' }).count()).toBe(0);
    await eventually(
      () => requests.streams(second),
      (streams) => streams > 0,
    );
    const before = requests.badges(second);
    await createRequest(present);
    await eventually(
      () => requests.badges(second),
      (count) => count > before,
    );
  });

  test('reach those whose rights are at a site, of which the stream has no events', async () => {
    const site = await admin(console.app)
      .post<{ id: string }>('/api/inventory/sites', { name: 'Hall' })
      .expect(201);
    const siteId = site.id;
    const operator = await createUser(console.app, { roleId: 'operator', siteId });
    const context = await console.profileOf(operator);
    const page = await context.newPage();
    await page.clock.install();
    const streams = page.waitForResponse((response) =>
      response.url().includes('/api/events?follow'),
    );
    await page.goto('/inventory/locations');
    await page.getByText('No locations').first().waitFor();
    expect((await streams).status()).toBe(403);
    await operator.client.post('/api/inventory/locations', { siteId, name: 'Cage 7' }).expect(201);
    const row = page.getByRole('row', { name: 'Cage 7' });
    const appears = async () => {
      await page.clock.fastForward(15_000);
      return row.waitFor({ timeout: 1_000 }).then(
        () => true,
        () => false,
      );
    };
    await eventually(appears, (isThere) => isThere);
  });

  test('reach a page again after the server was stopped, which the page says once', async () => {
    const operator = await createUser(console.app, 'operator');
    const { pages, requests } = await openTabs(operator, 1);
    const [page] = pages as [Page];
    await createRequest(operator);
    await eventually(
      () => requests.badges(page),
      (count) => count > 1,
    );
    await console.restartServer(async () => {
      await page.getByText('Holdfast cannot be reached.').waitFor();
      // It is said once, and what was read stays.
      expect(await page.getByText('Not connected').count()).toBe(0);
      expect(await page.getByRole('alert').count()).toBe(0);
      await page.getByRole('heading', { name: 'Home' }).waitFor();
    });
    await page.getByText('Holdfast cannot be reached.').waitFor({ state: 'detached' });
    const before = requests.badges(page);
    await createRequest(operator);
    await eventually(
      () => requests.badges(page),
      (count) => count > before,
    );
    await page.getByText('Not connected').waitFor({ state: 'detached' });
  });

  test('wait while the database is away, which the page says once, and come when it is back', async () => {
    const { env, databaseUrl } = console.app;
    const database = new URL(databaseUrl);
    const [toDatabase, toTemporal] = [
      await startForwarder(database),
      await startForwarder(new URL(`tcp://${env.TEMPORAL_ADDRESS}`)),
    ];
    database.host = toDatabase.address;
    const server = await startProcess({
      ...env,
      DATABASE_URL: database.href,
      TEMPORAL_ADDRESS: toTemporal.address,
      HOLDFAST_PORT: '0',
    });
    const context = await console.profileOf(await createUser(console.app, 'platform-admin'), {
      baseURL: server.base,
    });
    const page = await context.newPage();
    await page.goto('/');
    // The frame asks it what is missing.
    console.expectProblem(/\/readyz\)$/);
    const protection = page.getByRole('region', { name: 'Protection' });
    await protection.getByText('There is no full backup').waitFor();
    await toDatabase.close();
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await page.getByText('Not read yet: waiting for the server.').waitFor();
    expect(await page.getByRole('status').getByText('The database is not available.').count()).toBe(
      1,
    );
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goBack();
    await protection.getByText('There is no full backup').waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await page.getByRole('link', { name: 'Jobs', exact: true }).click();
    await toDatabase.open();
    await page.getByText('The database is not available.').waitFor({ state: 'detached' });
    await page.getByRole('grid', { name: 'Jobs' }).waitFor();
    await page.getByText('Not read yet').waitFor({ state: 'detached' });
    // A page that is opened during an outage opens after it.
    await toDatabase.close();
    await page.reload();
    await page.getByRole('heading', { name: 'Holdfast is not available' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await toTemporal.close();
    // The process checks in rounds: the page must not read the state from before.
    await eventually(
      async () => (await fetch(`${server.base}/readyz`)).text(),
      (text) => text.includes('"temporal":"unavailable"'),
    );
    await toDatabase.open();
    await page.getByRole('status').getByText('Temporal is not available.').waitFor();
    await page.getByRole('grid', { name: 'Jobs' }).waitFor();
    await toTemporal.open();
    await page.getByText('Temporal is not available.').waitFor({ state: 'detached' });
    await server.kill();
    await Promise.all([toTemporal.close(), toDatabase.close()]);
  }, 120_000);

  test('of a log go on after the process that sent them was killed, each line once', async () => {
    const operator = await createUser(console.app, 'operator');
    // No worker runs: all lines are those that the test writes.
    const { id } = await operator.client
      .post<JobRecord>('/api/jobs', { type: 'core.sleep', payload: { durationMs: 1 } })
      .expect(201);
    let count = 0;
    const write = async (lines: number) => {
      for (let line = 0; line < lines; line += 1) {
        count += 1;
        await writeLine(console.app, id, `Line ${count}`);
      }
    };
    const start = (port = '0') => startProcess({ ...console.app.env, HOLDFAST_PORT: port });
    const server = await start();
    const context = await console.profileOf(operator, {
      baseURL: server.base,
      viewport: { width: 1_280, height: 2_000 },
    });
    const page = await context.newPage();
    await page.goto(`/jobs/${id}`);
    const shown = (line: number) =>
      page.getByRole('log').getByText(`Line ${line}`, { exact: true }).waitFor();
    await write(10);
    await shown(10);
    console.expectProblem(/ERR_/);
    await Promise.all([write(20), server.kill()]);
    await page.getByText('Reconnecting …').waitFor();
    await write(10);
    await start(new URL(server.base).port);
    await write(5);
    await shown(count);
    await page.getByText('Reconnecting …').waitFor({ state: 'detached' });
    const lines = await page.locator('[data-line]').allTextContents();
    expect(lines).toEqual(Array.from({ length: count }, (_, at) => String(at + 1)));
  });
});

/** Writes a line to the log of a job, as its run does. */
const writeLine = ({ deps: { db } }: TestApp, id: string, message: string): Promise<void> =>
  writeJobChange(
    db,
    logChange({
      jobId: id,
      guard: { statuses: ['queued'] },
      lines: [{ attempt: 1, level: 'info', message, data: null, at: new Date() }],
    }),
  );
