import { describe, expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import type { TokenRecord } from '../../../api/auth/tokenSchemas.ts';
import { UNUSED_DAYS, WARNING_DAYS as EVENT_DAYS } from '../../../domain/auth/tokens.ts';
import { deviceText } from '../../../ui/app/account/device.ts';
import {
  EMPTY_FORM,
  formOf,
  missingIn,
  scopeParts,
  toChange,
  toRequest,
} from '../../../ui/app/account/tokenForm.ts';
import {
  expiresSoon,
  exampleOf,
  heldPermissions,
  limitTexts,
  WARNING_DAYS,
  whereText,
} from '../../../ui/app/account/tokenText.ts';

const FORM_URL = pathToFileURL(path.resolve('ui/app/account/tokenForm.ts')).href;
const NOW = new Date('2026-11-23T10:00:00Z');
const TOKEN: TokenRecord = {
  id: 'tok_1',
  kind: 'personal',
  userId: 'usr_1',
  tenantId: 'red',
  name: 'pipeline',
  status: 'active',
  permissions: ['job:read', 'job:write'],
  resourceScopes: [
    { tenantId: 'red', siteId: 'sit_1', deviceId: null },
    { tenantId: 'blue', siteId: null, deviceId: null },
  ],
  jobTypes: null,
  pools: null,
  readOnly: false,
  allowedNetworks: ['10.0.0.0/8'],
  requestsPerMinute: null,
  requestTenantId: 'red',
  expiresAt: '2026-12-23T10:00:00.000Z',
  rotatedAt: null,
  previousValidUntil: null,
  lastUsedAt: null,
  lastUsedAddress: null,
  disabledAt: null,
  revokedAt: null,
  revokedBy: null,
  createdBy: 'usr_1',
  createdAt: '2026-11-01T10:00:00.000Z',
  updatedAt: '2026-11-01T10:00:00.000Z',
  version: 3,
};

describe('the form of a token', () => {
  test('without limits asks for a token of 90 days', () => {
    expect(toRequest({ ...EMPTY_FORM, name: ' export ' }, NOW, false)).toEqual({
      name: 'export',
      permissions: null,
      readOnly: false,
      resourceScopes: null,
      jobTypes: null,
      allowedNetworks: null,
      requestsPerMinute: null,
      expiresAt: '2027-02-21T10:00:00.000Z',
    });
  });

  test('names scopes as the service does', () => {
    const form = { ...EMPTY_FORM, scopes: ['tenants red', 'sites sit_1', 'devices dev_1'] };
    expect(toRequest(form, NOW, false).resourceScopes).toEqual([
      { tenantId: 'red' },
      { siteId: 'sit_1' },
      { deviceId: 'dev_1' },
    ]);
    expect(scopeParts('tenants a tenant')).toEqual(['tenants', 'a tenant']);
  });

  test('never turns a choice of nothing into no limit', () => {
    const none = { ...EMPTY_FORM, permissions: [], scopes: [] };
    expect(missingIn(none)).toBeDefined();
    expect(toRequest(none, NOW, false)).toMatchObject({ permissions: [], resourceScopes: [] });
    expect(missingIn({ ...EMPTY_FORM, expiry: 'date' })).toBeDefined();
    expect(missingIn(EMPTY_FORM)).toBeUndefined();
  });

  test('sends only what differs from the token', () => {
    const form = formOf(TOKEN);
    expect(toChange(form, form, NOW, false)).toEqual({});
    const narrower = { ...form, permissions: ['job:read' as const], readOnly: true };
    expect(toChange(narrower, form, NOW, false)).toEqual({
      permissions: ['job:read'],
      readOnly: true,
    });
    expect(toChange({ ...form, expiry: '7' }, form, NOW, false)).toEqual({
      expiresAt: '2026-11-30T10:00:00.000Z',
    });
  });

  test('that expires on a day does so at its end, in the zone of the times that are shown', () => {
    const form = { ...EMPTY_FORM, expiry: 'date', date: '2027-01-31' };
    expect(toRequest(form, NOW, true).expiresAt).toBe('2027-01-31T23:59:59.000Z');
    const ofDay = { ...formOf(TOKEN), expiry: 'date', date: '2026-12-01' };
    expect(toChange(ofDay, formOf(TOKEN), NOW, true)).toEqual({
      expiresAt: '2026-12-01T23:59:59.000Z',
    });
    // The zone of this process does not change while it runs.
    const script = `
      const { EMPTY_FORM, toRequest } = await import(${JSON.stringify(FORM_URL)});
      const form = { ...EMPTY_FORM, expiry: 'date', date: '2027-01-31' };
      const times = [true, false].map((utc) => toRequest(form, new Date(), utc).expiresAt);
      console.log(times.join(' '));`;
    const shown = execFileSync(process.execPath, ['--input-type=module', '--eval', script], {
      encoding: 'utf8',
      env: { ...process.env, TZ: 'Pacific/Auckland' },
    });
    expect(shown.trim()).toBe('2027-01-31T23:59:59.000Z 2027-01-31T10:59:59.000Z');
  });
});

describe('texts about tokens', () => {
  test('say what limits one', () => {
    const names = { labels: { sites: { sit_1: 'ams1' } } };
    expect(limitTexts(TOKEN, names)).toEqual([
      'job:read, job:write',
      'at site ams1 of red, tenant blue',
      'from 10.0.0.0/8',
    ]);
    expect(
      limitTexts({ ...TOKEN, permissions: null, resourceScopes: null, allowedNetworks: null }),
    ).toEqual(['All that you may do']);
  });

  test('warn as early as the event does', () => {
    expect(WARNING_DAYS).toBe(EVENT_DAYS);
    const at = (days: number) => Date.parse(TOKEN.expiresAt) - days * 86_400_000;
    expect(expiresSoon(TOKEN, at(7))).toBe(true);
    expect(expiresSoon(TOKEN, at(7.1))).toBe(false);
    expect(expiresSoon({ ...TOKEN, status: 'revoked' }, at(1))).toBe(false);
    // The page says so in words.
    expect(UNUSED_DAYS).toBe(90);
  });

  test('the example has no secret', () => {
    expect(exampleOf('https://h.example')).toBe(
      'curl -H "Authorization: Bearer $TOKEN" https://h.example/api/auth/token',
    );
  });
});

describe('texts about roles', () => {
  test('say where a role holds', () => {
    const at = { tenantId: 'red', siteId: null, deviceId: null };
    expect(whereText({ ...at, tenantId: 'platform' })).toBe('everywhere');
    expect(whereText(at)).toBe('tenant red');
    expect(whereText({ ...at, siteId: 'sit_1' })).toBe('site sit_1 of red');
    expect(whereText({ ...at, siteId: 'sit_1', deviceId: 'dev_1' })).toBe('device dev_1 of red');
  });

  test('list the permissions that are held anywhere', () => {
    const none = {
      everywhere: false,
      complete: true,
      tenantIds: [],
      siteIds: [],
      deviceIds: [],
    };
    const permissions = {
      'job:read': { ...none, everywhere: true },
      'job:write': none,
      'inventory:read': { ...none, tenantIds: ['red'], siteIds: ['a', 'b', 'c', 'd', 'e'] },
    };
    expect(heldPermissions({ permissions })).toEqual([
      { permission: 'job:read', where: 'everywhere' },
      { permission: 'inventory:read', where: 'tenant red; sites a, b, c and 2 more' },
    ]);
  });
});

test.each([
  ['Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0', 'Firefox on Linux'],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0',
    'Edge on Windows',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1',
    'Safari on iOS',
  ],
  ['curl/8.5.0', 'curl'],
  ['something else', 'something else'],
  ['', 'Unknown client'],
  [null, 'Unknown client'],
])('the client %p is called %p', (userAgent, text) => {
  expect(deviceText(userAgent)).toBe(text);
});
