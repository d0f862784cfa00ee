import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { coversJobType, patternsCovering } from '../../../domain/access/jobTypePatterns.ts';
import { jobTypeCheck, mayUseJobType, namesJobType } from '../../../domain/access/jobTypeRights.ts';
import type { Permission } from '../../../domain/access/permissions.ts';
import { BUILT_IN_ROLES, type Role } from '../../../domain/access/roles.ts';
import { grantAtTenant, PLATFORM, type Grant, type Rights } from '../../../domain/access/scope.ts';

const PATTERNS = ['*', 'net.*', 'net.scan.*', 'net.scan', 'net.scan.deep', 'netx.*'];
const NAMES = ['net.scan', 'net.scan.deep', 'netx.scan', 'net.audit', 'core.echo'];

const role = (permissions: readonly Permission[], jobTypes: readonly string[]): Role => ({
  id: `${permissions.join()} ${jobTypes.join()}`,
  name: 'role',
  permissions: new Set(permissions),
  jobTypes,
});
const at = (tenantId: string, ...held: Role[]): Grant[] =>
  held.map((each) => grantAtTenant(each, tenantId));

const RED = { tenantId: 'red' };
const AUDIT = { name: 'net.audit', access: 'granted' as const };

test('a pattern covers a name exactly if it is one of those that do', () => {
  for (const name of NAMES)
    expect(PATTERNS.filter((pattern) => patternsCovering(name).includes(pattern))).toEqual(
      PATTERNS.filter((pattern) => coversJobType(pattern, name)),
    );
});

test('what a pattern covers, every wider pattern covers', () => {
  for (const wide of PATTERNS)
    for (const narrow of PATTERNS.filter((each) => coversJobType(wide, each)))
      expect(
        NAMES.filter((name) => coversJobType(narrow, name) && !coversJobType(wide, name)),
      ).toEqual([]);
  expect(coversJobType('net.scan', 'net.*')).toBe(false);
  expect(coversJobType('net.*', '*')).toBe(false);
});

test.each<[string, Rights, boolean]>([
  ['nothing', { grants: [] }, false],
  ['job:write alone', { grants: at('red', role(['job:write'], [])) }, false],
  ['a pattern alone', { grants: at('red', role(['job:read'], ['net.*'])) }, false],
  ['both in one role', { grants: at('red', role(['job:write'], ['net.*'])) }, true],
  [
    'both in two roles',
    { grants: at('red', role(['job:write'], []), role(['job:read'], ['net.audit'])) },
    true,
  ],
  ['another pattern', { grants: at('red', role(['job:write'], ['core.*'])) }, false],
  [
    'the pattern at another tenant',
    { grants: [...at('red', role(['job:write'], [])), ...at('blue', role(['job:write'], ['*']))] },
    false,
  ],
  [
    'the pattern at a site of the tenant',
    {
      grants: [
        ...at('red', role(['job:write'], [])),
        {
          role: role(['job:write'], ['*']),
          level: 'site',
          targetId: 'site',
          owner: { tenantId: 'red', siteId: 'site' },
        },
      ],
    },
    false,
  ],
  ['both at the platform', { grants: at(PLATFORM, role(['job:write'], ['*'])) }, true],
  [
    'a token without the type',
    { grants: at('red', role(['job:write'], ['*'])), token: { jobTypes: ['core.*'] } },
    false,
  ],
  [
    'a token with the type',
    { grants: at('red', role(['job:write'], ['*'])), token: { jobTypes: ['net.*'] } },
    true,
  ],
])('with %s', (_what, rights, expected) => {
  expect(mayUseJobType(rights, AUDIT, RED)).toBe(expected);
});

test('of the built-in roles only the administrator names types; open types need no name', () => {
  const allowed = (access: 'open' | 'granted') =>
    [...BUILT_IN_ROLES.values()]
      .filter((each) => mayUseJobType({ grants: at('red', each) }, { ...AUDIT, access }, RED))
      .map(({ id }) => id);
  expect(allowed('granted')).toEqual(['platform-admin']);
  expect(allowed('open')).toEqual([...BUILT_IN_ROLES.keys()]);
});

test('rights name a pattern only if they name every type of it', () => {
  const subset = fc.subarray(PATTERNS);
  fc.assert(
    fc.property(subset, fc.constantFrom(...PATTERNS), (held, pattern) => {
      const rights = { grants: at('red', role(['job:write'], held)) };
      if (!namesJobType(rights, pattern, RED)) return;
      const mayUse = jobTypeCheck(rights, RED);
      expect(
        NAMES.filter(
          (name) => coversJobType(pattern, name) && !mayUse({ name, access: 'granted' }),
        ),
      ).toEqual([]);
    }),
  );
});
