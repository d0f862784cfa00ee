import { expect, test } from '@jest/globals';
import {
  canAccept,
  changingEvents,
  countsText,
  keptText,
  permissionsOf,
  referredTo,
  retentionText,
} from '../../../ui/areas/backups/backupText.ts';
import { EMPTY_BACKUP, requestOf } from '../../../ui/areas/backups/backupDraft.ts';
import {
  countsByResource,
  effectOf,
  valueOf,
  withAccounts,
  type Difference,
} from '../../../ui/areas/backups/differences.ts';
import { validateRestoreSearch } from '../../../ui/areas/backups/restoreSearch.ts';

const id = (kind: string) => `${kind}_01k8qzj3m5x7c9v1b3n5m7q9w1`;

test('a backup says what keeps it', () => {
  expect(keptText(['newest', 'daily', 'legal_hold'])).toBe(
    'newest of its series, last of its day, legal hold',
  );
  expect(keptText([])).toBe('until the next backup');
  expect(keptText(null)).toBe('');
  expect(retentionText({ daily: 7, monthly: 12 })).toBe('7 daily, 12 monthly');
  expect(retentionText({})).toBe('All are kept');
});

test('sections need permissions, and refer to others', () => {
  const sections = [
    { name: 'settings', refersTo: [], restorePermissions: [] },
    { name: 'inventory', refersTo: ['settings'], restorePermissions: [] },
    { name: 'access', refersTo: ['inventory', 'settings'], restorePermissions: ['rbac:write'] },
  ];
  expect(permissionsOf(sections, ['inventory'])).toEqual([]);
  expect(permissionsOf(sections, ['access', 'settings'])).toEqual(['rbac:write']);
  expect(referredTo(sections, ['access', 'settings'])).toEqual(['inventory']);
});

test('only risks of being locked out can be accepted', () => {
  expect(canAccept([{ code: 'own_account' }, { code: 'no_administrator' }])).toBe(true);
  expect(canAccept([{ code: 'own_account' }, { code: 'still_referenced' }])).toBe(false);
  expect(canAccept([])).toBe(false);
});

test('a preview is out of date after events of its sections; history only grows', () => {
  expect(changingEvents(['inventory', 'jobs'])).toEqual(['inventory.*', 'restore.completed']);
  expect(changingEvents(['events'])).toEqual(['restore.completed']);
});

test('a request has the sections of a partial backup only, and no empty numbers', () => {
  const draft = { ...EMPTY_BACKUP, label: ' nightly ', sections: ['access' as const] };
  expect(requestOf(draft)).toEqual({ label: 'nightly', mode: 'full', retention: {} });
  const retention = { ...EMPTY_BACKUP.retention, daily: 7 };
  expect(requestOf({ ...draft, mode: 'partial', retention })).toEqual({
    label: 'nightly',
    mode: 'partial',
    sections: ['access'],
    retention: { daily: 7 },
  });
});

test('columns of PostgreSQL are shown as the values that they are', () => {
  expect(valueOf('2026-11-22 03:31:07.412+00')).toBe('2026-11-22T03:31:07.412Z');
  expect([valueOf('true'), valueOf('false'), valueOf(null)]).toEqual([true, false, null]);
  expect(valueOf('{"a":1}')).toEqual({ a: 1 });
  expect(valueOf('{"a": "cut aft')).toBe('{"a": "cut aft');
  expect(valueOf('{ams,fra}')).toBe('{ams,fra}');
});

const difference = (more: Partial<Difference>): Difference => ({
  section: 'inventory',
  table: 'ip_addresses',
  key: id('ipa'),
  change: 'changed',
  fields: [],
  ...more,
});

test('a difference is shown with the name of its record, and leads to its page if there is one', () => {
  const names = { labels: { 'ip-addresses': { [id('ipa')]: '10.0.0.1/24' } } };
  const changed = difference({
    fields: [
      { field: 'site_id', current: id('sit'), restored: null },
      { field: 'sealed', current: null, restored: null },
    ],
  });
  expect(effectOf(changed, names, false)).toMatchObject({
    action: 'update',
    resource: 'ip-addresses',
    id: id('ipa'),
    label: '10.0.0.1/24',
    changes: [
      { field: 'siteId', before: id('sit'), after: null },
      { field: 'sealed', before: 'not shown', after: 'another value' },
    ],
  });
  const fields = [{ field: 'name', current: null, restored: 'core-1' }];
  const created = difference({ table: 'devices', key: id('dev'), change: 'created', fields });
  expect(effectOf(created, undefined, false)).toMatchObject({
    id: `new:${id('dev')}`,
    label: 'core-1',
  });
  expect(effectOf(created, undefined, true).id).toBe(id('dev'));
  expect(effectOf({ ...created, change: 'deleted' }, undefined, true).id).toBe(`new:${id('dev')}`);
  const log = difference({ table: 'job_logs', key: `${id('job')}/3` });
  expect(effectOf(log, undefined, false)).toMatchObject({
    id: `new:${id('job')}/3`,
    label: `${id('job')}/3`,
  });
});

test('accounts in differences have their names', () => {
  const people = { [id('usr')]: { displayName: 'Ann' } };
  expect(withAccounts({ people }).labels).toEqual({ users: { [id('usr')]: 'Ann' } });
});

test('of large differences it is said how many are shown', () => {
  const tables = [
    { table: 'ip_addresses', created: 0, changed: 12, deleted: 40_000 },
    { table: 'sites', created: 1, changed: 0, deleted: 0 },
  ];
  const shown = [difference({}), difference({ table: 'sites', key: id('sit') })];
  expect(countsByResource(tables, shown)).toEqual({
    'ip-addresses': '40,000 deleted, 12 changed; 1 shown',
    sites: '1 created',
  });
  expect(countsText({ created: 0, changed: 1_200, deleted: 3 })).toBe('1,200 changed, 3 deleted');
  expect(countsText({ created: 0, changed: 0, deleted: 0 })).toBe('no differences');
});

test('the address of a restore keeps what it knows', () => {
  const preview = id('job');
  expect(validateRestoreSearch({ sections: 'inventory,jobs', preview, accept: 'on' })).toEqual({
    sections: 'inventory,jobs',
    preview,
    accept: 'on',
  });
  expect(validateRestoreSearch({ sections: '../x', preview: 'job_1', accept: true })).toEqual({
    sections: undefined,
    preview: undefined,
    accept: undefined,
  });
});
