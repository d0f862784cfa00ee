import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems, followPath } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

const LISTS = [
  ...['/jobs', '/schedules', '/approvals', '/webhooks', '/deliveries', '/events', '/audit'],
  ...['/backups', '/job-types', '/runners', '/secrets', '/inventory/sites', '/inventory/imports'],
  ...['/access/users', '/access/roles', '/access/assignments', '/access/mappings'],
  ...['/access/providers', '/access/service-accounts', '/access/tokens'],
] as const;

describePages('a link to a list', (console) => {
  let user: TestUser;

  beforeAll(async () => {
    user = await createUser(console.app, 'platform-admin');
  });

  const text = (page: Page, words: string) => page.getByText(words, { exact: true });

  test('with a filter that the list does not have names it, in every list', async () => {
    const page = await console.open(user, '/event-types');
    for (const list of LISTS) {
      await followPath(page, `${list}?nope=x`);
      await text(page, 'nope “x” is no filter of this list').waitFor();
      // Nothing is exported or changed that the link was not about.
      expect(await page.getByRole('button', { name: /^Export/ }).count()).toBe(0);
      expect(await page.getByRole('grid').count()).toBe(0);
    }
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'List without nope' }).click();
    await text(page, 'nope “x” is no filter of this list').waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('');
  });

  test('with a value that a filter does not know names the value', async () => {
    const page = await console.open(user, '/event-types');
    for (const [link, words] of [
      ['/audit?at=2026-99-99..', /^When “2026-99-99\.\.” is no range of times/],
      ['/job-types?state=nope', /“nope” is no value of this filter$/],
      ['/jobs?status=failed,bogus', /^Status “.*bogus” /],
      ['/approvals?view=bogus', /^view “bogus” is no filter/],
      ['/jobs?internal=off', /“off” can only be “on”$/],
    ] as const) {
      await followPath(page, link);
      await page.getByText(words).first().waitFor();
      expect(await page.getByRole('grid').count()).toBe(0);
    }
    await page.goto('/inventory/prefixes/space?at=banana');
    await text(page, '“banana” is neither an address nor a network.').waitFor();
  });

  test('filters by each field that the service can filter by', async () => {
    for (const name of ['linked1', 'linked2'])
      await admin(console.app).post<WithId>('/api/inventory/sites', { name }).expect(201);
    const page = await console.open(user, '/inventory/sites?name=linked2');
    await page.getByText('linked2', { exact: true }).first().waitFor();
    await page.getByText('1 site', { exact: true }).waitFor();
    expect(await page.getByText('linked1', { exact: true }).count()).toBe(0);
  });
});
