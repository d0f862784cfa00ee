import { beforeAll, expect, test } from '@jest/globals';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { describeConsole } from '../support/console/console.ts';
import { accessibilityProblems, contentWidth } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type Named = { items: { name: string }[] };

describeConsole('imports', (console) => {
  let editor: TestUser;

  beforeAll(async () => {
    editor = await createUser(console.app, 'operator');
  });

  const file = (name: string, text: string) => ({
    ...{ name, mimeType: 'text/csv', buffer: Buffer.from(text) },
  });
  /** Chooses a file as soon as a user can: when the resources are read. */
  const choose = async (page: Page, name: string, text: string) => {
    const input = page.getByLabel('Choose a file').and(page.locator(':enabled'));
    await input.setInputFiles(file(name, text));
  };
  const start = (page: Page) => page.getByRole('button', { name: 'Start the dry run' });
  const report = (page: Page) => page.getByRole('region', { name: 'Rows' });

  test('a file is checked row by row, and its good rows are written when one says so', async () => {
    const page = await console.open(editor, '/inventory/sites');
    await page.getByRole('link', { name: 'Import', exact: true }).first().click();
    await page.getByRole('heading', { name: 'Import', level: 1 }).waitFor();
    await page.getByRole('region', { name: 'Columns of sites' }).getByText('needed').waitFor();
    // What is wrong with the columns is said before the file is sent.
    await choose(page, 'sites.csv', 'name;status\nx;active\n');
    await page.getByText('separated by semicolons').waitFor();
    expect(await start(page).getAttribute('aria-disabled')).toBe('true');
    await choose(page, 'sites.csv', 'name,status\nams9,active\nber9,nowhere\nfra9,planned\n');
    await page.getByText('about 3 rows').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await start(page).click();
    await page.getByRole('heading', { name: 'Dry run of sites' }).waitFor();
    await page.getByText('1 invalid, 2 to create.').waitFor();
    const bad = report(page).getByRole('row').filter({ hasText: 'ber9' });
    await bad.getByText('nowhere').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, 360)).toBe(360);
    await page.setViewportSize({ width: 1_280, height: 720 });
    // Only the outcome that one asks for, all that there is to say about a row, and the report as a file.
    await report(page)
      .getByRole('button', { name: /^Invalid/ })
      .click();
    await report(page).getByRole('row').filter({ hasText: 'ams9' }).waitFor({ state: 'detached' });
    await bad.getByRole('gridcell', { name: '3', exact: true }).click();
    await page.getByRole('dialog', { name: 'Line 3' }).getByText('In the file: nowhere').waitFor();
    await page.keyboard.press('Escape');
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      (async () => {
        await report(page).getByRole('button', { name: 'Report' }).click();
        await page.getByRole('menuitem', { name: /CSV/ }).click();
      })(),
    ]);
    const lines = (await readFile(await saved.path(), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/^3,invalid,,sites,create,ber9,error,status,nowhere,/);
    await page.getByRole('button', { name: 'Import the rows' }).click();
    const dialog = page.getByRole('dialog', { name: 'Import the rows of this dry run' });
    await dialog.getByText('2 rows of 3 will be written').waitFor();
    await dialog.getByRole('button', { name: 'Import' }).click();
    await page.getByRole('heading', { name: 'Import of sites' }).waitFor();
    await page.getByText('1 invalid, 2 created.').waitFor();
    await report(page).getByRole('link', { name: 'ams9' }).waitFor();
    await page.getByRole('link', { name: 'the dry run' }).click();
    await page.getByRole('link', { name: 'the import' }).waitFor();
    // They are imported once.
    const again = page.getByRole('button', { name: 'Import the rows' });
    expect(await again.getAttribute('aria-disabled')).toBe('true');
    const { items } = await admin(console.app)
      .get<Named>('/api/inventory/sites?q=ams9&sort=name')
      .expect(200);
    expect(items.map(({ name }) => name)).toEqual(['ams9']);
  });

  test('a large file is sent with progress, and its rows are read as one scrolls', async () => {
    const page = await console.open(editor, '/inventory/imports/new');
    const rows = Array.from({ length: 3_000 }, (_, i) => `large${i},${i % 100 === 0 ? 'x' : ''}`);
    await choose(page, 'regions.csv', `name,parentId\n${rows.join('\n')}\n`);
    // Its columns say what it is.
    await page.getByText('about 3,000 rows').waitFor();
    expect(await page.getByLabel('Resource').inputValue()).toBe('regions');
    await start(page).click();
    await page.getByText('30 invalid, 2,970 to create.').waitFor();
    const grid = page.getByRole('grid', { name: 'Rows' });
    expect(await grid.getAttribute('aria-rowcount')).toBe('3001');
    expect(await grid.getByRole('row').count()).toBeLessThan(80);
    await grid.focus();
    await page.keyboard.press('End');
    await report(page)
      .getByRole('button', { name: /^Invalid/ })
      .click();
    await grid
      .getByText('2,902')
      .waitFor({ state: 'attached' })
      .catch(() => undefined);
    expect(await grid.getAttribute('aria-rowcount')).toBe('31');
    await page.goto('/inventory/imports');
    await page.getByRole('link', { name: 'Dry run of regions' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('a file that is refused says where, and an upload can be cancelled', async () => {
    const page = await console.open(editor, '/inventory/imports/new?resource=sites');
    await choose(page, 'sites.csv', 'name\na\n"b\n');
    await start(page).click();
    await page.getByRole('alert').getByText('/lines/').first().waitFor();
    // The connection is held, as a slow one is.
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    await page.route('**/api/inventory/import?**', async (route) => {
      await held;
      await route.abort().catch(() => undefined);
    });
    await choose(page, 'sites.csv', 'name\nslow\n');
    await start(page).click();
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Cancel' }).waitFor({ state: 'detached' });
    release();
    expect(await start(page).getAttribute('aria-disabled')).toBe(null);
    expect(await page.getByRole('alert').count()).toBe(0);
  });

  test('a list is exported with its filters, its order and the chosen columns', async () => {
    const client = admin(console.app);
    for (const name of ['exp-b', 'exp-a', 'other'])
      await client.post('/api/inventory/vrfs', { name }).expect(201);
    const page = await console.open(
      editor,
      '/inventory/vrfs?q=exp-&sort=-name&columns=name,enforceUnique',
    );
    await page.getByRole('link', { name: 'exp-a' }).waitFor();
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByText('The columns that you have chosen').waitFor();
    const [saved] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: /CSV/ }).click(),
    ]);
    expect(saved.suggestedFilename()).toBe('vrfs.csv');
    const lines = (await readFile(await saved.path(), 'utf8')).trim().split('\n');
    expect(lines.map((line) => line.split(',').slice(1))).toEqual([
      ['name', 'enforceUnique'],
      ['exp-b', 'true'],
      ['exp-a', 'true'],
    ]);
  });

  test('are read by those who may write none, and sent by those who may', async () => {
    const page = await console.open(await createUser(console.app, 'viewer'), '/inventory/imports');
    await page.getByRole('link', { name: 'Import of sites' }).click();
    await report(page).getByText('created').first().waitFor();
    expect(await page.getByRole('link', { name: 'Import', exact: true }).count()).toBe(0);
    await page.goto('/inventory/imports/new');
    await page.getByText('inventory:write').waitFor();
  });
});
