import { beforeAll, expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems, contentWidth } from '../support/console/page.ts';
import { createUser, type TestUser } from '../support/users.ts';

describePages('guides', (console) => {
  let viewer: TestUser;

  beforeAll(async () => {
    viewer = await createUser(console.app, 'viewer');
  });

  test('are a click away from each page, at the part that is about it', async () => {
    const page = await console.open(viewer, '/inventory/imports');
    await page.getByRole('heading', { name: 'Imports', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Guide of this page' }).click();
    const part = page.getByRole('heading', { name: 'Import and export', level: 2 });
    await part.waitFor();
    expect((await part.boundingBox())?.y).toBeLessThan(200);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, 360)).toBe(360);
    await page.setViewportSize({ width: 1_280, height: 720 });
    await page
      .getByRole('navigation', { name: 'On this page' })
      .getByRole('link', { name: 'History' })
      .click();
    expect(new URL(page.url()).hash).toBe('#history');
    // Paper does not scroll: long commands are broken.
    await page.emulateMedia({ media: 'print' });
    const cut =
      '[...document.querySelectorAll("pre")].filter((pre) => pre.scrollWidth > pre.clientWidth).length';
    expect(await page.evaluate(cut)).toBe(0);
    await page.emulateMedia({ media: null });
    // A link of a guide to another one stays in the console.
    await page.getByRole('main').getByRole('link', { name: 'Access' }).first().click();
    await page.getByRole('heading', { level: 1, name: /Access|access/ }).waitFor();
  });

  test('have a glossary that is searched, from the keys of any page', async () => {
    const page = await console.open(viewer, '/jobs');
    await page.getByRole('heading', { name: 'Jobs', level: 1 }).waitFor();
    await page.keyboard.press('?');
    const dialog = page.getByRole('dialog', { name: 'Keys' });
    await dialog.getByRole('link', { name: 'Guide of this page' }).waitFor();
    await dialog.getByRole('link', { name: 'Glossary' }).click();
    await page.getByLabel('Find a term').fill('legal hold');
    await page.getByRole('cell', { name: 'legal hold', exact: true }).waitFor();
    expect(await page.getByRole('cell', { name: 'occurrence', exact: true }).count()).toBe(0);
    expect(new URL(page.url()).searchParams.get('q')).toBe('legal hold');
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto('/help/nothing');
    await page.getByText('There is no guide nothing').waitFor();
  });
});
