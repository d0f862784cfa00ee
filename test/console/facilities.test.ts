import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { describePages } from '../support/console/console.ts';
import { accessibilityProblems, contentWidth } from '../support/console/page.ts';
import { admin, createUser, type TestUser } from '../support/users.ts';

type WithId = { id: string };

/** The width of a phone. */
const NARROW = 360;
/** What fits on a page of A4 inside its margins, in CSS pixels. */
const PAPER = { width: 702, height: 1_031 };

describePages('facilities and equipment', (console) => {
  let viewer: TestUser;
  let administrator: TestUser;
  const ids: Record<string, string> = {};

  const create = async (resource: string, record: object): Promise<string> => {
    const path = `/api/inventory/${resource}`;
    const { id } = await admin(console.app).post<WithId>(path, record).expect(201);
    return id;
  };
  const device = (name: string, deviceTypeId: string | undefined, more: object = {}) =>
    create('devices', { name, deviceTypeId, siteId: ids.site, ...more });
  const face = (page: Page, name: string) =>
    page.getByRole('listbox', { name: `${name} of r1`, exact: true });
  const part = (page: Page, name: string) => page.getByRole('option', { name, exact: true });
  const isChosen = (page: Page, name: string) =>
    page.getByRole('option', { name, exact: true, selected: true }).waitFor();

  beforeAll(async () => {
    viewer = await createUser(console.app, 'viewer');
    administrator = await createUser(console.app, 'platform-admin');
    const manufacturerId = await create('manufacturers', { name: 'Acme' });
    const type = (model: string, uHeight: number, fullDepth: boolean) =>
      create('device-types', { manufacturerId, model, uHeight, fullDepth });
    ids.server = await type('Server', 2, true);
    ids.switch = await type('Switch', 1, false);
    ids.strip = await type('Strip', 0, false);
    ids.site = await create('sites', { name: 'ams1' });
    ids.rack = await create('racks', { name: 'r1', siteId: ids.site, uHeight: 10 });
    const inRack = { rackId: ids.rack };
    const at = (position: number, faceName = 'front') => ({ ...inRack, position, face: faceName });
    ids.leaf = await device('leaf1', ids.switch, at(10));
    ids.far = await device('leaf2', ids.switch, { ...at(10, 'rear'), status: 'failed' });
    ids.web = await device('web1', ids.server, at(4));
    await device('strip1', ids.strip, inRack);
  });

  test('a rack is drawn with both faces, for the pointer and for keys', async () => {
    const page = await console.open(viewer, `/inventory/racks/${ids.rack}`);
    await part(page, 'U10 front: leaf1 Switch, active').waitFor();
    await part(page, 'U10 rear: leaf2 Switch, failed').click();
    await isChosen(page, 'U10 rear: leaf2 Switch, failed');
    // The full depth of a server is on the other face, too.
    for (const [key, chosen] of [
      ['ArrowDown', 'U9 rear: free'],
      ['End', 'U1 rear: free'],
      ['ArrowLeft', 'U1 front: free'],
      ['ArrowUp', 'U2 front: free'],
      ['ArrowUp', 'U3 front: free'],
      ['ArrowUp', 'U4–5 front: web1 Server, active'],
      ['ArrowRight', 'U4–5 rear: web1 Server, active, mounted on the front'],
    ] as const) {
      await page.keyboard.press(key);
      await isChosen(page, chosen);
    }
    // The same as a table.
    const row = page.getByRole('row', { name: /^U4–5/ });
    expect(await row.getByRole('cell').allTextContents()).toEqual([
      'web1ActiveServer',
      'web1 (depth of the front)',
    ]);
    await page.getByRole('row', { name: /^U6–9/ }).waitFor();
    expect(await page.getByRole('link', { name: /New device/ }).count()).toBe(0);
    await page.getByRole('region', { name: 'Without a position' }).getByText('strip1').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, NARROW)).toBe(NARROW);
    await part(page, 'U4–5 front: web1 Server, active').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'web1', exact: true }).waitFor();
  });

  test('a free unit leads to the form of a new device there, which is then drawn', async () => {
    const page = await console.open(administrator, `/inventory/racks/${ids.rack}`);
    await part(page, 'U7 rear: free').focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'New device' }).waitFor();
    await page.getByLabel('Name').fill('spare1');
    await page.getByRole('combobox', { name: 'Device type' }).fill('Swit');
    await page.getByRole('option', { name: 'Switch' }).click();
    await page.getByRole('button', { name: 'Create device' }).click();
    await page.getByRole('heading', { name: 'spare1', exact: true }).waitFor();
    await page.goBack();
    await page.goBack();
    await part(page, 'U7 rear: spare1 Switch, active').waitFor();
    // Another one, made elsewhere, appears by itself.
    await device('late1', ids.switch, { rackId: ids.rack, position: 1, face: 'front' });
    await part(page, 'U1 front: late1 Switch, active').waitFor();
  });

  test('the highest rack prints with both faces on one page, and without buttons', async () => {
    const high = await create('racks', {
      name: 'r1',
      siteId: await create('sites', { name: 'x' }),
      uHeight: 100,
    });
    const page = await console.open(viewer, `/inventory/racks/${high}`);
    await face(page, 'Rear').waitFor();
    await page.setViewportSize(PAPER);
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    for (const name of ['Front', 'Rear']) {
      const box = await face(page, name).boundingBox();
      expect((box?.y ?? 0) + (box?.height ?? Infinity)).toBeLessThan(PAPER.height);
      expect((box?.x ?? 0) + (box?.width ?? Infinity)).toBeLessThanOrEqual(PAPER.width);
    }
    expect(await page.getByRole('button').count()).toBe(0);
    expect(await page.getByRole('navigation', { name: 'Pages' }).count()).toBe(0);
    const background = await page.evaluate('getComputedStyle(document.body).backgroundColor');
    expect(background).toBe('rgb(255, 255, 255)');
  });

  test('a device shows what its interfaces lead to, their addresses, and where it is', async () => {
    const port = (deviceId: string | undefined, name: string, more: object = {}) =>
      create('interfaces', { deviceId, name, ...more });
    const vlanId = await create('vlans', { vid: 10, name: 'servers' });
    const ports: string[] = [];
    for (const name of ['eth10', 'eth2', 'eth1'])
      ports.push(await port(ids.leaf, name, { mode: 'access', untaggedVlanId: vlanId }));
    await port(ids.leaf, 'lo0', { kind: 'loopback', enabled: false });
    const far = await port(ids.far, 'xe1');
    ids.cable = await create('cables', { aInterfaceId: ports[1], bInterfaceId: far });
    await create('prefixes', { cidr: '10.1.0.0/24' });
    const address = { address: '10.1.0.7/24', interfaceId: ports[2] };
    const primaryIp4Id = await create('ip-addresses', address);
    await admin(console.app)
      .put(`/api/inventory/devices/${ids.leaf}`, { primaryIp4Id })
      .expect(200);
    const page = await console.open(viewer, `/inventory/devices/${ids.leaf}`);
    const grid = page.getByRole('grid', { name: 'Interfaces of leaf1' });
    // As people count, and with the other end of the cable.
    const names = grid.getByRole('link', { name: /^(eth|lo)\d+$/ });
    await names.first().waitFor();
    expect(await names.allTextContents()).toEqual(['eth1', 'eth2', 'eth10', 'lo0']);
    await grid.getByRole('row', { name: /eth2.*leaf2.*xe1.*cable/ }).waitFor();
    await grid.getByRole('row', { name: /eth1.*10\.1\.0\.7\/24 primary/ }).waitFor();
    await grid.getByRole('row', { name: /lo0.*Disabled/ }).waitFor();
    expect(await grid.getByRole('button').count()).toBe(0);
    await page.getByRole('img', { name: 'Front: leaf1 at U10' }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, NARROW)).toBe(NARROW);
    await grid.getByRole('link', { name: 'leaf2' }).click();
    await page.getByRole('heading', { name: 'leaf2', exact: true }).waitFor();
  });

  test('a cable is put between two devices and taken away, with what changes shown before', async () => {
    const [one, other] = [await device('one', ids.switch), await device('patch9', ids.switch)];
    await create('interfaces', { deviceId: one, name: 'a1' });
    await create('interfaces', { deviceId: other, name: 'b1' });
    await create('interfaces', { deviceId: other, name: 'b2' });
    const page = await console.open(administrator, `/inventory/devices/${one}`);
    await page.getByRole('button', { name: 'Connect a1' }).click();
    const dialog = page.getByRole('dialog', { name: 'Connect a1 of one' });
    expect(await dialog.getByRole('button', { name: 'Connect' }).isDisabled()).toBe(true);
    await dialog.getByRole('combobox', { name: 'Device' }).fill('patch9');
    await page.getByRole('option', { name: 'patch9' }).click();
    await dialog.getByRole('combobox', { name: 'Interface' }).click();
    await page.getByRole('option', { name: 'b2' }).click();
    const plan = dialog.getByRole('region', { name: 'What changes' });
    await plan.getByText('Create', { exact: true }).waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Connect' }).click();
    await page.getByRole('row', { name: /a1.*patch9.*b2/ }).waitFor();
    await page.getByRole('button', { name: 'Disconnect a1' }).click();
    const end = page.getByRole('dialog', { name: 'Disconnect a1' });
    await end.getByRole('button', { name: 'Delete the cable' }).click();
    await page.getByRole('button', { name: 'Connect a1' }).waitFor();
  });

  test('an address has the networks around it, its neighbours and the next free one', async () => {
    await create('prefixes', { cidr: '10.7.0.0/16', status: 'container' });
    const pool = { cidr: '10.7.1.0/24', allocationMode: 'pool' };
    await create('prefixes', pool);
    await create('ip-addresses', { address: '10.7.1.1/24', dnsName: 'gw.example.net' });
    await create('ip-ranges', { startAddress: '10.7.1.4', endAddress: '10.7.1.9' });
    const page = await console.open(administrator, '/search?q=10.7.1.3');
    await page.getByRole('link', { name: /^10\.7\.1\.3: what is beside it/ }).click();
    await page.getByText('No record that you may read has this address.').waitFor();
    const networks = page.getByRole('region', { name: 'Networks around it' });
    const chain = networks.getByRole('listitem').getByRole('link');
    await chain.first().waitFor();
    expect(await chain.allTextContents()).toEqual(['10.7.0.0/16', '10.7.1.0/24']);
    const beside = page.getByRole('region', { name: 'Beside it' }).getByRole('listitem');
    await beside.first().waitFor();
    expect((await beside.allTextContents()).slice(0, 6)).toEqual([
      ...['.0network', '.1gw.example.net', '.2free', '.3free', '.4range', '.5range'],
    ]);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, NARROW)).toBe(NARROW);
    // Whatever is allocated elsewhere is no longer the next one.
    const next = page.getByRole('region', { name: 'Next free in 10.7.1.0/24' });
    await next.getByRole('link', { name: '10.7.1.2' }).waitFor();
    await create('ip-addresses', { address: '10.7.1.2/24' });
    await next.getByRole('link', { name: '10.7.1.3' }).waitFor();
    await page.getByRole('link', { name: 'Record it' }).click();
    await page.getByRole('button', { name: 'Create IP address' }).click();
    await page.getByRole('heading', { name: '10.7.1.3/24' }).waitFor();
    await page.getByText('It is on no interface.').waitFor();
  });

  test('a VLAN has what uses it, and a cable both ends', async () => {
    const groupId = await create('vlan-groups', { name: 'campus' });
    const vlanId = await create('vlans', { vid: 20, name: 'voice', groupId });
    await create('prefixes', { cidr: '10.8.0.0/24', vlanId });
    const box = await device('phone1', ids.switch);
    const deviceId = await device('phone2', ids.switch);
    const port = { name: 'p1', mode: 'access', untaggedVlanId: vlanId };
    const [a, b] = [
      await create('interfaces', { ...port, deviceId: box }),
      await create('interfaces', { ...port, deviceId, name: 'p2', untaggedVlanId: null }),
    ];
    const cable = { aInterfaceId: a, bInterfaceId: b, label: 'C-9', kind: 'cat6' };
    const cableId = await create('cables', cable);
    const page = await console.open(viewer, `/inventory/vlans/${vlanId}`);
    const users = (title: string) => page.getByRole('region', { name: title });
    await users('Prefixes in it').getByRole('link', { name: '10.8.0.0/24' }).waitFor();
    await users('Interfaces in it').getByText('connected to phone2 p2').waitFor();
    expect(await accessibilityProblems(page)).toEqual([]);
    await page.goto(`/inventory/cables/${cableId}`);
    const ends = page.getByRole('region', { name: 'From end to end' });
    await ends.getByRole('link', { name: 'phone2' }).waitFor();
    expect(await ends.getByRole('link').allTextContents()).toEqual([
      ...['phone1', 'p1', 'phone2', 'p2'],
    ]);
    expect(await accessibilityProblems(page)).toEqual([]);
    expect(await contentWidth(page, NARROW)).toBe(NARROW);
  });
});
