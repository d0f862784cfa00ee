import { expect, test } from '@jest/globals';
import { matchingChoices } from '../../../ui/app/shell/paletteChoices.ts';
import {
  groupFound,
  markWords,
  matchReason,
  spacesAround,
  type Found,
} from '../../../ui/areas/search/results.ts';

const found = (more: Partial<Found>): Found => ({
  kind: 'devices',
  id: 'dev_1',
  label: 'core-1.ams1',
  description: 'Core router',
  tenantId: 'platform',
  vrfId: null,
  match: 'word',
  ...more,
});

const marks = (text: string, query: string) =>
  markWords(text, query)
    .filter(({ isMarked }) => isMarked)
    .map(({ text: part }) => part);

test('words of the search are marked in any case, and nothing of them is a pattern', () => {
  expect(marks('Core router core', 'core ROUTER')).toEqual(['Core', 'router', 'core']);
  expect(marks('a.b axb (c', 'a.b (c')).toEqual(['a.b', '(c']);
  expect(marks('core-1', 'core core-1')).toEqual(['core-1']);
  expect(marks('anything', '  ')).toEqual([]);
  expect(
    markWords('10.1.2.3', '1.2')
      .map(({ text }) => text)
      .join(''),
  ).toBe('10.1.2.3');
});

test('a result says why it was found, if the marked text does not show it', () => {
  expect(matchReason(found({}), 'core')).toBeUndefined();
  expect(matchReason(found({}), 'SN77')).toBe('another field has a word that begins with it');
  expect(matchReason(found({ match: 'exact' }), 'core-1.ams1')).toBe('exact match');
  expect(matchReason(found({ match: 'similar' }), 'cuore')).toBe('similar spelling');
});

test('results are grouped by kind in the order of the best match', () => {
  const groups = groupFound({
    items: [found({ id: 'dev_1' }), found({ kind: 'sites', id: 'sit_1' }), found({ id: 'dev_2' })],
    more: ['devices'],
  });
  expect(groups.map(({ kind, items, hasMore }) => [kind, items.length, hasMore])).toEqual([
    ['devices', 2, true],
    ['sites', 1, false],
  ]);
});

test('networks around an address are kept apart by their address space', () => {
  const prefix = (label: string, vrfId: string | null) => ({
    id: label,
    label,
    description: '',
    vrfId,
  });
  const spaces = spacesAround([
    prefix('10.1.2.0/24', null),
    prefix('10.1.0.0/20', 'vrf_1'),
    prefix('10.0.0.0/8', null),
  ]);
  expect(spaces.map(({ vrfId, prefixes }) => [vrfId, prefixes.map(({ label }) => label)])).toEqual([
    [null, ['10.1.2.0/24', '10.0.0.0/8']],
    ['vrf_1', ['10.1.0.0/20']],
  ]);
});

test('a tenant and a tag with one id are two choices, and each leads to its own page', () => {
  const item = { id: 'red', label: 'red', description: '', tenantId: null };
  const choices = matchingChoices(
    'red',
    [],
    {
      items: [
        { ...item, kind: 'tenants' },
        { ...item, kind: 'tags' },
      ],
      around: [],
    },
    { hasPage: () => false, tenant: 'platform' },
  );
  expect(choices.map(({ path }) => path)).toEqual([
    '/inventory/tenants/red',
    '/inventory/tags/red',
  ]);
  expect(new Set(choices.map(({ key }) => key)).size).toBe(2);
});
