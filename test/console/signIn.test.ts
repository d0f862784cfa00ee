import { expect, test } from '@jest/globals';
import type { UserWithPassword } from '../../api/access/schemas.ts';
import { describeConsole, signIn } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, PASSWORD } from '../support/users.ts';

describeConsole('signing in', (console) => {
  test('leads to the page that was opened, and a reload keeps the session', async () => {
    const user = await createUser(console.app, 'platform-admin');
    const page = await (await console.profile()).newPage();
    await page.goto('/?from=a-link');
    await page.waitForURL('**/sign-in?to=**');
    expect(await accessibilityProblems(page)).toEqual([]);
    await signIn(page, user.username);
    await page.waitForURL('**/?from=a-link');
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    expect(await page.title()).toBe('Home · Holdfast');
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.reload();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
  });

  test('with a wrong password says why it failed, and with which request', async () => {
    const user = await createUser(console.app, 'viewer');
    const page = await (await console.profile()).newPage();
    await page.goto('/sign-in');
    await signIn(page, user.username, 'not the password');
    const alert = page.getByRole('alert');
    await alert.waitFor();
    expect(await alert.textContent()).toMatch(/^Login failed.*login_failed.*req_[0-9a-z]{26}/);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('with a one-time password requires another one first', async () => {
    const { username, oneTimePassword } = await admin(console.app)
      .post<UserWithPassword>('/api/users', { username: 'newcomer' })
      .expect(201);
    const page = await (await console.profile()).newPage();
    await page.goto('/');
    await signIn(page, username, oneTimePassword ?? '');
    await page.getByRole('heading', { name: 'Choose a password' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByLabel('New password', { exact: true }).fill('short');
    await page.getByLabel('New password again').fill('short');
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByText('must have at least 12 characters').waitFor();
    await page.getByLabel('New password', { exact: true }).fill(PASSWORD);
    await page.getByLabel('New password again').fill(PASSWORD);
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    // After a reload the password is not known any more, and not needed.
    await page.reload();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  });
});
