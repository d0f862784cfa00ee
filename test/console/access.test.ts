import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import type { AssignmentRecord, MappingRecord, RoleRecord } from '../../api/access/schemas.ts';
import type { UserRecord } from '../../api/auth/schemas.ts';
import type { ProviderRecord } from '../../api/auth/providerRoutes.ts';
import type { TokenRecord } from '../../api/auth/tokenSchemas.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { startOidcPeer } from '../support/oidcPeer.ts';
import {
  admin,
  createUser,
  first,
  login,
  PASSWORD,
  seedTenant,
  type Page as ListPage,
  type TestUser,
} from '../support/users.ts';

const SECRET = 'holdfast-secret-of-the-client';

/** Everything on the page as text, with the values of its fields. */
const everythingOn = (page: Page) =>
  page.evaluate<string>(
    `document.documentElement.outerHTML + [...document.querySelectorAll('input, textarea')].map((each) => each.value)`,
  );

const idIn = (page: Page, kind: string): string =>
  assertDefined(new RegExp(`${kind}_\\w+`).exec(page.url()), `id in ${page.url()}`)[0];

/** A field of text by its whole label. */
const field = (page: Page, name: string | RegExp) =>
  page.getByRole('textbox', { name, exact: true });

/** Chooses an option of a field that searches. */
async function pick(page: Page, label: string, text: string, option: string | RegExp = text) {
  await page.getByRole('combobox', { name: label }).fill(text);
  await page.getByRole('option', { name: option }).first().click();
}

describePages(
  'access',
  (console) => {
    let root: TestUser;
    let peer: Awaited<ReturnType<typeof startOidcPeer>>;

    beforeAll(async () => {
      root = await createUser(console.app, 'platform-admin');
      peer = await startOidcPeer([`${console.base}/api/auth/oidc/callback`]);
      await seedTenant(console.app, 'red');
    });
    afterAll(() => peer.stop());

    test('a user is created with a password that is shown once, gets a role, and can sign in', async () => {
      const page = await console.open(root, '/');
      await page.getByRole('link', { name: 'Access', exact: true }).click();
      await page.waitForURL('**/access/users');
      await page.getByRole('link', { name: 'New user' }).click();
      await field(page, 'User name').fill(root.username);
      await page.getByRole('button', { name: 'Create user' }).click();
      await page.getByText(/already exists/).waitFor();
      await field(page, 'User name').fill('ada');
      await field(page, 'Name').fill('Ada Lovelace');
      await field(page, 'E-mail').fill('not an address');
      await page.getByRole('button', { name: 'Create user' }).click();
      await page
        .getByText(/^must /)
        .first()
        .waitFor();
      await field(page, 'E-mail').fill('ada@example.net');
      await page.getByRole('button', { name: 'Create user' }).click();
      const dialog = page.getByRole('dialog');
      const password = (await dialog.locator('[data-secret]').textContent()) ?? '';
      expect(await accessibilityProblems(page)).toEqual([]);
      await dialog.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByRole('heading', { name: 'Ada Lovelace' }).waitFor();
      await dialog.waitFor({ state: 'detached' });
      expect(await everythingOn(page)).not.toContain(password);
      await page.getByText('Must change password').waitFor();
      const { accessToken } = await login(console.app, 'ada', password).expect(200);
      const id = idIn(page, 'usr');

      // Who and where are known from the page before; the role is chosen.
      await page.getByRole('link', { name: 'Assign role' }).click();
      await pick(page, 'Role', 'Operator');
      await page.getByText(/^What Operator allows/).click();
      await page.getByRole('img', { name: 'not user:write' }).waitFor();
      await page.getByText('A tenant', { exact: true }).click();
      await page.getByRole('combobox', { name: 'Tenant' }).fill('red');
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('button', { name: 'Assign role' }).click();
      const grants = page.getByRole('region', { name: 'Roles and where: grants' });
      await grants.getByRole('row', { name: /Operator tenant red assignment/ }).waitFor();

      // The session of her login is listed, and ends for good.
      await page.getByRole('button', { name: 'End all' }).click();
      await page.getByRole('button', { name: 'End 1 session' }).click();
      await page.getByText('Not signed in anywhere.').waitFor();
      await console.app.client.as({ token: accessToken }).get('/api/auth/session').expect(401);

      await grants.getByRole('button', { name: /^Remove: Ada Lovelace has the role/ }).click();
      await page.getByRole('dialog').getByText('Now Ada Lovelace has the role Operator').waitFor();
      await page.getByRole('button', { name: 'Remove', exact: true }).click();
      await page.getByText('No role that you may see.').waitFor();
      const left = await admin(console.app)
        .get<ListPage<AssignmentRecord>>(`/api/rbac/assignments?userId=${id}`)
        .expect(200);
      expect(left.items).toEqual([]);
    });

    test('a user is changed without losing what others changed, disabled, and gets another password', async () => {
      const someone = await createUser(console.app, { roleId: 'viewer', tenantId: 'red' });
      const page = await console.open(root, `/access/users?q=${someone.username}`);
      await page.getByRole('grid').getByRole('link', { name: someone.username }).click();
      await page.getByRole('heading', { name: someone.username }).waitFor();
      await page.keyboard.press('e');
      await field(page, 'Name').fill('Mine');
      await admin(console.app)
        .put(`/api/users/${someone.id}`, { displayName: 'Theirs' })
        .expect(200);
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('dialog').getByText('Theirs').first().waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.goto(`/id/${someone.id}`);
      await page.getByRole('heading', { name: 'Theirs' }).waitFor();

      await page.getByRole('button', { name: 'Reset password' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Reset password' }).click();
      const password = (await page.locator('[data-secret]').textContent()) ?? '';
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await login(console.app, someone.username, PASSWORD).expect(401);
      await login(console.app, someone.username, password).expect(200);

      await page.getByRole('button', { name: 'Disable' }).click();
      await page.getByRole('button', { name: 'Disable user' }).click();
      await page.getByRole('button', { name: 'Enable' }).waitFor();
      await login(console.app, someone.username, password).expect(401);
      const user = await admin(console.app).get<UserRecord>(`/api/users/${someone.id}`).expect(200);
      expect(user).toMatchObject({ enabled: false, displayName: 'Theirs' });
      await page.getByRole('link', { name: 'user.reset_password' }).waitFor();
    });

    test('a service account gets a token, which is shown once, narrowed, rotated and revoked', async () => {
      const page = await console.open(root, '/access/service-accounts');
      await page.getByText('No service accounts yet').waitFor();
      await page.getByRole('link', { name: 'New service account' }).first().click();
      await field(page, 'Account').fill('ci');
      await field(page, 'Name').fill('Pipelines');
      await page.getByRole('button', { name: 'Create service account' }).click();
      await page.getByRole('button', { name: 'New token' }).click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('All that the account has').waitFor();
      await dialog.getByLabel('Name').fill('pipeline');
      await dialog.getByRole('button', { name: 'Create token' }).click();
      const text = (await dialog.locator('[data-secret]').textContent()) ?? '';
      expect(text).toMatch(/^hfv_/);
      await dialog.getByRole('button', { name: 'I have stored it' }).click();
      await dialog.waitFor({ state: 'detached' });
      expect(await everythingOn(page)).not.toContain(text);

      await page.getByRole('button', { name: 'Rename or narrow pipeline' }).click();
      await dialog.getByText('Only these', { exact: true }).click();
      await dialog.getByLabel('job:read').check();
      await dialog.getByRole('button', { name: 'Save' }).click();
      await page.getByText('job:read').waitFor();
      await page.getByRole('button', { name: 'Rotate pipeline' }).click();
      await dialog.getByRole('button', { name: 'Rotate' }).click();
      const next = (await dialog.locator('[data-secret]').textContent()) ?? '';
      expect(next).not.toBe(text);
      await dialog.getByRole('button', { name: 'I have stored it' }).click();

      // The list of all tokens leads to the token.
      await page.goto('/access/tokens');
      await page.getByRole('grid').getByRole('link', { name: 'pipeline', exact: true }).click();
      await page.getByText('Of a service account').waitFor();
      const id = idIn(page, 'tok');
      await page.getByRole('button', { name: 'Revoke' }).click();
      await dialog.getByRole('button', { name: 'Revoke token' }).click();
      await page.getByText('Revoked', { exact: true }).first().waitFor();
      const token = await admin(console.app).get<TokenRecord>(`/api/auth/tokens/${id}`).expect(200);
      expect(token).toMatchObject({ status: 'revoked', permissions: ['job:read'] });
      // An account of a program has its own page, whatever the address says.
      await page.goto(`/id/${token.userId}`);
      await page.waitForURL(`**/access/service-accounts/${token.userId}`);
      await page.getByRole('heading', { name: 'Pipelines' }).waitFor();
    });

    test('a role is made in the matrix, changed, compared, and deleted when nobody has it', async () => {
      const page = await console.open(root, '/access/roles');
      await page.getByRole('grid').getByRole('link', { name: 'Auditor' }).click();
      await page.getByRole('heading', { name: 'Auditor', exact: true }).waitFor();
      const edit = page.getByRole('button', { name: 'Edit' });
      expect(await edit.getAttribute('aria-disabled')).toBe('true');
      await page.getByRole('button', { name: 'Copy', exact: true }).click();
      await page.getByText('It starts with what Auditor allows.').waitFor();
      await page.getByRole('button', { name: 'None' }).click();
      await field(page, 'Name').fill('Network jobs');
      await field(page, 'Id').fill('net-jobs');
      await page.getByRole('checkbox', { name: 'job:read' }).check();
      await page.getByRole('checkbox', { name: 'job:cancel' }).check();
      await page.getByRole('combobox', { name: /^Job types/ }).fill('net.*');
      await page.keyboard.press('Enter');
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('button', { name: 'Create role' }).click();
      await page.getByRole('heading', { name: 'Network jobs', exact: true }).waitFor();
      await page.getByText('net.*').waitFor();
      const read = () => admin(console.app).get<RoleRecord>('/api/rbac/roles/net-jobs');
      expect(await read().expect(200)).toMatchObject({
        permissions: ['job:cancel', 'job:read'],
        jobTypes: ['net.*'],
      });

      await page.keyboard.press('e');
      await page.getByRole('checkbox', { name: 'job:write' }).check();
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('img', { name: 'job:write', exact: true }).waitFor();
      const someone = await createUser(console.app, 'net-jobs');
      await page.getByRole('row', { name: new RegExp(someone.username) }).waitFor();
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Delete role' }).click();
      await page.getByRole('dialog').getByText('in_use').waitFor();
      await page.getByRole('button', { name: 'Back' }).click();

      await page.goto('/access/compare-roles?roles=viewer,net-jobs&only=differences');
      await page.getByRole('row', { name: /^inventory:read/ }).waitFor();
      // Both have it.
      expect(await page.getByRole('row', { name: /^job:read/ }).count()).toBe(0);
      await page.getByRole('switch', { name: 'Only differences' }).click();
      await page.getByRole('row', { name: /^job:read/ }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);

      await page.goto(`/access/assignments?roleId=net-jobs`);
      await page
        .getByRole('row', { name: new RegExp(someone.username) })
        .getByRole('checkbox')
        .check();
      await page.getByRole('button', { name: 'Remove', exact: true }).click();
      await page.getByRole('button', { name: 'Remove 1 assignment' }).click();
      await page.getByText('No assignments match the filters').waitFor();
      await page.goto('/access/roles/net-jobs');
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('button', { name: 'Delete role' }).click();
      await page.waitForURL('**/access/roles');
      await read().expect(404);
    });

    test('why someone may do something is said link by link, and what is missing', async () => {
      const someone = await createUser(console.app, { roleId: 'operator', tenantId: 'red' });
      const page = await console.open(root, '/access/explain');
      await page.getByText('Choose who, what and where').waitFor();
      await pick(page, 'Who', someone.username, new RegExp(someone.username));
      await pick(page, 'May do what', 'job:write');
      await page.getByText(/^No:/).waitFor();
      await page.getByRole('row', { name: 'Operator tenant red Yes' }).waitFor();
      await page.getByText('A tenant', { exact: true }).click();
      await page.getByRole('combobox', { name: 'Tenant' }).fill('red');
      await page.getByText(/^Yes:/).waitFor();
      await page.getByText(/has the role Operator by an/).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      // The address has the question.
      const address = page.url();
      await page.goto('/access/users');
      await page.goto(address);
      await page.getByText(/^Yes:/).waitFor();
      await page.getByRole('link', { name: 'assignment', exact: true }).click();
      await page.getByRole('heading', { name: `Operator for ${someone.username}` }).waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
    });

    test('an identity provider is set up, tested step by step, and its secret is never shown', async () => {
      const page = await console.open(root, '/access/providers');
      const answers: string[] = [];
      page.on('response', (response) => {
        if (new URL(response.url()).pathname.startsWith('/api/') && response.status() !== 204)
          void response.text().then(
            (text) => answers.push(text),
            () => undefined,
          );
      });
      await page.getByRole('link', { name: 'New identity provider' }).click();
      await page.goto('/access/providers/new?kind=oidc');
      await field(page, 'Name').fill('Company');
      await field(page, /^Issuer/).fill(peer.issuer);
      await field(page, 'Client').fill('holdfast');
      await page.locator('input[type=password]').fill(SECRET);
      // Another kind keeps what all have; what was typed for this one is there again.
      const chooseKind = async (kind: RegExp) => {
        await page.getByRole('combobox', { name: 'Kind' }).click();
        await page.getByRole('option', { name: kind }).click();
      };
      await chooseKind(/SAML/);
      expect(await field(page, 'Name').inputValue()).toBe('Company');
      expect(await field(page, /^Issuer/).count()).toBe(0);
      await chooseKind(/OpenID/);
      expect(await field(page, 'Client').inputValue()).toBe('holdfast');
      expect(await page.locator('input[type=password]').inputValue()).toBe(SECRET);
      await page.getByRole('button', { name: 'Create identity provider' }).click();
      // The service refuses http unless it is allowed.
      await page
        .getByText(/must be https/)
        .first()
        .waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByLabel(/^Allow HTTP/).check();
      await page.getByRole('button', { name: 'Create identity provider' }).click();
      await page.waitForURL('**/access/providers/idp_*');
      const id = idIn(page, 'idp');
      await page.getByText('Stored, not shown').waitFor();

      // Loopback is refused until it is allowed, and the test says so.
      await page.getByRole('button', { name: 'Test', exact: true }).click();
      const steps = page.getByRole('list', { name: 'Steps' }).getByRole('listitem');
      await page.getByText('A step failed.').waitFor();
      await steps
        .filter({ hasText: 'Resolve' })
        .getByText(/127\.0\.0\.1/)
        .waitFor();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel(/^Allow private network/).check();
      await page.getByText(/type it again/).waitFor();
      await page.locator('input[type=password]').fill(SECRET);
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('heading', { name: 'Company' }).waitFor();

      await page.getByRole('link', { name: 'Map a group' }).click();
      await field(page, 'Group').fill('net-admins');
      await pick(page, 'Role', 'Viewer');
      await page.getByText('No user that you may see.').waitFor();
      await page.getByRole('button', { name: 'Map group' }).click();
      await page
        .getByRole('heading', { name: 'Viewer for the members of the group net-admins of Company' })
        .waitFor();
      const mapping = first(
        await admin(console.app)
          .get<ListPage<MappingRecord>>(`/api/rbac/provider-mappings?providerId=${id}`)
          .expect(200),
      );
      expect(mapping).toMatchObject({ externalGroup: 'net-admins', level: 'platform' });

      await page.goto(`/access/providers/${id}`);
      await page.getByRole('combobox', { name: 'Groups to try' }).fill('net-admins');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Test', exact: true }).click();
      await page.getByText('All steps passed.').waitFor();
      const gets = page.getByRole('list', { name: 'Roles that they would get' });
      await gets.getByText('Viewer').waitFor();
      await page.getByRole('button', { name: 'Enable' }).click();
      await page.getByRole('button', { name: 'Enable identity provider' }).click();
      await page.getByRole('button', { name: 'Disable' }).waitFor();
      expect(await everythingOn(page)).not.toContain(SECRET);
      expect(answers.filter((text) => text.includes(SECRET))).toEqual([]);
      const stored = await admin(console.app)
        .get<ProviderRecord>(`/api/auth/providers/${id}`)
        .expect(200);
      expect(stored).toMatchObject({ enabled: true, config: { allowPrivateNetwork: true } });

      const person = await createUser(console.app);
      await console.app.deps
        .db('users')
        .where({ id: person.id })
        .update({ provider_id: id, external_id: '7', password_hash: null });
      await page.getByRole('button', { name: 'Edit' }).click();
      await field(page, /^Issuer/).fill(`${peer.issuer}/moved`);
      await page.locator('input[type=password]').fill(SECRET);
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page
        .getByText(/may belong to other people/)
        .first()
        .waitFor();
      await page.getByLabel(/^Keep the accounts/).check();
      expect(await accessibilityProblems(page)).toEqual([]);
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('heading', { name: 'Company' }).waitFor();

      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').getByRole('textbox').fill('Company');
      await page.getByRole('button', { name: 'Delete identity provider' }).click();
      await page.waitForURL('**/access/providers');
      await admin(console.app).get(`/api/auth/providers/${id}`).expect(404);
    });

    test('who may read a part sees that part', async () => {
      const auditor = await console.open(await createUser(console.app, 'auditor'), '/access/users');
      await auditor.getByRole('grid').getByRole('link', { name: root.username }).waitFor();
      expect(await auditor.getByRole('link', { name: 'New user' }).count()).toBe(0);
      await auditor.goto('/access/users/new');
      await auditor.getByText('New user: not for your roles').waitFor();

      const granter = await admin(console.app)
        .post<RoleRecord>('/api/rbac/roles', { name: 'Granter', permissions: ['rbac:write'] })
        .expect(201);
      const someone = await createUser(console.app, { roleId: granter.id, tenantId: 'red' });
      const page = await console.open(someone, '/access');
      await page.waitForURL('**/access/roles');
      const views = page.getByRole('navigation', { name: 'Access' }).getByRole('link');
      expect(await views.allTextContents()).toEqual([
        'Roles',
        'Assignments',
        'Group mappings',
        'Why can …',
      ]);
      const viewer = await console.open(await createUser(console.app, 'viewer'), '/');
      await viewer.getByRole('link', { name: 'Inventory' }).first().waitFor();
      expect(await viewer.getByRole('link', { name: 'Access', exact: true }).count()).toBe(0);
    });
  },
  { HOLDFAST_OUTBOUND_ALLOW: '' },
);
