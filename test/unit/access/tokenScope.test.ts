import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { mayUseJobType } from '../../../domain/access/jobTypeRights.ts';
import { PERMISSIONS, type Permission } from '../../../domain/access/permissions.ts';
import type { Role } from '../../../domain/access/roles.ts';
import {
  contains,
  covers,
  PLATFORM,
  scopeOf,
  type Grant,
  type ResourceScope,
} from '../../../domain/access/scope.ts';
import {
  allowsJobType,
  cutRights,
  wideningErrors,
  type TokenScope,
} from '../../../domain/access/tokenScope.ts';

/** Two tenants, each with two sites, each with a device; one device without a site. */
const SITES = ['red', 'blue'].flatMap((tenantId) =>
  [1, 2].map((n): ResourceScope => ({ tenantId, siteId: `${tenantId}-${n}` })),
);
const DEVICES: ResourceScope[] = [
  ...SITES.map((site) => ({ ...site, deviceId: `${site.siteId}-device` })),
  { tenantId: 'red', siteId: null, deviceId: 'red-device' },
];
const RECORDS: ResourceScope[] = [
  { tenantId: PLATFORM },
  { tenantId: 'red' },
  { tenantId: 'blue' },
  ...SITES,
  ...DEVICES,
];
const CASES = PERMISSIONS.flatMap((permission) =>
  RECORDS.map((record) => [permission, record] as const),
);
const JOB_TYPES = ['core.echo', 'core.sleep', 'http.request', 'inventory.import'];

const role: fc.Arbitrary<Role> = fc
  .tuple(fc.subarray([...PERMISSIONS]), fc.subarray(['core.*', 'http.request', '*']))
  .map(([permissions, jobTypes]) => ({
    id: `role-${permissions.join()}-${jobTypes.join()}`,
    name: 'role',
    permissions: new Set(permissions),
    jobTypes,
  }));
const grant: fc.Arbitrary<Grant> = fc
  .tuple(role, fc.constantFrom(...RECORDS))
  .map(([held, { tenantId, siteId, deviceId }]) => {
    const owner = { tenantId, siteId: siteId ?? null };
    if (deviceId) return { role: held, level: 'device', targetId: deviceId, owner };
    if (siteId) return { role: held, level: 'site', targetId: siteId, owner };
    const level = tenantId === PLATFORM ? 'platform' : 'tenant';
    return { role: held, level, targetId: tenantId };
  });
const nullable = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: null });
const tokenScope: fc.Arbitrary<TokenScope> = fc.record({
  permissions: nullable(fc.subarray([...PERMISSIONS])),
  resourceScopes: nullable(fc.subarray(RECORDS)),
  jobTypes: nullable(fc.subarray(['core.echo', 'core.*', 'http.*', 'inventory.import', '*'])),
  readOnly: fc.boolean(),
});
const rights = fc
  .array(grant, { maxLength: 4 })
  .map((grants) => ({ grants, principals: ['user:usr_1'] }));

const isIn = (scope: TokenScope, permission: Permission, record: ResourceScope): boolean =>
  (scope.permissions?.includes(permission) ?? true) &&
  (!scope.readOnly || permission.endsWith(':read')) &&
  (scope.resourceScopes?.some((each) => contains(each, record)) ?? true);

test('the rights of a token are those of its owner inside its scope, nothing more and nothing less', () => {
  fc.assert(
    fc.property(rights, tokenScope, (owner, scope) => {
      const token = cutRights(owner, scope);
      const wrong = CASES.filter(
        ([permission, record]) =>
          covers(scopeOf(token, permission), record) !==
          (covers(scopeOf(owner, permission), record) && isIn(scope, permission, record)),
      );
      expect(wrong).toEqual([]);
      for (const type of JOB_TYPES)
        expect(allowsJobType(token, type)).toBe(
          scope.jobTypes?.some(
            (pattern) =>
              pattern === '*' ||
              pattern === type ||
              (pattern.endsWith('.*') && type.split('.')[0] === pattern.split('.')[0]),
          ) ?? true,
        );
      for (const name of JOB_TYPES) {
        const type = { name, access: 'granted' as const };
        const differing = RECORDS.filter(
          (record) =>
            mayUseJobType(token, type, record) !==
            (mayUseJobType(owner, type, record) &&
              allowsJobType(token, name) &&
              isIn(scope, 'job:write', record)),
        );
        expect(differing).toEqual([]);
      }
      // SQL must not read grants that the scope has cut.
      if (scope.resourceScopes) expect(token.principals).toBeUndefined();
    }),
  );
});

test('a change that is accepted never widens', () => {
  fc.assert(
    fc.property(rights, tokenScope, tokenScope, (owner, before, change) => {
      if (wideningErrors(before, change).length > 0) return;
      const [wide, narrow] = [cutRights(owner, before), cutRights(owner, change)];
      const widened = CASES.filter(
        ([permission, record]) =>
          covers(scopeOf(narrow, permission), record) && !covers(scopeOf(wide, permission), record),
      );
      expect(widened).toEqual([]);
      for (const type of JOB_TYPES)
        if (allowsJobType(narrow, type)) expect(allowsJobType(wide, type)).toBe(true);
    }),
  );
});

const NO_LIMITS: TokenScope = {
  permissions: null,
  resourceScopes: null,
  jobTypes: null,
  readOnly: false,
};

test.each<[string, Partial<TokenScope>, Partial<TokenScope>, string[]]>([
  ['a limit where there was none', {}, { permissions: ['job:read'], readOnly: true }, []],
  [
    'another permission',
    { permissions: ['job:read'] },
    { permissions: ['job:write'] },
    ['/permissions'],
  ],
  [
    'no limit instead of one',
    { permissions: ['job:read'] },
    { permissions: null },
    ['/permissions'],
  ],
  ['writing', { readOnly: true }, { readOnly: false }, ['/readOnly']],
  [
    'a site of the tenant',
    { resourceScopes: [{ tenantId: 'red' }] },
    { resourceScopes: [{ tenantId: 'red', siteId: 'red-1' }] },
    [],
  ],
  [
    'a site that has moved to another tenant',
    { resourceScopes: [{ tenantId: 'blue', siteId: 'red-1' }] },
    { resourceScopes: [{ tenantId: 'red', siteId: 'red-1' }] },
    ['/resourceScopes'],
  ],
  [
    'a device of a site that has moved from the platform',
    { resourceScopes: [{ tenantId: PLATFORM, siteId: 'red-1' }] },
    { resourceScopes: [{ tenantId: 'red', siteId: 'red-1', deviceId: 'red-1-device' }] },
    ['/resourceScopes'],
  ],
  [
    'a site that has moved, within the whole platform',
    { resourceScopes: [{ tenantId: PLATFORM }] },
    { resourceScopes: [{ tenantId: 'red', siteId: 'red-1' }] },
    [],
  ],
  [
    'the tenant of the site',
    { resourceScopes: [{ tenantId: 'red', siteId: 'red-1' }] },
    { resourceScopes: [{ tenantId: 'red' }] },
    ['/resourceScopes'],
  ],
  ['a type of the area', { jobTypes: ['core.*'] }, { jobTypes: ['core.echo'] }, []],
  ['the area of the type', { jobTypes: ['core.echo'] }, { jobTypes: ['core.*'] }, ['/jobTypes']],
  [
    'an area that only begins alike',
    { jobTypes: ['core.*'] },
    { jobTypes: ['corex'] },
    ['/jobTypes'],
  ],
])('narrowing: %s', (_, before, change, pointers) => {
  const errors = wideningErrors({ ...NO_LIMITS, ...before }, change);
  expect(errors.map(({ pointer }) => pointer)).toEqual(pointers);
});
