import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

describePages('the inventory', (console) => {
  let viewer: TestUser;
  let administrator: TestUser;
  const ids: Record<string, string> = {};

  const create = async (resource: string, record: object): Promise<string> => {
    const path = `/api/inventory/${resource}`;
    const { id } = await admin(console.app).post<WithId>(path, record).expect(201);
    return id;
  };

  beforeAll(async () => {
    viewer = await createUser(console.app, 'viewer');
    administrator = await createUser(console.app, 'platform-admin');
    ids.region = await create('regions', { name: 'Europe' });
    ids.site = await create('sites', { name: 'ams1', status: 'planned' });
    ids.other = await create('sites', { name: 'fra1' });
    ids.parent = await create('prefixes', { cidr: '10.20.0.0/16', status: 'container' });
    ids.prefix = await create('prefixes', { cidr: '10.20.1.0/24', siteId: ids.site });
    await create('ip-addresses', { address: '10.20.1.7', dnsName: 'a.example.net' });
    await create('racks', { name: 'ams1-r1', siteId: ids.site });
  });

  test('is found from its page to a record and what refers to it, with the keyboard', async () => {
    const page = await console.open(viewer, '/search');
    await page.getByRole('heading', { name: 'Search' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('heading', { name: 'Search' }).click();
    await page.keyboard.type('gi');
    await page.getByRole('link', { name: 'Sites' }).click();
    // Counts by status, and the names of the records in their order.
    await page.getByRole('button', { name: /^Planned 1/ }).click();
    await page.getByRole('gridcell', { name: 'fra1' }).waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'ams1' }).click();
    await page.getByRole('heading', { name: 'ams1', exact: true }).waitFor();
    await page.getByRole('link', { name: '1 rack' }).waitFor();
    await page.getByRole('link', { name: '1 prefix' }).click();
    await page.getByRole('link', { name: '10.20.1.0/24' }).waitFor();
    expect(new URL(page.url()).searchParams.get('siteId')).toBe(ids.site);
    expect(await page.getByRole('link', { name: '10.20.0.0/16' }).count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('of every resource has a list and needs no page of its own', async () => {
    const page = await console.open(viewer, '/inventory');
    const links = page.getByRole('main').getByRole('listitem').getByRole('link');
    await links.first().waitFor();
    const paths = await Promise.all((await links.all()).map((link) => link.getAttribute('href')));
    expect(paths).toHaveLength(20);
    for (const path of paths) {
      await page.goto(path ?? '');
      await page
        .getByRole('grid')
        .or(page.getByText(/^No .+ yet$/))
        .first()
        .waitFor();
    }
  });

  test('shows how much of a prefix is used, and sorts by network', async () => {
    const page = await console.open(viewer, '/inventory/prefixes');
    const row = page.getByRole('row', { name: /10\.20\.1\.0\/24/ });
    await row.getByText('0.4 %').waitFor();
    const order = await page.getByRole('link', { name: /^10\.20/ }).allTextContents();
    expect(order).toEqual(['10.20.0.0/16', '10.20.1.0/24']);
  });

  test('keeps the history of a record, and shows it as it was', async () => {
    const [former, present] = [
      await create('regions', { name: 'Prussia' }),
      await create('regions', { name: 'Brandenburg' }),
    ];
    const site = { name: 'ber1', address: 'Old street 1', regionId: former };
    const id = await create('sites', site);
    const path = `/api/inventory/sites/${id}`;
    await admin(console.app)
      .put(path, { address: 'New street 2', regionId: present }, { 'if-match': '"1"' })
      .expect(200);
    const page = await console.open(viewer, `/inventory/sites/${id}`);
    const history = page.getByRole('region', { name: 'History' });
    await history.getByText('Old street 1').first().waitFor();
    await history.getByRole('link', { name: 'Show as it was then' }).last().click();
    await page.getByText('As it was on').waitFor();
    const fields = page.getByRole('region', { name: 'Fields' });
    await fields.getByText('Old street 1').waitFor();
    const since = page.getByRole('region', { name: 'Changed since' });
    await since.getByText('New street 2').waitFor();
    for (const region of ['Prussia', 'Brandenburg']) await since.getByText(region).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.getByRole('button', { name: 'Back to now' }).click();
    await fields.getByText('New street 2').waitFor();
  });

  test('follows changes that others make', async () => {
    const page = await console.open(viewer, '/inventory/sites');
    await page.getByRole('link', { name: 'fra1' }).waitFor();
    await create('sites', { name: 'lon1' });
    await page.getByRole('link', { name: 'lon1' }).waitFor();
  });

  test('counts again what refers to a record, all records, and what uses a prefix', async () => {
    const site = await create('sites', { name: 'counted' });
    await create('prefixes', { cidr: '10.99.0.0/24' });
    const [record, all, prefixes] = [
      await console.open(viewer, `/inventory/sites/${site}`),
      await console.open(viewer, '/inventory'),
      await console.open(viewer, '/inventory/prefixes'),
    ];
    const racks = all.getByRole('listitem').filter({ hasText: /^Racks/ });
    const used = prefixes.getByRole('row', { name: /10\.99\.0\.0\/24/ });
    await record.getByText('No record refers to it.').waitFor();
    await racks.getByText('1', { exact: true }).waitFor();
    await used.getByText('0 %').waitFor();
    await create('racks', { name: 'counted-r1', siteId: site });
    await create('ip-addresses', { address: '10.99.0.7' });
    await record.getByRole('link', { name: '1 rack' }).waitFor();
    await racks.getByText('2', { exact: true }).waitFor();
    await used.getByText('0.4 %').waitFor();
  });

  test('creates and changes records, and shows what changes before it is saved', async () => {
    const page = await console.open(administrator, '/inventory/sites');
    await page.getByRole('link', { name: 'ams1' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'New site' }).click();
    const save = page.getByRole('button', { name: 'Create site' });
    // Nothing can be saved before it is planned.
    expect(await save.getAttribute('aria-disabled')).toBe('true');
    await page.getByLabel('Name').fill('ams1');
    const plan = page.getByRole('region', { name: 'What changes' });
    await plan.getByRole('link', { name: 'open the site' }).waitFor();
    expect(await save.getAttribute('aria-disabled')).toBe('true');
    await page.getByLabel('Name').fill('osl1');
    await plan.getByText('Create', { exact: true }).waitFor();
    await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' });
    expect(await accessibilityProblems(page)).toEqual([]);
    await save.click();
    await page.getByRole('heading', { name: 'osl1', exact: true }).waitFor();

    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    await page.getByLabel('Status').selectOption({ label: 'Retired' });
    await plan.getByText('Retired', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Save changes' }).click();
    const history = page.getByRole('region', { name: 'History' });
    await history.getByText('changed it').waitFor();
    await history.getByText('Retired', { exact: true }).waitFor();
    const { items } = await admin(console.app)
      .get<{ items: { status: string; version: number }[] }>('/api/inventory/sites?q=osl1')
      .expect(200);
    expect(items).toMatchObject([{ status: 'retired', version: 2 }]);
  });

  test('clears what is emptied in a form', async () => {
    const record = {
      name: 'ath1',
      description: 'Old hall',
      address: 'Street 1',
      status: 'retired',
    };
    const id = await create('sites', record);
    const page = await console.open(administrator, `/inventory/sites/${id}/edit`);
    await page.getByLabel('Description').fill('');
    await page.getByLabel('Address').fill('');
    await page.getByLabel('Status').selectOption({ index: 0 });
    await page.getByRole('region', { name: 'What changes' }).getByText('Old hall').waitFor();
    await page.locator('[aria-busy="true"]').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Save changes' }).click();
    await page.getByRole('region', { name: 'History' }).getByText('changed it').waitFor();
    await admin(console.app)
      .get(`/api/inventory/sites/${id}`)
      .expect(200)
      .then((site) =>
        expect(site).toMatchObject({ description: '', address: null, status: 'active' }),
      );
  });

  test('has in a form the custom fields of the tenant of the record', async () => {
    const ofTenant = (tenant: string) =>
      console.app.client.as({ actor: 'root', roles: 'platform-admin', tenant });
    const grants = ['red', 'blue'].map((tenantId) => ({ roleId: 'operator', tenantId }));
    const user = await createUser(console.app, ...grants);
    for (const tenant of ['red', 'blue'])
      await ofTenant(tenant)
        .post('/api/inventory/custom-fields', {
          ...{ resource: 'sites', name: `${tenant}_owner`, type: 'text' },
        })
        .expect(201);
    const { id } = await ofTenant('red')
      .post<WithId>('/api/inventory/sites', { name: 'red1' })
      .expect(201);
    await admin(console.app).put(`/api/users/${user.id}`, { tenantId: 'blue' }).expect(200);
    const page = await console.open(user, `/inventory/sites/${id}/edit`);
    await page.getByLabel(/red.owner/i).waitFor();
    expect(await page.getByLabel(/blue.owner/i).count()).toBe(0);
    await page.goto(`/inventory/sites/${id}`);
    await page.getByText('red_owner').waitFor();
    expect(await page.getByText('blue_owner').count()).toBe(0);
    await page.goto('/inventory/sites/new');
    await page.getByLabel(/blue.owner/i).waitFor();
    expect(await page.getByLabel(/red.owner/i).count()).toBe(0);
  });

  test('has in a list the custom fields of the tenant that it is filtered by, or says whose they are', async () => {
    const client = admin(console.app).as({
      actor: 'root',
      roles: 'platform-admin',
      tenant: 'pink',
    });
    const fields = [
      { resource: 'sites', name: 'pink_zone', type: 'choice', choices: ['a', 'b'] },
      { resource: 'sites', name: 'pink_wing', type: 'text' },
    ];
    for (const field of fields)
      await client.post('/api/inventory/custom-fields', field).expect(201);
    for (const [name, zone] of [
      ['pink1', 'a'],
      ['pink2', 'b'],
    ])
      await client
        .post('/api/inventory/sites', { name, customFields: { pink_zone: zone } })
        .expect(201);
    const shown = (page: Page, name: string) => page.getByRole('link', { name, exact: true });
    const filter = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
    const notice = /custom fields are those of the tenant/;

    // Everybody's sites: the fields of the platform, and that which the address names.
    const search = 'customFields.pink_zone=a&columns=name,customFields.pink_wing';
    const page = await console.open(administrator, `/inventory/sites?${search}`);
    await shown(page, 'pink1').waitFor();
    expect(await shown(page, 'pink2').count()).toBe(0);
    await page.getByRole('columnheader', { name: 'pink_wing' }).waitFor();
    await page.getByText(notice).waitFor();
    await page.goto('/inventory/sites');
    await filter(page, 'Status').or(filter(page, 'Tag')).first().waitFor();
    expect(await filter(page, 'pink_zone').count()).toBe(0);
    await page.goto('/inventory/sites?tenantId=pink');
    await filter(page, 'pink_zone').waitFor();
    expect(await page.getByText(notice).count()).toBe(0);
    // What belongs to the platform has no fields of a tenant, and files say whose fields they have.
    await client
      .post('/api/inventory/custom-fields', {
        resource: 'platforms',
        name: 'pink_os',
        type: 'text',
      })
      .expect(201);
    const user = await createUser(console.app, { roleId: 'operator', tenantId: 'pink' });
    const other = await console.open(user, '/inventory/imports/new?resource=sites');
    await other.getByText(/for the tenant pink with pink_wing pink_zone/).waitFor();
    await other.goto('/inventory/platforms?tenantId=pink');
    await other.getByRole('heading', { name: 'Platforms' }).waitFor();
    await other.getByText('tenantId “pink” is no filter of this list').waitFor();
    expect(await filter(other, 'pink_os').count()).toBe(0);
  });

  test('shows who uses a record before it is deleted', async () => {
    const page = await console.open(administrator, `/inventory/sites/${ids.site}`);
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete the site ams1' });
    await dialog.getByRole('link', { name: 'open the rack' }).waitFor();
    expect(await dialog.getByRole('button', { name: 'Delete site' }).isDisabled()).toBe(true);
    expect(await accessibilityProblems(page)).toEqual([]);
    const free = await create('sites', { name: 'rom1' });
    await page.goto(`/inventory/sites/${free}`);
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete site' }).click();
    await page.getByRole('heading', { name: 'Sites', level: 1 }).waitFor();
    await admin(console.app).get(`/api/inventory/sites/${free}`).expect(404);
  });

  test('keeps what is typed when others change the record', async () => {
    const id = await create('sites', { name: 'par1', address: 'Rue 1', regionId: ids.region });
    const page = await console.open(administrator, `/inventory/sites/${id}/edit`);
    // References have their names.
    const region = page.getByRole('combobox', { name: 'Region' });
    await eventually(
      () => region.inputValue(),
      (shown) => shown === 'Europe',
    );
    await page.getByLabel('Address').fill('Rue 2');
    await admin(console.app)
      .put(`/api/inventory/sites/${id}`, { address: 'Rue 3' }, { 'if-match': '"1"' })
      .expect(200);
    const plan = page.getByRole('region', { name: 'What changes' });
    await plan.getByText('Rue 2').waitFor();
    await page.getByRole('button', { name: 'Save changes' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Rue 3').waitFor();
    await dialog.getByText('Rue 2').first().waitFor();
  });

  test('asks for approval of a change instead of making it', async () => {
    const page = await console.open(administrator, '/inventory/prefixes/new');
    await page.getByLabel('Cidr').fill('10.20.2.0/24');
    const plan = page.getByRole('region', { name: 'What changes' });
    await plan.getByText('Create', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Ask for approval' }).click();
    const dialog = page.getByRole('dialog', { name: 'Ask for approval' });
    await dialog.getByRole('checkbox').first().check();
    await dialog.getByRole('button', { name: 'Ask for approval' }).click();
    await page.getByRole('heading', { name: 'Create a prefix' }).waitFor();
    await page.getByText('10.20.2.0/24').first().waitFor();
  });

  test('lets an operator of one site change it, and ask those who may decide there', async () => {
    const site = await create('sites', { name: 'dub1' });
    const other = await create('sites', { name: 'dub2' });
    const operator = await createUser(console.app, { roleId: 'operator', siteId: site });
    const decider = await createUser(console.app, { roleId: 'approver', siteId: site });
    const elsewhere = await createUser(console.app, { roleId: 'approver', siteId: other });
    const page = await console.open(operator, `/inventory/sites/${site}/edit`);
    await page.getByLabel('Address').fill('Quay 1');
    await page.getByRole('button', { name: 'Ask for approval' }).click();
    const asking = page.getByRole('dialog', { name: 'Ask for approval' });
    await asking.getByRole('checkbox', { name: decider.username }).check();
    expect(await asking.getByRole('checkbox', { name: elsewhere.username }).count()).toBe(0);
    await asking.getByRole('button', { name: 'Ask for approval' }).click();
    await page.getByRole('heading', { name: 'Change the site dub1' }).waitFor();
    await page.goto('/inventory/sites');
    await page.getByLabel('Select dub1').click();
    const change = page.getByRole('button', { name: 'Change …' });
    expect(await change.getAttribute('aria-disabled')).toBeNull();
    await page.goto(`/inventory/sites/${site}`);
    const remove = page.getByRole('button', { name: 'Delete', exact: true });
    expect(await remove.getAttribute('aria-disabled')).toBeNull();
  });
});
