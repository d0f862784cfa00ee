import { beforeAll, expect, test } from '@jest/globals';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

describePages('the inventory', (console) => {
  let viewer: TestUser;
  const ids: Record<string, string> = {};

  const create = async (resource: string, record: object): Promise<string> => {
    const path = `/api/inventory/${resource}`;
    const { id } = await admin(console.app).post<WithId>(path, record).expect(201);
    return id;
  };

  beforeAll(async () => {
    viewer = await createUser(console.app, 'viewer');
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
    const id = await create('sites', { name: 'ber1', address: 'Old street 1' });
    const path = `/api/inventory/sites/${id}`;
    await admin(console.app)
      .put(path, { address: 'New street 2' }, { 'if-match': '"1"' })
      .expect(200);
    const page = await console.open(viewer, `/inventory/sites/${id}`);
    const history = page.getByRole('region', { name: 'History' });
    await history.getByText('Old street 1').first().waitFor();
    await history.getByRole('link', { name: 'Show as it was then' }).last().click();
    await page.getByText('As it was on').waitFor();
    const fields = page.getByRole('region', { name: 'Fields' });
    await fields.getByText('Old street 1').waitFor();
    await page.getByRole('region', { name: 'Changed since' }).getByText('New street 2').waitFor();
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
});
