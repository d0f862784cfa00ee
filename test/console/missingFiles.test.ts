import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { createUser } from '../support/users.ts';

describePages('a page of which a file is missing', (console) => {
  /** A page whose files another version is asked for at first: `misses` times each. */
  async function openMissing(files: string, misses: number): Promise<Page> {
    const context = await console.profileOf(await createUser(console.app, 'viewer'));
    const page = await context.newPage();
    const asked = new Map<string, number>();
    await page.route(files, async (route) => {
      const url = route.request().url();
      const times = (asked.get(url) ?? 0) + 1;
      asked.set(url, times);
      return times > misses ? route.continue() : route.fulfill({ status: 404 });
    });
    console.expectProblem(/404/);
    await page.goto('/');
    return page;
  }

  const home = (page: Page) => page.getByRole('heading', { name: 'Home' }).waitFor();

  test.each(['**/assets/index-*.js', '**/assets/packages-*.js', '**/assets/index-*.css'])(
    'is shown when another process has it: %s',
    async (files) => home(await openMissing(files, 2)),
  );

  test('says so if none has it, and can be loaded again', async () => {
    const page = await openMissing('**/assets/index-*.js', Infinity);
    const note = page.getByRole('alert').filter({ hasText: 'The console could not be loaded' });
    await note.waitFor();
    await page.unrouteAll();
    await page.getByRole('button', { name: 'Reload the page' }).click();
    await home(page);
    expect(await note.count()).toBe(0);
  });
});
