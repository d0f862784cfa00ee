import { describe, expect, test } from '@jest/globals';
import { whereOf, whereOfDeletion, whereOfNew } from '../../../ui/areas/inventory/whereOf.ts';
import { can, hasAllEvents, heldAt } from '../../../ui/app/session/permissions.ts';
import { commonWhere, whereToAsk, type Where } from '../../../ui/parts/where.ts';

const NONE: readonly string[] = [];
const HELD = {
  ...{ everywhere: false, complete: true },
  ...{ tenantIds: NONE, siteIds: NONE, deviceIds: NONE },
};
const MAY = 'inventory:write';

const summaryOf = (held: Partial<Record<'tenantIds' | 'siteIds' | 'deviceIds', string[]>>) => ({
  tenantId: 'red',
  permissions: { [MAY]: { ...HELD, ...held } },
});

const atSite = summaryOf({ siteIds: ['sit_1'] });
const atDevice = summaryOf({ deviceIds: ['dev_1'] });

describe('a record', () => {
  const site = { id: 'sit_1', tenantId: 'blue' };
  const device = { id: 'dev_1', tenantId: 'blue', siteId: 'sit_2' };

  test('is at itself if it is a site or a device', () => {
    expect(can(atSite, MAY, whereOf('sites', site))).toBe(true);
    expect(can(atSite, MAY, whereOf('sites', { ...site, id: 'sit_2' }))).toBe(false);
    expect(can(atDevice, MAY, whereOf('devices', device))).toBe(true);
    expect(can(atDevice, MAY, whereOf('devices', { ...device, id: 'dev_2' }))).toBe(false);
    expect(can(atDevice, MAY, whereOf('interfaces', { ...device, deviceId: 'dev_1' }))).toBe(true);
  });

  test('may be where its prefix or its interface is: the service decides', () => {
    const address = whereOf('ip-addresses', { id: 'ip_1', tenantId: 'blue', deviceId: null });
    expect(can(atSite, MAY, address)).toBe(true);
    expect(can(summaryOf({}), MAY, address)).toBe(false);
    const named = whereOf('prefixes', { id: 'pfx_1', tenantId: 'blue', siteId: 'sit_2' });
    expect(can(atSite, MAY, named)).toBe(false);
  });

  test('without a tenant belongs to the platform, and a tenant to itself', () => {
    const red = summaryOf({ tenantIds: ['red'] });
    expect(can(red, MAY, whereOf('manufacturers', { id: 'mfr_1' }))).toBe(false);
    expect(can(red, MAY, whereOf('regions', { id: 'reg_1', tenantId: null }))).toBe(false);
    expect(can(red, MAY, whereOf('tenants', { id: 'red' }))).toBe(true);
    expect(can(red, MAY, whereOfDeletion('tenants', { id: 'red' }))).toBe(false);
  });

  test('that is new belongs to the tenant of its form, and is no site yet', () => {
    const sites = { name: 'sites', fields: [{ name: 'tenantId' }] };
    expect(whereOfNew(sites, {}, 'red')).toMatchObject({ tenantId: 'red', siteId: undefined });
    const tags = { name: 'tags', fields: [{ name: 'name' }] };
    expect(whereOfNew(tags, {}, 'red')).toEqual({ tenantId: 'platform' });
  });
});

test('several records are where all of them are', () => {
  const one = { tenantId: 'red', siteId: 'sit_1', deviceId: 'dev_1' };
  const other = { ...one, deviceId: 'dev_2' };
  expect(commonWhere([one, other])).toEqual({ ...one, deviceId: undefined, complete: false });
  expect(commonWhere([one, { ...one }])).toEqual(one);
  expect(commonWhere([one, { ...one, complete: false }])).toEqual({ ...one, complete: false });
  expect(can(atSite, MAY, commonWhere([{ tenantId: 'red' }, { tenantId: 'blue' }]))).toBe(true);
});

describe('a request for approval is made', () => {
  const asked = (summary: typeof atSite, where: Where, type: 'change' | 'job' = 'change') =>
    whereToAsk(where, type, {
      mayAsk: (each) => can(summary, MAY, each),
      held: heldAt(summary, MAY),
    });
  const where = { tenantId: 'red', siteId: 'sit_1', deviceId: 'dev_1' };

  test('at the site for changes, else at the tenant, or where alone the user may ask', () => {
    const inTenant = summaryOf({ tenantIds: ['red'] });
    expect(asked(inTenant, where)).toEqual({ tenantId: 'red', siteId: 'sit_1' });
    expect(asked(inTenant, where, 'job')).toEqual({ tenantId: 'red' });
    expect(asked(inTenant, { tenantId: 'red' })).toEqual({ tenantId: 'red' });
    expect(asked(atSite, where, 'job')).toEqual({ tenantId: 'red', siteId: 'sit_1' });
    expect(asked(atSite, where)).toEqual({ tenantId: 'red', siteId: 'sit_1' });
    expect(asked(atDevice, where)).toEqual({ tenantId: 'red', deviceId: 'dev_1' });
  });

  test('at the only site of the user if it is not known what the record belongs to', () => {
    const unknown = { tenantId: 'red', complete: false } as const;
    expect(asked(atSite, unknown)).toEqual({ siteId: 'sit_1' });
    expect(asked(summaryOf({ siteIds: ['sit_1', 'sit_2'] }), unknown)).toEqual({ tenantId: 'red' });
  });
});

test('the stream has all events only of tenants in which the user may read them', () => {
  const inTenants = (...tenantIds: string[]) => ({ ...HELD, tenantIds });
  const everywhere = { ...HELD, everywhere: true };
  const answer = (events: typeof HELD | undefined, other: typeof HELD) =>
    hasAllEvents({ tenantId: 'red', permissions: { 'event:read': events, [MAY]: other } });
  expect(answer(everywhere, { ...HELD, siteIds: ['sit_1'] })).toBe(true);
  expect(answer(inTenants('red', 'blue'), inTenants('red'))).toBe(true);
  expect(answer(inTenants('red'), inTenants('red', 'blue'))).toBe(false);
  expect(answer(inTenants('red'), { ...HELD, siteIds: ['sit_1'] })).toBe(false);
  expect(answer(inTenants('red'), { ...HELD, deviceIds: ['dev_1'] })).toBe(false);
  expect(answer(inTenants('red'), { ...HELD, complete: false })).toBe(false);
  expect(answer(inTenants('red'), everywhere)).toBe(false);
  expect(answer(undefined, HELD)).toBe(false);
});
