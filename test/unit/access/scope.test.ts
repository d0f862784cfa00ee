import { describe, expect, test } from '@jest/globals';
import {
  describeResourceScope,
  holdsAnythingAt,
  isEmpty,
  sameScope,
  scopeOf,
  sizeOf,
  workingTenant,
  type Grant,
  type Rights,
  type Scope,
} from '../../../domain/access/scope.ts';
import type { Permission } from '../../../domain/access/permissions.ts';
import type { Role } from '../../../domain/access/roles.ts';

const roleWith = (...permissions: Permission[]): Role => ({
  id: permissions.join(),
  name: 'a role',
  permissions: new Set(permissions),
  jobTypes: [],
});
const role = roleWith('job:read');
const PLATFORM_GRANT: Grant = { role, level: 'platform', targetId: 'platform' };
const TENANT_GRANT: Grant = { role, level: 'tenant', targetId: 'acme' };
const owner = { tenantId: 'acme', siteId: null };
const SITE_GRANT: Grant = { role, level: 'site', targetId: 's1', owner };
const DEVICE_GRANT: Grant = { role, level: 'device', targetId: 'd1', owner };
const rightsOf = (...grants: Grant[]): Rights => ({ grants });
const within = (tenants: string[], sites: string[], devices: string[]): Scope => ({
  kind: 'within',
  tenantIds: new Set(tenants),
  siteIds: new Set(sites),
  deviceIds: new Set(devices),
});

test.each([
  ['the platform', PLATFORM_GRANT, { acme: true, beta: true }],
  ['a tenant', TENANT_GRANT, { acme: true, beta: false }],
  ['a site of a tenant', SITE_GRANT, { acme: true, beta: false }],
  ['a device of a tenant', DEVICE_GRANT, { acme: true, beta: false }],
])('who holds a role at %s holds something there only', (_name, grant, expected) => {
  for (const [tenant, holds] of Object.entries(expected)) {
    expect([tenant, holdsAnythingAt(rightsOf(grant), tenant)]).toEqual([tenant, holds]);
    const tenants = { chosen: tenant, home: 'home' };
    expect(workingTenant(rightsOf(grant), tenants)).toBe(holds ? tenant : 'home');
  }
  // A site may be called as a tenant is.
  const named: Grant = { ...grant, targetId: 'gamma' };
  const isTenant = grant.level === 'tenant' || grant.level === 'platform';
  expect(holdsAnythingAt(rightsOf(named), 'gamma')).toBe(isTenant);
});

test('the scope of a permission is that of the roles that have it', () => {
  const other = roleWith('job:write');
  const rights = rightsOf(TENANT_GRANT, { ...SITE_GRANT, role: other });
  expect(scopeOf(rights, 'job:read')).toEqual(within(['acme'], [], []));
  expect(scopeOf(rights, 'job:write')).toEqual(within([], ['s1'], []));
  expect(scopeOf(rights, 'job:read', 'job:write')).toEqual(within(['acme'], ['s1'], []));
  expect(isEmpty(scopeOf(rights, 'user:read'))).toBe(true);
  expect(scopeOf(rightsOf(PLATFORM_GRANT), 'job:read')).toEqual({ kind: 'everywhere' });
  // Computed once for the rights of a request.
  expect(scopeOf(rights, 'job:read')).toBe(scopeOf(rights, 'job:read'));
});

describe('scopes', () => {
  const EVERYWHERE: Scope = { kind: 'everywhere' };
  const scopes = [
    EVERYWHERE,
    within([], [], []),
    within(['a'], [], []),
    within(['b'], [], []),
    within(['a', 'b'], [], []),
    within([], ['a'], []),
    within([], [], ['a']),
    within(['a'], ['a'], ['a']),
  ];

  test('are the same if they have the same tenants, sites and devices', () => {
    scopes.forEach((one, i) =>
      scopes.forEach((other, j) => expect(sameScope(one, other)).toBe(i === j)),
    );
    expect(sameScope(within(['a', 'b'], [], []), within(['b', 'a'], [], []))).toBe(true);
    expect(sameScope(EVERYWHERE, { ...EVERYWHERE })).toBe(true);
  });

  test('have a size, and are empty without any', () => {
    expect(scopes.map(sizeOf)).toEqual([0, 0, 1, 1, 2, 1, 1, 3]);
    expect(scopes.map(isEmpty)).toEqual(scopes.map((_scope, i) => i === 1));
  });
});

test('a resource scope has a text for errors', () => {
  const ids = { tenantId: 'acme', siteId: 's1', deviceId: 'd1' };
  expect(describeResourceScope(ids)).toBe('device d1');
  expect(describeResourceScope({ tenantId: 'acme', siteId: 's1' })).toBe('site s1');
  expect(describeResourceScope({ tenantId: 'acme', siteId: null })).toBe('tenant acme');
  expect(describeResourceScope({ tenantId: 'platform' })).toBe('the platform');
});
