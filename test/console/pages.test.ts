import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { changeRequest, createRequest } from '../support/approvals.ts';
import { describeConsole, type TestConsole } from '../support/console/console.ts';
import { accessExamples, backupExamples, webhookExamples } from '../support/console/examples.ts';
import { accessibilityProblems, contentWidth, followPath } from '../support/console/page.ts';
import { pagePaths } from '../support/console/routes.ts';
import { acceptedType } from '../support/runner.ts';
import { admin, createUser, seedTenant, type TestUser } from '../support/users.ts';

type WithId = { id: string };

const FOLDER = mkdtempSync(join(tmpdir(), 'holdfast-console-pages-'));
/** It is made and read in a moment. */
const PART_OF_DATA = { mode: 'partial', sections: ['settings'], label: 'nightly' };

const NARROW = 360;
const WIDE = { width: 1_280, height: 720 };

const rail = (page: Page) =>
  page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents();

const heading = (page: Page) => page.getByRole('heading', { level: 1 });

/** Where those links of a page lead that call themselves the current page. */
const CURRENT =
  '[...document.querySelectorAll("main a[aria-current=page]")].map(({ pathname }) => pathname)';

/** Lists that scroll sideways, and headers of columns that are cut. */
const CUT_LISTS = `[...document.querySelectorAll('main [role=grid]')].flatMap((grid) => {
  const name = grid.getAttribute('aria-label');
  const cut = [...grid.querySelectorAll('[role=columnheader] *')].filter(
    (part) => part.textContent !== '' && part.scrollWidth > part.clientWidth && part.clientWidth > 0);
  const texts = [...new Set(cut.map((part) => 'The header ' + part.textContent + ' of the list ' + name + ' is cut'))];
  return grid.scrollWidth > grid.clientWidth ? ['The list ' + name + ' scrolls sideways', ...texts] : texts;
})`;

/** Resolves when the page has read what it shows. */
const isComplete = (page: Page) =>
  page.locator('[aria-busy=true]').first().waitFor({ state: 'detached' });

const describePagesOf = (console: TestConsole) => {
  /** Records of every kind that has a page, by the first part of its path or the name of its parameter. */
  const ids: Record<string, string> = {};
  let site: { mine: string; other: string };
  let someone: TestUser;

  beforeAll(async () => {
    const root = admin(console.app);
    await seedTenant(console.app, 'red');
    const red = console.app.client.as({ actor: 'root', roles: 'platform-admin', tenant: 'red' });
    const createSite = (name: string) =>
      red.post<WithId>('/api/inventory/sites', { name }).expect(201);
    const [mine, other] = [await createSite('ams-mine'), await createSite('fra-other')];
    site = { mine: mine.id, other: other.id };
    someone = await createUser(console.app, 'platform-admin');
    const job = () =>
      root
        .post<JobRecord>('/api/jobs', { type: 'core.echo', payload: {} }, { prefer: 'wait=20' })
        .expect(201);
    const schedule = { name: 'hello', cronExpression: '*/5 * * * *', jobType: 'core.echo' };
    const request = await createRequest(someone.client, {
      title: 'A prefix for all',
      ...changeRequest(['create', 'prefixes', { cidr: '10.9.0.0/16' }]),
    });
    const { runner } = await acceptedType(console.app, 'lab');
    const secret = { name: 'port-audit', value: 'not shown', pools: ['lab'] };
    const platform = console.app.client.as({
      ...{ actor: 'root', roles: 'platform-admin', tenant: 'platform' },
    });
    const csv = { 'content-type': 'text/csv' };
    const sent = root.post<WithId>('/api/inventory/import?resource=tags', 'id,name\nx,X\n', csv);
    Object.assign(ids, {
      importId: (await sent.expect(202)).id,
      guide: 'inventory',
      pool: 'lab',
      ...(await accessExamples(root, someone)),
      ...(await backupExamples(root, PART_OF_DATA)),
      ...(await webhookExamples(platform)),
      runners: runner,
      secrets: (await root.post<WithId>('/api/secrets', secret).expect(201)).id,
      id: site.mine,
      inventory: site.mine,
      'job-types': 'core.echo',
      jobs: (await job()).id,
      schedules: (await root.post<WithId>('/api/schedules', schedule).expect(201)).id,
      approvals: request.id,
      audit: (await root.get<{ items: WithId[] }>('/api/audit?limit=1').expect(200)).items[0]?.id,
    });
    await job();
  });

  afterAll(() => rm(FOLDER, { recursive: true, force: true }));

  const addressOf = (path: string): string =>
    path
      .replace('$resource', 'sites')
      .replaceAll(/\$(\w+)/g, (_match, name: string) =>
        assertDefined(
          ids[name] ?? ids[path.split('/')[1] ?? ''],
          `an example of a record for ${path}`,
        ),
      );
  /** What is wrong with the page that is shown. */
  async function faultsOf(page: Page): Promise<string[]> {
    await heading(page).first().waitFor();
    await isComplete(page);
    const faults = await accessibilityProblems(page);
    faults.push(...(await page.evaluate<string[]>(CUT_LISTS)));
    if ((await heading(page).count()) !== 1) faults.push('It has not one heading');
    const title = await page.title();
    if (!/^.+ · Holdfast$/.test(title)) faults.push(`Its title is ${title}`);
    for (const path of await page.evaluate<string[]>(CURRENT))
      if (path !== new URL(page.url()).pathname) faults.push(`It calls ${path} the current page`);
    const width = await contentWidth(page, NARROW);
    if (width > NARROW) faults.push(`It is ${width} pixels wide`);
    return faults;
  }

  test('are accessible in light and dark, and fit a phone', async () => {
    // One page for all paths: a new profile or document would cost more than what it shows.
    const page = await (await console.profileOf(someone)).newPage();
    await page.goto('/sign-in');
    const faults: Record<string, string[]> = {};
    const paths = pagePaths().filter((path) => path !== '/sign-in');
    for (const path of paths) {
      await page.setViewportSize(WIDE);
      await followPath(page, addressOf(path));
      faults[path] = await faultsOf(page);
    }
    expect(faults).toEqual(Object.fromEntries(paths.map((path) => [path, []])));
  }, 300_000);

  test('say what is wrong with an address, whatever is in it', async () => {
    const page = await (await console.profileOf(someone)).newPage();
    const strange = [
      ...['/inventory/sites?createdAt=constructor', '/jobs?createdAt=toString'],
      ...['/inventory/sites?columns=constructor,__proto__', '/help/constructor'],
      ...['/inventory/constructor', '/event-types/constructor', '/constructor', '/id/constructor'],
      ...[
        `/inventory/sites/${site.mine}?at=constructor`,
        '/inventory/prefixes/space?at=constructor',
      ],
      ...['/access/compare-roles?roles=constructor,__proto__', '/sign-in?error=constructor'],
      ...[
        '/access/explain?userId=constructor&permission=constructor',
        '/sign-in?to=/%09/other.invalid',
      ],
    ];
    for (const address of strange) {
      await page.goto(address);
      await heading(page).first().waitFor();
      await isComplete(page);
      expect([address, await heading(page).count()]).toEqual([address, 1]);
      expect([address, await page.getByText('has an error').count()]).toEqual([address, 0]);
      expect(new URL(page.url()).origin).toBe(console.base);
    }
  });

  test('include the sign-in, which is accessible, too', async () => {
    const page = await (await console.profile()).newPage();
    await page.goto('/sign-in');
    expect(await faultsOf(page)).toEqual([]);
  });

  describe('are for each of', () => {
    const open = async (path: string, ...roles: Parameters<typeof createUser>[1][]) => {
      const user = await createUser(console.app, ...roles);
      const page = await console.open(user, path);
      await isComplete(page);
      return page;
    };
    /** What a user sees of the request that all of them can read. */
    const approve = (page: Page) => page.getByRole('button', { name: /^Approve/ });
    const newJob = (page: Page) => page.getByRole('link', { name: 'New job' });
    const rows = (page: Page) => page.getByRole('grid').getByRole('row');

    test('a viewer, who reads everything and changes nothing', async () => {
      const page = await open('/jobs', 'viewer');
      await rows(page).nth(2).waitFor();
      expect(await newJob(page).count()).toBe(0);
      expect(await rail(page)).toEqual(expect.arrayContaining(['Home', 'Jobs', 'Schedules']));
      await page.goto(`/approvals/${ids.approvals}`);
      await page.getByText('You do not hold the permission workflow:approve here.').waitFor();
      expect(await approve(page).count()).toBe(0);
    });

    test('an operator of one site, who finds what belongs to it, and nothing else', async () => {
      const page = await open('/', { roleId: 'operator', siteId: site.mine, tenantId: 'red' });
      await page.goto('/search?q=ams-mine');
      await page
        .getByRole('main')
        .getByRole('link', { name: /ams-mine/ })
        .first()
        .waitFor();
      await page.goto('/search?q=fra-other');
      await page
        .getByText(/^Nothing/)
        .first()
        .waitFor();
      await page.goto(`/id/${site.mine}`);
      await page.getByRole('heading', { name: 'ams-mine' }).waitFor();
      await page.goto(`/id/${site.other}`);
      await page.getByText('Not found').first().waitFor();
      await page.goto('/account');
      await page.getByRole('row', { name: 'Operator site ams-mine of red' }).waitFor();
    });

    test('an approver, who decides and runs nothing', async () => {
      const page = await open('/', 'approver');
      await page.getByRole('link', { name: 'A prefix for all' }).click();
      await approve(page).waitFor();
      await page.goto('/jobs');
      await rows(page).nth(2).waitFor();
      expect(await newJob(page).count()).toBe(0);
    });

    test('an administrator, who sees how the installation is protected', async () => {
      const page = await open('/', 'platform-admin');
      await page.getByRole('region', { name: 'Protection' }).waitFor();
      await page.goto('/jobs');
      await newJob(page).first().waitFor();
    });

    test('a user without a role, whose account says so', async () => {
      const page = await open('/account');
      await page.getByText('You have no role').waitFor();
      expect(await rail(page)).toEqual(['Home']);
    });
  });
};

describeConsole('the pages', describePagesOf, { HOLDFAST_BACKUP_DIR: FOLDER });
