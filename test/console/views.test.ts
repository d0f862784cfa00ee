import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems, contentWidth } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type View = { id: string; name: string; search: Record<string, string> };

describePages('saved views', (console) => {
  let editor: TestUser;
  let viewer: TestUser;

  beforeAll(async () => {
    [editor, viewer] = [
      await createUser(console.app, 'operator'),
      await createUser(console.app, 'viewer'),
    ];
    for (const [name, status] of [
      ['ams1', 'active'],
      ['ber1', 'planned'],
      ['fra1', 'active'],
    ])
      await admin(console.app).post('/api/inventory/sites', { name, status }).expect(201);
  });

  const row = (page: Page, name: string) => page.getByRole('link', { name, exact: true });
  const item = (page: Page, name: string | RegExp) => page.getByRole('menuitem', { name });
  const menu = (page: Page, name: string | RegExp) => page.getByRole('button', { name });

  test('a list is saved, changed, opened by its name, and set as the one to start with', async () => {
    const page = await console.open(editor, '/inventory/sites?status=planned&columns=name,status');
    await row(page, 'ber1').waitFor();
    await menu(page, 'Views').click();
    await item(page, /Save as a new view/).click();
    const dialog = page.getByRole('dialog', { name: 'Save as a view' });
    await dialog.getByLabel('Name').fill('To build');
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Save view' }).click();
    await menu(page, 'To build').waitFor();
    // Another filter: the list differs, and what it shows now can be saved.
    await page.getByRole('button', { name: /^Active/ }).click();
    await row(page, 'fra1').waitFor();
    await menu(page, /To build changed/).click();
    expect(await accessibilityProblems(page)).toEqual([]);
    await item(page, 'Save what the list shows now').click();
    await menu(page, /^To build$/).waitFor();
    await menu(page, /^To build$/).click();
    await item(page, 'Open the list with this view').click();
    await page.goto('/inventory/sites');
    await menu(page, /^To build$/).waitFor();
    expect(new URL(page.url()).searchParams.get('columns')).toBe('name,status');
    expect(await contentWidth(page, 360)).toBe(360);
  });

  test('a view is shared by those who may, and used by others with their own rights', async () => {
    const page = await console.open(editor, '/inventory/sites?q=ams');
    await row(page, 'ams1').waitFor();
    await menu(page, 'Views').click();
    await item(page, /Save as a new view/).click();
    const dialog = page.getByRole('dialog', { name: 'Save as a view' });
    await dialog.getByLabel('Name').fill('Amsterdam');
    await dialog.getByLabel('Shared').check();
    await dialog.getByRole('button', { name: 'Save view' }).click();
    await menu(page, 'Amsterdam').waitFor();
    const other = await console.open(viewer, '/inventory/sites');
    await menu(other, 'Views').click();
    // Private ones of others are not there.
    expect(await item(other, 'To build').count()).toBe(0);
    await item(other, 'Amsterdam').click();
    await row(other, 'ber1').waitFor({ state: 'detached' });
    await menu(other, 'Amsterdam').click();
    await item(other, 'Open the list with this view').waitFor();
    expect(await item(other, /Delete|Rename|Save what/).count()).toBe(0);
    await item(other, /Save as a new view/).click();
    await other.getByText('This needs the permission inventory:write.').waitFor();
    await menu(page, 'Amsterdam').click();
    await item(page, /Rename/).click();
    const rename = page.getByRole('dialog', { name: 'Change Amsterdam' });
    await rename.getByLabel('Name').fill('Sites in Amsterdam');
    await rename.getByRole('button', { name: 'Save' }).click();
    await menu(page, 'Sites in Amsterdam').click();
    await item(page, /Delete/).click();
    await page.getByRole('button', { name: 'Delete view' }).click();
    await menu(page, 'Views').waitFor();
  });

  /** Opens the list with a new shared view of active sites. `change` is what another user does with the view. */
  async function openShared(name: string) {
    const client = admin(console.app);
    const { id } = await client
      .post<View>('/api/views', {
        ...{ list: '/inventory/sites', name, search: { status: 'active' }, shared: true },
      })
      .expect(201);
    const path = `/api/views/${id}`;
    const page = await console.open(editor, `/inventory/sites?status=active&saved=${id}`);
    await menu(page, name).waitFor();
    return {
      page,
      change: (fields: object) => client.put(path, fields).expect(200),
      read: () => client.get<View>(path).expect(200),
    };
  }
  const conflictIn = (page: Page) => page.getByRole('dialog', { name: /has changed/ });
  const saveMarked = async (page: Page) => {
    await conflictIn(page).getByRole('button', { name: 'Save the marked values' }).click();
    await conflictIn(page).waitFor({ state: 'detached' });
  };

  test('what others have saved in a view stays, unless one decides otherwise', async () => {
    const { page, change, read } = await openShared('Live');
    await change({ search: { status: 'active', q: 'ams' } });
    // The view is read again, and the list shows what it has shown.
    await menu(page, 'Live').click();
    await item(page, 'Open the list with this view').click();
    await menu(page, /Live changed/).waitFor();
    await page.getByRole('button', { name: /^Planned/ }).click();
    await row(page, 'ber1').waitFor();
    await menu(page, /Live changed/).click();
    await item(page, 'Save what the list shows now').click();
    await conflictIn(page).getByRole('row', { name: /ams/ }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect((await read()).search).toEqual({ status: 'active', q: 'ams' });
    await saveMarked(page);
    const { search } = await read();
    // The order is that of the list: the view has had none.
    expect(search).toEqual({ status: 'active,planned', q: 'ams', sort: 'name' });
  });

  test('two names of a view are a choice, and other changes of two users are merged', async () => {
    const { page, change, read } = await openShared('Named');
    await menu(page, 'Named').click();
    await item(page, /Rename/).click();
    const dialog = page.getByRole('dialog', { name: 'Change Named' });
    await dialog.getByLabel('Name').fill('Mine');
    await change({ name: 'Theirs' });
    await dialog.getByRole('button', { name: 'Save' }).click();
    await conflictIn(page)
      .getByRole('row', { name: /Named Theirs Mine/ })
      .waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await conflictIn(page).getByRole('radio', { name: 'Theirs' }).check();
    await saveMarked(page);
    expect((await read()).name).toBe('Theirs');
    // What the list shows is another part of the view: a new name does not hinder saving it.
    await change({ name: 'Last' });
    await page.getByRole('button', { name: /^Planned/ }).click();
    await menu(page, /changed/).click();
    await item(page, 'Save what the list shows now').click();
    await menu(page, /^Last$/).waitFor();
    expect(await read()).toMatchObject({ name: 'Last' });
  });

  test('a view that others have changed or deleted is not deleted or changed unseen', async () => {
    const { page, change, read } = await openShared('Kept');
    await menu(page, 'Kept').click();
    await item(page, /Delete/).click();
    await change({ name: 'Kept longer' });
    await page.getByRole('button', { name: 'Delete view' }).click();
    await page.getByRole('alert').getByText('version_conflict').waitFor();
    const { id, name } = await read();
    expect(name).toBe('Kept longer');
    // The id of a view leads to its list, as in the audit log.
    await page.goto(`/id/${id}`);
    await menu(page, 'Kept longer').waitFor();
    expect(new URL(page.url()).pathname).toBe('/inventory/sites');
  });

  test('a view with a value that the service refuses says which filter it is, and lists without it', async () => {
    const field = { name: 'floor', resource: 'sites', type: 'integer' };
    await admin(console.app).post('/api/inventory/custom-fields', field).expect(201);
    const search = {
      ...{ 'customFields.floor': 'first', status: 'broken' },
      ...{ q: 'ams', sort: '-nothing' },
    };
    const view = await admin(console.app)
      .post<View>('/api/views', { list: '/inventory/sites', name: 'Broken', search, shared: true })
      .expect(201);
    const page = await console.open(editor, '/inventory/sites?sort=name');
    await row(page, 'ber1').waitFor();
    await menu(page, 'Views').click();
    await item(page, 'Broken').click();
    await page.getByText('The sites cannot be listed like this').waitFor();
    // Rows of another filter are not those of the view.
    await row(page, 'ber1').waitFor({ state: 'detached' });
    await page.getByText(/^Status “broken” must/).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'List without Status' }).click();
    await page.getByRole('button', { name: 'List without Order' }).click();
    await page.getByText(/^floor “first” must/).waitFor();
    await page.getByRole('button', { name: 'List without floor' }).click();
    await row(page, 'ams1').waitFor();
    expect(new URL(page.url()).searchParams.get('saved')).toBe(view.id);
    expect(await row(page, 'ber1').count()).toBe(0);
  });

  test('a view whose filter the list has no more shows no other records, and says why', async () => {
    const client = admin(console.app);
    const field = { name: 'zone', resource: 'sites', type: 'text' };
    const { id } = await client
      .post<{ id: string }>('/api/inventory/custom-fields', field)
      .expect(201);
    const search = { 'customFields.zone': 'north', status: 'active' };
    const view = await client
      .post<View>('/api/views', { list: '/inventory/sites', name: 'North', search, shared: true })
      .expect(201);
    await client.delete(`/api/inventory/custom-fields/${id}`).expect(204);
    const others = [
      ['/schedules', 'Old schedules'],
      ['/approvals', 'Old requests'],
    ] as const;
    for (const [list, name] of others)
      await client
        .post<View>('/api/views', { list, name, search: { retired: 'x' }, shared: true })
        .expect(201);
    const page = await console.open(editor, `/id/${view.id}`);
    const notice = page.getByText('A filter of this view no longer applies');
    await notice.waitFor();
    await page.getByText(/customFields\.zone “north” is no filter of this list/).waitFor();
    expect(await row(page, 'ams1').count()).toBe(0);
    expect(await page.getByRole('button', { name: /Export/ }).count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'List without customFields.zone' }).click();
    await row(page, 'ams1').waitFor();
    await row(page, 'ber1').waitFor({ state: 'detached' });
    await menu(page, /North changed/).waitFor();
    for (const [list, name] of others) {
      await page.goto(list);
      await menu(page, 'Views').click();
      await item(page, name).click();
      await notice.waitFor();
      await page.getByRole('button', { name: 'List without retired' }).click();
      await notice.waitFor({ state: 'detached' });
    }
  });
});
