import { expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { AssignmentRecord } from '../../api/access/schemas.ts';
import { describeConsole, describePages } from '../support/console/console.ts';
import { admin, createUser, first, type Page as ListPage } from '../support/users.ts';

const newSite = (page: Page) => page.getByRole('link', { name: 'New site' });

describeConsole('rights that change while a tab is open', (console) => {
  test('are seen without a reload', async () => {
    const user = await createUser(console.app, 'viewer');
    const page = await console.open(user, '/inventory/sites');
    await page.getByRole('heading', { name: 'Sites' }).waitFor();
    expect(await newSite(page).count()).toBe(0);
    const assignment = { userId: user.id, roleId: 'operator' };
    const { id } = await admin(console.app)
      .post<AssignmentRecord>('/api/rbac/assignments', assignment)
      .expect(201);
    await newSite(page).first().waitFor();
    await admin(console.app).delete(`/api/rbac/assignments/${id}`).expect(204);
    await newSite(page).first().waitFor({ state: 'detached' });
  });
});

describePages('rights of a tab without events', (console) => {
  test('are read again after a refusal, and after changes of its own', async () => {
    const user = await createUser(console.app, 'operator', 'viewer');
    const context = await console.profileOf(user);
    await context.route('**/api/events?follow', () => undefined);
    const page = await context.newPage();
    await page.goto('/inventory/sites/new');
    const name = page.getByRole('textbox', { name: /^Name/ });
    await name.fill('refused');
    const save = page.getByRole('button', { name: 'Create site' });
    await save.and(page.locator(':not([aria-disabled=true])')).waitFor();
    const assignments = await admin(console.app)
      .get<ListPage<AssignmentRecord>>(`/api/rbac/assignments?userId=${user.id}&roleId=operator`)
      .expect(200);
    await admin(console.app)
      .delete(`/api/rbac/assignments/${first(assignments).id}`)
      .expect(204);
    await save.click();
    await page.getByText('permission_denied').first().waitFor();
    await save.waitFor({ state: 'detached' });
    expect(await name.inputValue()).toBe('refused');

    const administrator = await createUser(console.app, 'platform-admin');
    const theirs = await console.profileOf(administrator);
    await theirs.route('**/api/events?follow', () => undefined);
    const other = await theirs.newPage();
    await other.goto(`/access/users/${user.id}`);
    await other
      .getByRole('link', { name: /Assign/ })
      .first()
      .click();
    await other.getByRole('combobox', { name: 'Role' }).click();
    await other.getByRole('option', { name: /^Operator/ }).click();
    await Promise.all([
      other.waitForRequest('**/api/rbac/summary'),
      other.getByRole('button', { name: 'Assign role' }).click(),
    ]);
  });
});
