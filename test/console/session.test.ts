import { expect, test } from '@jest/globals';
import type { BrowserContext, Page, Response } from 'playwright-core';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { describePages, signIn } from '../support/console/console.ts';
import { eventually } from '../support/eventually.ts';
import { admin, createUser, PASSWORD } from '../support/users.ts';

const REFRESH = '**/api/auth/refresh';

const frameOf = (page: Page) => page.getByRole('navigation', { name: 'Pages' });

/** Counts the refreshes of each page of a profile. */
function countRefreshes(context: BrowserContext): (page: Page) => number {
  const counts = new Map<Page, number>();
  context.on('request', (request) => {
    if (!request.url().endsWith('/api/auth/refresh')) return;
    const page = request.frame().page();
    counts.set(page, (counts.get(page) ?? 0) + 1);
  });
  return (page) => counts.get(page) ?? 0;
}

/** Tokens live for 2 seconds, so that a test sees as many refreshes in seconds as a user in hours. */
describePages(
  'a session',
  (console) => {
    /** Uses of a spent token that counted as theft. */
    const reuses = async () =>
      Number(
        (
          await console.app.deps
            .db('audit_entries')
            .where({ action: 'session.token_reuse' })
            .count()
        )[0]?.count,
      );

    /** Opens the page once more, as a reload does; the session must be found again. */
    const expectSignedIn = async (page: Page) => {
      const isAccepted = (response: Response) =>
        response.url().endsWith('/api/rbac/summary') && response.status() === 200;
      await Promise.all([page.waitForResponse(isAccepted), page.goto('/')]);
      await frameOf(page).waitFor();
    };

    test('of two tabs is kept by one of them, and by the other when it is closed', async () => {
      const context = await console.profileOf(await createUser(console.app, 'viewer'));
      const refreshes = countRefreshes(context);
      const first = await context.newPage();
      await first.goto('/');
      await frameOf(first).waitFor();
      const second = await context.newPage();
      await second.goto('/');
      await frameOf(second).waitFor();
      const before = refreshes(second);
      await eventually(
        () => refreshes(first),
        (count) => count >= 5,
      );
      expect(refreshes(second)).toBe(before);
      await first.close();
      await eventually(
        () => refreshes(second),
        (count) => count >= before + 3,
      );
      await expectSignedIn(second);
      expect(await reuses()).toBe(0);
    });

    test('survives twenty reloads at any moment of the start', async () => {
      const context = await console.profileOf(await createUser(console.app, 'viewer'));
      const page = await context.newPage();
      const refreshing = () => page.waitForRequest(REFRESH);
      const moments = [
        // Several in a row: each time the answer of the refresh comes too late for its page.
        ...[refreshing, refreshing, refreshing, refreshing, refreshing],
        () => page.waitForResponse(REFRESH),
        () => page.waitForRequest('**/api/rbac/summary'),
        () => Promise.resolve(),
      ] as const;
      await page.goto('/', { waitUntil: 'commit' });
      for (let reload = 0; reload < 20; reload += 1) {
        const moment = moments[reload % moments.length] ?? moments[0];
        await Promise.all([moment(), page.goto('/', { waitUntil: 'commit' })]);
      }
      await expectSignedIn(page);
      expect(await reuses()).toBe(0);
    });

    test('ends in all tabs when the user signs out', async () => {
      const context = await console.profileOf(await createUser(console.app, 'viewer'));
      const pages = [await context.newPage(), await context.newPage()] as const;
      for (const page of pages) {
        await page.goto('/');
        await frameOf(page).waitFor();
      }
      await pages[1].getByRole('button', { name: /^Account of/ }).click();
      await pages[1].getByRole('menuitem', { name: 'Sign out' }).click();
      for (const page of pages) await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await signIn(pages[0], (await createUser(console.app, 'viewer')).username);
      for (const page of pages) await frameOf(page).waitFor();
    });

    test('outlives a server that cannot be reached, and a proxy that answers instead of it', async () => {
      const context = await console.profileOf(await createUser(console.app, 'viewer'));
      const refreshes = countRefreshes(context);
      const page = await context.newPage();
      await page.goto('/');
      await frameOf(page).waitFor();
      const refreshTwice = async () => {
        const before = refreshes(page);
        await eventually(
          () => refreshes(page),
          (count) => count >= before + 2,
        );
        expect(await frameOf(page).isVisible()).toBe(true);
      };
      await context.setOffline(true);
      console.expectProblem(/ERR_INTERNET_DISCONNECTED/);
      await refreshTwice();
      await context.setOffline(false);
      await context.route('**/api/auth/refresh', (route) =>
        route.fulfill({ status: 401, contentType: 'text/html', body: '<h1>Unauthorized</h1>' }),
      );
      await refreshTwice();
      await context.unroute('**/api/auth/refresh');
      await context.route('**/api/auth/refresh', (route) =>
        route.fulfill({ json: { login: 'https://portal.invalid/' } }),
      );
      await refreshTwice();
      await context.unroute('**/api/auth/refresh');
      await expectSignedIn(page);
    });

    test('that another user has replaced is not mixed with it', async () => {
      const context = await console.profileOf(await createUser(console.app, 'viewer'));
      const page = await context.newPage();
      await page.goto('/');
      await frameOf(page).waitFor();
      const { username } = await createUser(console.app, 'viewer');
      const login = { username, password: PASSWORD, cookie: true };
      const notice = page.getByText('Another user has signed in');
      // A refresh that is in flight in this moment brings back the cookie of the first user.
      for (let attempt = 0; attempt < 5 && !(await notice.isVisible()); attempt += 1) {
        await context.request.post('/api/auth/login/local', { data: login });
        await notice.waitFor({ timeout: 3_000 }).catch(() => undefined);
      }
      await notice.waitFor();
      await page.getByRole('button', { name: 'Reload the page' }).click();
      await page.getByRole('button', { name: `Account of ${username}` }).waitFor();
    });

    test('is neither one of a gateway nor none, because a proxy answers instead of Holdfast', async () => {
      const context = await console.profile();
      const page = await context.newPage();
      const summary = '**/api/rbac/summary';
      const answers = [
        { json: { login: 'https://portal.invalid/' } },
        { status: 403, contentType: 'text/html', body: '<h1>Forbidden</h1>' },
      ];
      for (const each of answers) {
        await context.route(summary, (route) => route.fulfill(each));
        await page.goto('/');
        await page.getByText('Something between you and Holdfast has answered').waitFor();
        await context.unroute(summary);
      }
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    });

    test('of a gateway needs no sign-in, and its pages show what happens', async () => {
      const context = await console.profile({
        extraHTTPHeaders: {
          'x-service-actor-id': 'carol',
          'x-service-role-ids': 'viewer',
          'x-service-tenant-id': 'platform',
        },
      });
      const page = await context.newPage();
      await Promise.all([
        page.waitForRequest((request) => request.url().includes('/api/events?follow')),
        page.goto('/jobs'),
      ]);
      await frameOf(page).waitFor();
      await page.getByRole('button', { name: 'Account of carol' }).click();
      await page.getByRole('menu').waitFor();
      expect(await page.getByRole('menuitem', { name: 'Sign out' }).count()).toBe(0);
      await page.keyboard.press('Escape');
      const job = { type: 'core.echo', payload: { of: 'the gateway' } };
      const { id } = await admin(console.app).post<JobRecord>('/api/jobs', job).expect(201);
      await page.locator(`a[href="/jobs/${id}"]`).first().waitFor();
    });
  },
  { HOLDFAST_ACCESS_TOKEN_SECONDS: '2' },
);

/** A session may be idle for five seconds. */
describePages(
  'a session that nobody uses',
  (console) => {
    const liveSessions = (userId: string) =>
      console.app.deps.db('sessions').where({ user_id: userId }).whereNull('ended_at');

    test('ends, although a page is open; input in one tab keeps it for all', async () => {
      const user = await createUser(console.app, 'viewer');
      const context = await console.profileOf(user);
      const pages = [await context.newPage(), await context.newPage()] as const;
      for (const page of pages) {
        await page.goto('/');
        await frameOf(page).waitFor();
      }
      const refreshes = countRefreshes(context);
      const refreshed = () => refreshes(pages[0]) + refreshes(pages[1]);
      await eventually(
        async () => {
          await pages[1].mouse.move(refreshed() * 5, 50);
          return refreshed();
        },
        (count) => count >= 8,
      );
      expect(await frameOf(pages[0]).isVisible()).toBe(true);
      const before = await liveSessions(user.id);
      for (const page of pages) await page.getByRole('dialog').waitFor();
      expect((await liveSessions(user.id)).length).toBeLessThan(before.length);
    });
  },
  { HOLDFAST_ACCESS_TOKEN_SECONDS: '2', HOLDFAST_SESSION_IDLE_SECONDS: '5' },
);
