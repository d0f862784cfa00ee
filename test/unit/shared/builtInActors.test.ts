import { expect, test } from '@jest/globals';
import { shownName } from '../../../domain/auth/providers.ts';
import { BUILT_IN_ACTORS, isBuiltInName } from '../../../domain/shared/builtInActors.ts';
import { anonymousCaller, OTHER_TENANT, systemCaller } from '../../../domain/shared/caller.ts';

test('every actor that is no person has a name', () => {
  const actors = [
    systemCaller('platform', 'req_1'),
    anonymousCaller({ requestId: 'req_1', address: null }),
    OTHER_TENANT,
  ];
  expect(new Set(actors.map(({ actorId }) => actorId))).toEqual(new Set(BUILT_IN_ACTORS.keys()));
});

test.each([
  ...['system', 'System', ' SYSTEM ', 'sys\u200btem', 'ｓｙｓｔｅｍ', 'anonymous', 'other-tenant'],
  ...['Holdfast', 'holdfast', 'HoldFast\u00a0', 'Another  tenant', 'another\u00a0tenant'],
])('%j appears as Holdfast itself', (name) => {
  expect(isBuiltInName(name)).toBe(true);
});

test.each(['alice', 'systems', 'system-1', 'holdfast-runner', 'Holdfast Ltd', 'tenant'])(
  '%j is a name of a person',
  (name) => {
    expect(isBuiltInName(name)).toBe(false);
  },
);

test.each([
  [{ displayName: 'Ada Lovelace', username: 'ada' }, 'Ada Lovelace'],
  [{ displayName: 'Holdfast', username: 'ada' }, 'ada'],
  [{ displayName: 'Holdfast', username: 'system' }, 'system (sub-1)'],
])('a person whose provider says %j is shown as %j', (names, expected) => {
  const profile = { externalId: 'sub-1', email: null, groups: [], ...names };
  expect(shownName(profile)).toBe(expected);
});
