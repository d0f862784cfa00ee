import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { UserRecord, UserWithPassword } from '../../api/access/schemas.ts';
import { describePages, signIn } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { startOidcPeer } from '../support/oidcPeer.ts';
import { admin, createUser, PASSWORD, type Page as ListOf } from '../support/users.ts';

describePages('signing in', (console) => {
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

  test('opens only paths of its own origin afterwards', async () => {
    const user = await createUser(console.app, 'viewer');
    const page = await console.open(user);
    for (const to of [
      '//evil.example/',
      '/\\evil.example',
      'https://evil.example',
      'javascript:1',
    ]) {
      await page.goto(`/sign-in?${new URLSearchParams({ to }).toString()}`);
      await page.getByRole('heading', { name: 'Home' }).waitFor();
      expect(new URL(page.url()).origin).toBe(console.base);
    }
  });

  describe('with an identity provider', () => {
    let peer: Awaited<ReturnType<typeof startOidcPeer>>;
    let provider: { id: string };
    beforeAll(async () => {
      peer = await startOidcPeer([`${console.base}/api/auth/oidc/callback`]);
      peer.claims = { sub: 'ada-1', preferred_username: 'ada', name: 'Ada L.' };
      provider = await admin(console.app)
        .post<{ id: string }>('/api/auth/providers', {
          kind: 'oidc',
          name: 'Example ID',
          config: {
            issuer: peer.issuer,
            clientId: 'holdfast',
            clientSecret: 'holdfast-secret-of-the-client',
            allowPrivateNetwork: true,
            allowHttp: true,
          },
        })
        .expect(201);
    });
    afterAll(() => peer.stop());

    const providerButton = (page: Page) =>
      page.getByRole('button', { name: 'Continue with Example ID' });

    test('offers it first, and leads to the page that was opened', async () => {
      const page = await (await console.profile()).newPage();
      await page.goto('/nowhere?x=1');
      await providerButton(page).waitFor();
      expect(await page.getByLabel('User name').count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('button', { name: 'Sign in with a password' }).click();
      await page.getByLabel('User name').waitFor();
      await providerButton(page).click();
      await page.waitForURL('**/nowhere?x=1');
      await page.getByRole('button', { name: 'Account of Ada L.' }).waitFor();
    });

    test('says why it failed, and leads to the page after another attempt', async () => {
      const page = await (await console.profile()).newPage();
      await page.goto('/nowhere?x=1');
      peer.tamper = (tokens) => ({ ...tokens, id_token: 'changed' });
      await providerButton(page).click();
      const alert = page.getByRole('alert');
      await alert.waitFor();
      expect(await alert.textContent()).toMatch(
        /Signing in failed.*login_failed.*req_[0-9a-z]{26}/,
      );
      peer.tamper = undefined;
      await providerButton(page).click();
      await page.waitForURL('**/nowhere?x=1');
    });

    test('says in a window for it why it cannot start, and closes the window after another attempt', async () => {
      const page = await (await console.profile()).newPage();
      const isStart = '**/api/auth/login/oidc/start';
      await page.route(isStart, (route) => route.fulfill({ status: 503, json: {} }));
      await page.goto(`/sign-in?window=${provider.id}`);
      await page.getByRole('alert').getByText('503').waitFor();
      await page.unroute(isStart);
      await providerButton(page).click();
      await page.waitForURL('**/sign-in?window=done');
    });

    test('opens a window for it when a session has expired, and the page goes on', async () => {
      const page = await (await console.profile()).newPage();
      await page.goto('/');
      await providerButton(page).click();
      await page.getByRole('button', { name: 'Account of Ada L.' }).waitFor();
      const { items } = await admin(console.app)
        .get<ListOf<UserRecord>>('/api/users?q=ada')
        .expect(200);
      await page.keyboard.press('Control+k');
      const field = page.getByRole('combobox', { name: 'Search' });
      for (const enabled of [false, true])
        await admin(console.app).put(`/api/users/${items[0]?.id}`, { enabled }).expect(200);
      await field.fill('typed with care');
      const dialog = page.getByRole('dialog', { name: 'Your session has expired' });
      const [popup] = await Promise.all([
        page.waitForEvent('popup'),
        dialog.getByRole('button', { name: 'Continue with Example ID' }).click(),
      ]);
      await dialog.waitFor({ state: 'detached' });
      await eventually(() => popup.isClosed(), Boolean);
      await page.getByText('Nothing found').waitFor();
      expect(await field.inputValue()).toBe('typed with care');
    });
  });
});
