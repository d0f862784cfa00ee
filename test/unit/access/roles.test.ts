import { expect, test } from '@jest/globals';
import { PERMISSIONS, type Permission } from '../../../domain/access/permissions.ts';
import { BUILT_IN_ROLES } from '../../../domain/access/roles.ts';
import { covers, grantAtTenant, isEmpty, scopeOf } from '../../../domain/access/scope.ts';

const has = (role: string, permission: Permission) =>
  BUILT_IN_ROLES.get(role)?.permissions.has(permission);

test.each<[string, Permission[], Permission[]]>([
  ['platform-admin', [...PERMISSIONS], []],
  [
    'operator',
    [
      'job:write',
      'job:cancel',
      'webhook:delete',
      'inventory:write',
      'backup:write',
      'jobtype:read',
    ],
    [
      'rbac:read',
      'auth:write',
      'user:read',
      'audit:read',
      'backup:restore',
      'workflow:approve',
      'job:impersonate',
      'jobtype:write',
      'secret:read',
      'secret:write',
    ],
  ],
  ['approver', ['job:read', 'workflow:approve'], ['job:write', 'workflow:write', 'rbac:read']],
  [
    'auditor',
    ['audit:read', 'rbac:read', 'user:read', 'backup:read', 'jobtype:read', 'secret:read'],
    ['job:write', 'workflow:approve', 'backup:restore', 'jobtype:write', 'secret:write'],
  ],
  [
    'viewer',
    ['job:read', 'inventory:read', 'event:read'],
    [
      'rbac:read',
      'auth:read',
      'user:read',
      'audit:read',
      'backup:read',
      'job:write',
      'jobtype:read',
      'secret:read',
    ],
  ],
])('%s', (role, given, denied) => {
  expect(given.filter((permission) => !has(role, permission))).toEqual([]);
  expect(denied.filter((permission) => has(role, permission))).toEqual([]);
});

test('a role at the platform covers everything, one at a tenant only the tenant, an unknown one nothing', () => {
  const scope = (roleId: string, tenantId: string) => {
    const role = BUILT_IN_ROLES.get(roleId);
    return scopeOf({ grants: role ? [grantAtTenant(role, tenantId)] : [] }, 'job:read');
  };
  expect(covers(scope('viewer', 'platform'), { tenantId: 'red' })).toBe(true);
  expect(covers(scope('viewer', 'red'), { tenantId: 'red' })).toBe(true);
  expect(covers(scope('viewer', 'red'), { tenantId: 'blue' })).toBe(false);
  expect(covers(scope('viewer', 'red'), { tenantId: 'platform' })).toBe(false);
  expect(isEmpty(scope('nobody', 'platform'))).toBe(true);
});
