import { beforeAll, expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

describePages('search', (console) => {
  let user: TestUser;

  beforeAll(async () => {
    user = await createUser(console.app, 'viewer');
    const create = (resource: string, record: object) =>
      admin(console.app).post(`/api/inventory/${resource}`, record).expect(201);
    await create('prefixes', { cidr: '10.1.0.0/16', description: 'Amsterdam' });
    await create('prefixes', { cidr: '10.1.2.0/24', description: 'rack A01' });
    for (let i = 1; i <= 8; i += 1)
      await create('sites', { name: `hall-${i}`, description: '<i>north</i>' });
  });

  test('of an address answers with the networks that contain it', async () => {
    const page = await console.open(user, '/search?q=10.1.2.77');
    const around = page.getByRole('region', { name: 'Networks that contain 10.1.2.77' });
    await around.waitFor();
    expect(await around.getByRole('link').allTextContents()).toEqual([
      '10.1.2.77: what is beside it, and the next free one',
      expect.stringContaining('10.1.2.0/24'),
      expect.stringContaining('10.1.0.0/16'),
    ]);
    await page.getByText('10.1.2.77 is not recorded itself.').waitFor();
    expect(await page.title()).toBe('10.1.2.77 · Search · Holdfast');
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('follows the typed text, which is in the address, and arrows lead through the results', async () => {
    const page = await console.open(user, '/search');
    await page.getByText('Search everything that you may read').waitFor();
    await page.keyboard.type('hall north');
    const sites = page.getByRole('region', { name: 'Sites' });
    // What was typed first may have been found before the rest.
    await page.waitForURL((url) => url.searchParams.get('q') === 'hall north');
    await sites.waitFor();
    expect(await sites.locator('mark').first().textContent()).toBe('hall');
    await sites.getByText('<i>north</i>').first().waitFor();
    expect(await sites.getByRole('listitem').count()).toBe(6);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowDown');
    const second = sites.getByRole('listitem').nth(1).getByRole('link');
    await second.and(page.locator(':focus')).waitFor();
    await page.getByRole('link', { name: 'More sites' }).click();
    await sites.getByRole('listitem').nth(7).waitFor();
    expect(new URL(page.url()).searchParams.get('kinds')).toBe('sites');
    await page.goBack();
    await page.getByRole('link', { name: 'More sites' }).waitFor();
  });

  test('that finds nothing says what was searched', async () => {
    const page = await console.open(user, '/search?q=nothing-has-this-name');
    await page.getByText('Nothing found for “nothing-has-this-name”').waitFor();
    await page.getByText('found by their id only').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('from any page opens what was typed last, also if Enter is faster than the answer', async () => {
    const page = await console.open(user, '/jobs');
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Search' });
    await field.fill('hall-1');
    await page.getByRole('option', { name: 'hall-1' }).waitFor();
    const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
    await page.route(/api\/search.*hall-2/, async (route) => {
      await released;
      await route.continue();
    });
    const asked = page.waitForRequest(/api\/search.*hall-2/);
    await field.fill('hall-2');
    // An input method takes Enter for itself.
    await field.dispatchEvent('keydown', { key: 'Enter', isComposing: true, bubbles: true });
    await field.press('Enter');
    await asked;
    await field.waitFor();
    release(undefined);
    await page.getByRole('heading', { name: 'hall-2', exact: true }).waitFor();
  });
});
