import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { UserRecord, UserWithPassword } from '../../api/auth/schemas.ts';
import { describePages, signIn } from '../support/console/console.ts';
import { accessibilityProblems, OWN } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { startOidcPeer } from '../support/oidcPeer.ts';
import { describeWith } from '../support/programs.ts';
import { IDP, startSamlPeer } from '../support/samlPeer.ts';
import { startSlapd } from '../support/slapd.ts';
import { admin, createUser, PASSWORD, type Page as ListOf } from '../support/users.ts';

describePages('signing in', (console) => {
  const createProvider = (kind: string, name: string, config: object) =>
    admin(console.app)
      .post<{ id: string }>('/api/auth/providers', { kind, name, config })
      .expect(201);

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
    // Nothing is said of pages that the user cannot open yet.
    await page.waitForLoadState('networkidle');
    expect(await page.locator('h1').count()).toBe(1);
    await page.getByLabel('New password', { exact: true }).fill('short');
    await page.getByLabel('New password again').fill('short');
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByText('must have at least 12 characters').first().waitFor();
    await page.getByLabel('New password', { exact: true }).fill(PASSWORD);
    await page.getByLabel('New password again').fill(PASSWORD);
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
    // After a reload the password is not known any more, and not needed.
    await page.reload();
    await page.getByRole('navigation', { name: 'Pages' }).waitFor();
  });

  test('is not offered at another address than that of the server, which it names instead', async () => {
    const user = await createUser(console.app, 'viewer');
    const page = await (await console.profileOf(user)).newPage();
    const origin = 'https://holdfast.example.net';
    await page.route('**/api/console', async (route) => {
      const response = await route.fetch();
      const settings = (await response.json()) as object;
      await route.fulfill({ response, json: { ...settings, origin } });
    });
    const error = { in: 'header', pointer: '/Origin', code: 'origin', message: 'is another' };
    const json = { code: 'invalid_request', title: 'Invalid request', detail: '', errors: [error] };
    await page.route('**/api/auth/refresh', (route) =>
      route.fulfill({ status: 400, contentType: 'application/problem+json', json, ...OWN }),
    );
    for (const open of [() => page.goto('/jobs?status=failed'), () => page.reload()]) {
      await open();
      const link = page.getByRole('link', { name: origin });
      await link.waitFor();
      expect(await link.getAttribute('href')).toBe(
        origin + new URL(page.url()).search.replace(/^/, '/sign-in'),
      );
      await page.getByText('HOLDFAST_PUBLIC_URL').waitFor();
      expect(await page.getByLabel('User name').count()).toBe(0);
      expect(await accessibilityProblems(page)).toEqual([]);
    }
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
      provider = await createProvider('oidc', 'Example ID', {
        issuer: peer.issuer,
        clientId: 'holdfast',
        clientSecret: 'holdfast-secret-of-the-client',
        allowPrivateNetwork: true,
        allowHttp: true,
      });
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
      const context = await console.profile();
      const opener = await context.newPage();
      const isStart = '**/api/auth/login/oidc/start';
      await context.route(isStart, (route) => route.fulfill({ status: 503, json: {} }));
      await opener.goto('/sign-in');
      // Only a window that a script has opened may be closed by one.
      const [page] = await Promise.all([
        opener.waitForEvent('popup'),
        opener.evaluate(`void open('/sign-in?window=${provider.id}')`),
      ]);
      await page.getByRole('alert').getByText('503').waitFor();
      await context.unroute(isStart);
      await providerButton(page).click();
      await eventually(() => page.isClosed(), Boolean);
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

  describe('with SAML', () => {
    let peer: Awaited<ReturnType<typeof startSamlPeer>>;
    beforeAll(async () => {
      peer = await startSamlPeer(`${console.base}/api/auth/saml/callback`);
      await createProvider('saml', 'Example SAML', {
        entryPoint: peer.entryPoint,
        idpEntityId: IDP,
        idpCertificates: [peer.cert],
        displayNameAttribute: 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
      });
    });
    afterAll(() => peer.stop());

    test('leads to the page that was opened; a forged answer does not', async () => {
      const page = await (await console.profile()).newPage();
      await page.goto('/nowhere?x=1');
      const button = page.getByRole('button', { name: 'Continue with Example SAML' });
      peer.options = { key: peer.untrusted.key, cert: peer.untrusted.cert };
      await button.click();
      await page.getByRole('alert').getByText('did not confirm who you are').waitFor();
      peer.options = {};
      await button.click();
      await page.waitForURL('**/nowhere?x=1');
      await page.getByRole('button', { name: 'Account of Ada L.' }).waitFor();
    });
  });

  describeWith('slapd', 'with a directory', () => {
    let slapd: Awaited<ReturnType<typeof startSlapd>>;
    beforeAll(async () => {
      slapd = await startSlapd();
      await createProvider('ldap', 'Directory', slapd.config);
    });
    afterAll(() => slapd.stop());

    test('takes the password of the account that is chosen', async () => {
      const page = await (await console.profile()).newPage();
      await page.goto('/nowhere?x=1');
      // There are the providers of the tests before, too.
      const password = page.getByRole('button', { name: 'Sign in with a password' });
      await password.or(page.getByLabel('User name')).first().waitFor();
      if (await password.isVisible()) await password.click();
      await page.getByRole('combobox', { name: 'Account' }).click();
      await page.getByRole('option', { name: 'Directory' }).click();
      expect(await accessibilityProblems(page)).toEqual([]);
      await signIn(page, 'ada', 'bob-secret');
      await page.getByRole('alert').getByText('User name or password is wrong.').waitFor();
      await signIn(page, 'ada', 'ada-secret');
      await page.waitForURL('**/nowhere?x=1');
      await page.getByRole('button', { name: 'Account of ada Person' }).waitFor();
    });
  });
});
