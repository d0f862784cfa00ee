import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { assertDefined } from '../../domain/shared/assert.ts';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems, contentWidth, OWN } from '../support/console/page.ts';
import { eventually } from '../support/eventually.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';
import { MAP_WIDTH, rectOf } from '../../ui/areas/inventory/space/mapLayout.ts';
import { networkOf } from '../../ui/areas/inventory/space/networks.ts';

type WithId = { id: string };

/** The width of a phone. */
const NARROW = 360;

const SPACE = '/inventory/prefixes/space';

describePages('the address space', (console) => {
  let viewer: TestUser;
  let administrator: TestUser;

  const create = async (record: object, resource = 'prefixes'): Promise<string> => {
    const path = `/api/inventory/${resource}`;
    const { id } = await admin(console.app).post<WithId>(path, record).expect(201);
    return id;
  };

  beforeAll(async () => {
    viewer = await createUser(console.app, 'viewer');
    administrator = await createUser(console.app, 'platform-admin');
    await create({ cidr: '10.0.0.0/8', status: 'container' });
    await create({ cidr: '10.0.0.0/9', status: 'container' });
    await create({ cidr: '10.0.0.0/12', status: 'reserved' });
    await create({ cidr: '10.16.0.0/12', allocationMode: 'pool' });
    await create({ cidr: '10.16.4.0/24', status: 'deprecated' });
    await create({ cidr: '2001:db8::/32', status: 'container' });
    await create({ cidr: '2001:db8:0:5::/64' });
    await create({ address: '10.16.4.9' }, 'ip-addresses');
  });

  const map = (page: Page, of: string) =>
    page.getByRole('application', { name: `Map of ${of}`, exact: true });
  const chosen = (page: Page) => page.getByRole('region', { name: 'Chosen network' });
  const isChosen = (page: Page, name: string) =>
    chosen(page).getByRole('heading', { name, exact: true }).waitFor();
  const row = (page: Page, network: string) =>
    page.getByRole('row').filter({ has: page.getByText(network, { exact: true }) });
  const find = async (page: Page, text: string) => {
    await page.getByLabel('Address or network').fill(text);
    await page.keyboard.press('Enter');
  };

  test('is a tree with the free networks between prefixes, and a map for keys', async () => {
    const page = await console.open(viewer, '/inventory/prefixes');
    await page.getByRole('link', { name: 'Tree and map' }).click();
    await row(page, '2001:db8::/32').waitFor();
    await map(page, '10.0.0.0/8').focus();
    for (const [key, network] of [
      ['ArrowDown', '10.0.0.0/8'],
      ['ArrowDown', '10.0.0.0/9'],
      ['ArrowRight', '10.128.0.0/9'],
      ['ArrowLeft', '10.0.0.0/9'],
      ['ArrowDown', '10.0.0.0/12'],
      ['ArrowRight', '10.16.0.0/12'],
      ['ArrowRight', '10.32.0.0/11'],
      ['ArrowRight', '10.64.0.0/10'],
      ['ArrowUp', '10.0.0.0/9'],
    ] as const) {
      await page.keyboard.press(key);
      await isChosen(page, network);
      // The tree opens with it.
      await row(page, network).waitFor();
    }
    // Without the right to create prefixes nothing offers it.
    await page.keyboard.press('ArrowRight');
    await isChosen(page, '10.128.0.0/9');
    expect(await chosen(page).getByRole('link').count()).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, NARROW)).toBe(NARROW);
  });

  test('opens the path to an address, and has what is in a network without a prefix', async () => {
    const page = await console.open(viewer, SPACE);
    await find(page, 'nonsense');
    await page.getByText('This is neither an address nor a network.').waitFor();
    await find(page, '10.16.4.9');
    await isChosen(page, '10.16.4.9/32');
    const path = chosen(page).getByRole('list', { name: 'In', exact: true }).getByRole('button');
    expect(await path.allTextContents()).toEqual([
      '10.0.0.0/8',
      '10.0.0.0/9',
      '10.16.0.0/12',
      '10.16.4.0/24',
    ]);
    await chosen(page).getByRole('link', { name: '1 IP address' }).click();
    await page.getByRole('link', { name: '10.16.4.9', exact: true }).waitFor();
    await page.goBack();
    await isChosen(page, '10.16.4.9/32');
    await chosen(page).getByRole('button', { name: '10.16.0.0/12' }).click();
    await isChosen(page, '10.16.0.0/12');
    await chosen(page).getByRole('button', { name: 'Map of it alone' }).click();
    await map(page, '10.16.0.0/12').waitFor();
    await find(page, '192.0.2.1');
    await page.getByText('No prefix contains 192.0.2.1/32 here.').waitFor();
    await find(page, '2001:db8:0:5::');
    await map(page, '2001:db8::/32').focus();
    await page.keyboard.press('ArrowUp');
    await isChosen(page, '2001:db8:0:5::/64');
    await page.keyboard.press('ArrowRight');
    await isChosen(page, '2001:db8:0:6::/63');
    expect(await accessibilityProblems(page)).toEqual([]);
  });

  test('is chosen with the pointer, moved and magnified', async () => {
    const page = await console.open(viewer, SPACE);
    const canvas = map(page, '10.0.0.0/8');
    const box = await canvas.boundingBox();
    if (!box) throw new Error('The map is not shown');
    const at = (x: number, y: number) => [box.x + box.width * x, box.y + box.height * y] as const;
    // The right half is 10.128.0.0/9; the first quarter of the left half is 10.0.0.0/11.
    await page.mouse.click(...at(0.75, 0.5));
    await isChosen(page, '10.128.0.0/9');
    await page.mouse.click(...at(0.1, 0.1));
    await isChosen(page, '10.0.0.0/12');
    // Then it fills the map.
    await page.mouse.dblclick(...at(0.1, 0.1));
    await eventually(
      async () => {
        await page.mouse.click(...at(0.9, 0.9));
        return chosen(page).getByRole('heading').textContent();
      },
      (network) => network === '10.0.0.0/12',
    );
    // Dragged to the left, it has its neighbour beside it.
    await page.mouse.move(...at(0.9, 0.5));
    await page.mouse.down();
    await page.mouse.move(...at(0.1, 0.5), { steps: 4 });
    await page.mouse.up();
    await page.mouse.click(...at(0.8, 0.5));
    await isChosen(page, '10.32.0.0/11');
    await page.mouse.move(...at(0.5, 0.5));
    for (let n = 0; n < 20; n += 1) await page.mouse.wheel(0, 400);
    await eventually(
      async () => {
        await page.mouse.click(...at(0.75, 0.5));
        return chosen(page).getByRole('heading').textContent();
      },
      (network) => network === '10.128.0.0/9',
    );
  });

  test('has new prefixes where there is free space, and follows those of others', async () => {
    const page = await console.open(administrator, `${SPACE}?at=10.128.0.0/9`);
    await chosen(page).getByLabel('Length').fill('12');
    await chosen(page).getByRole('link', { name: 'New prefix 10.128.0.0/12' }).click();
    expect(await page.getByLabel('Cidr').inputValue()).toBe('10.128.0.0/12');
    await page.getByRole('button', { name: 'Create prefix' }).click();
    await page.getByRole('heading', { name: '10.128.0.0/12', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Show in the address space' }).click();
    await isChosen(page, '10.128.0.0/12');
    await row(page, '10.144.0.0/12').waitFor();
    await create({ cidr: '10.144.0.0/13' });
    await row(page, '10.144.0.0/13').waitFor();
    await row(page, '10.152.0.0/13').waitFor();
  });

  test('allocates the next address and the next prefix, to be copied', async () => {
    const page = await console.open(administrator, `${SPACE}?at=10.16.0.0/12`);
    await chosen(page).getByRole('button', { name: 'Allocate …' }).click();
    const dialog = page.getByRole('dialog', { name: 'Allocate from 10.16.0.0/12' });
    await dialog.getByRole('button', { name: 'Allocate', exact: true }).click();
    await dialog.getByRole('button', { name: 'Copy 10.16.0.1/12' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await chosen(page).getByRole('button', { name: 'Allocate …' }).click();
    await dialog.getByText('A prefix').click();
    await dialog.getByLabel('Length').fill('25');
    await dialog.getByRole('button', { name: 'Allocate', exact: true }).click();
    await dialog.getByRole('button', { name: 'Copy 10.16.0.128/25' }).waitFor();
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    await find(page, '10.16.0.128/25');
    await row(page, '10.16.0.128/25').getByText('Active').waitFor();
  });

  test('has single addresses and ranges on the map, and leads to what an address is', async () => {
    const root = await create({ cidr: '192.0.2.0/24' });
    await create({ address: '192.0.2.130', dnsName: 'a.example.net' }, 'ip-addresses');
    await create({ startAddress: '192.0.2.64', endAddress: '192.0.2.79' }, 'ip-ranges');
    const page = await console.open(viewer, `${SPACE}?map=${root}&at=192.0.2.0/24`);
    await isChosen(page, '192.0.2.0/24');
    const box = await map(page, '192.0.2.0/24').boundingBox();
    if (!box) throw new Error('The map is not shown');
    const [whole, host] = [networkOf('192.0.2.0/24'), networkOf('192.0.2.130')];
    const rect = rectOf(assertDefined(whole, 'network'), assertDefined(host, 'address'));
    const x = box.x + ((rect.x + rect.width / 2) / MAP_WIDTH) * box.width;
    const y = box.y + (rect.y + rect.height / 2) * box.height;
    // They are read after the prefixes.
    await eventually(
      async () => {
        await page.mouse.click(x, y);
        return chosen(page).getByRole('heading').textContent();
      },
      (network) => network === '192.0.2.130/32',
    );
    await page.getByRole('list', { name: 'Legend' }).getByText('Range').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await chosen(page).getByRole('link', { name: 'About this address' }).click();
    await page
      .getByRole('link', { name: '192.0.2.130/24' })
      .or(page.getByText('a.example.net'))
      .first()
      .waitFor();
  });

  test('says what could not be read, and does not call it free', async () => {
    const page = await console.profileOf(administrator).then((context) => context.newPage());
    let isBroken = true;
    const body = { code: 'internal_error', title: 'Internal error', detail: 'It broke.' };
    const refused = { status: 500, contentType: 'application/problem+json', json: body };
    await page.route(/\/contents(\?|$)/, (route) =>
      isBroken ? route.fulfill({ ...refused, ...OWN }) : route.continue(),
    );
    // A map that has too many prefixes, of which a part cannot be read.
    await page.route(/\/map(\?|$)/, async (route) => {
      const isPart = route.request().url().includes('within=');
      if (isPart && isBroken) return route.fulfill({ ...refused, ...OWN });
      const response = await route.fetch();
      const answer = (await response.json()) as object;
      return route.fulfill({ response, json: { ...answer, complete: isPart } });
    });
    await page.goto(`${SPACE}?at=10.128.0.0/9`);
    await isChosen(page, '10.128.0.0/9');
    const note = page.getByRole('alert').filter({ hasText: 'It broke.' });
    await note.waitFor();
    const spoken = page.getByRole('status').filter({ hasText: '10.128.0.0/9, ' });
    expect(await spoken.textContent()).toBe('10.128.0.0/9, not read, 8,388,608 addresses');
    expect(await chosen(page).getByText('it may be in use').count()).toBe(1);
    expect(await chosen(page).getByText('free').count()).toBe(0);
    expect(
      await chosen(page)
        .getByRole('link', { name: /^New prefix/ })
        .count(),
    ).toBe(0);
    expect(await accessibilityProblems(page)).toEqual([]);
    isBroken = false;
    await note.getByRole('button', { name: 'Try again' }).click();
    await chosen(page).getByText('It is free: nothing else is here.').waitFor();
    expect(await note.count()).toBe(0);
    expect(await spoken.textContent()).toBe('10.128.0.0/9, free, 8,388,608 addresses');
  });

  test('does not move what is below the map when the pointer enters or leaves it', async () => {
    const page = await console.open(viewer, `${SPACE}?at=10.128.0.0%2F9`);
    await page.getByText('It is free: nothing else is here.').waitFor();
    const topOf = async () => (await chosen(page).boundingBox())?.y;
    const before = await topOf();
    await map(page, '10.0.0.0/8').hover();
    await page
      .getByText(/^10\..*addresses/)
      .and(page.locator('[aria-hidden]'))
      .waitFor();
    expect(await topOf()).toBe(before);
    await page.getByRole('heading', { level: 1 }).hover();
    expect(await topOf()).toBe(before);
  });

  test('opens what is far from the start of a prefix, and reads on while one scrolls', async () => {
    await create({ cidr: '10.200.0.0/14', status: 'container' });
    const networks = Array.from({ length: 620 }, (_, n) => `10.${200 + (n >> 8)}.${n & 255}.0/24`);
    const mutations = networks.map((cidr) => ({
      ...{ resource: 'prefixes', operation: 'create', record: { cidr } },
    }));
    await admin(console.app).post('/api/inventory/bulk', { mutations }).expect(200);
    const page = await console.open(viewer, `${SPACE}?at=10.202.100.0/24`);
    await row(page, '10.202.100.0/24').getByText('Active').waitFor();
    const before = page.getByText('Show those before 10.202.100.0/24');
    // Its neighbours follow without being asked for; what is before it is not read.
    await row(page, '10.202.101.0/24').waitFor();
    const grid = page.getByRole('treegrid', { name: 'Address space' });
    await grid.hover();
    await page.mouse.wheel(0, -60);
    await before.click();
    await row(page, '10.201.156.0/24').waitFor();
    // From the start, the next pages come by themselves.
    await page.goto(`${SPACE}?at=10.200.0.0/14`);
    await grid.getByText('10.200.0.0/14', { exact: true }).click();
    await page.keyboard.press('ArrowRight');
    await row(page, '10.200.0.0/24').waitFor();
    await eventually(
      async () => {
        await grid.hover();
        await page.mouse.wheel(0, 4_000);
        return row(page, '10.202.107.0/24').count();
      },
      (count) => count > 0,
    );
    // Paper has all rows that are open, and not only those in view.
    await page.emulateMedia({ media: 'print' });
    const printed = page.getByRole('table').getByRole('row');
    await printed.first().waitFor();
    expect(await printed.count()).toBeGreaterThan(620);
    expect(await page.getByRole('application').count()).toBe(0);
  });
});
