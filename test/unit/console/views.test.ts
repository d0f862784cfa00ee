import { expect, test } from '@jest/globals';
import { LIST_PATTERN } from '../../../domain/views/views.ts';
import { contentOf, differs, searchOf } from '../../../ui/app/views/viewSearch.ts';

test('a view has what a list shows, and neither the height of rows nor itself', () => {
  const search = {
    sort: 'name',
    q: 'ams',
    tag: undefined,
    density: 'compact',
    saved: 'v',
  } as const;
  expect(contentOf(search)).toEqual({ sort: 'name', q: 'ams' });
  expect(searchOf({ id: 'w', search: { q: 'fra' } }, search)).toEqual({
    ...{ q: 'fra', density: 'compact', saved: 'w' },
  });
});

test.each([
  [{ q: 'a' }, { q: 'a', saved: 'v', density: 'compact' }, false],
  [{ q: 'a' }, { q: 'b' }, true],
  [{ q: 'a' }, {}, true],
  [{}, { tag: 'x' }, true],
  // A list without an order in its address has one of its own.
  [{ q: 'a' }, { q: 'a', sort: 'name' }, false],
  [{ sort: '-name' }, { sort: 'name' }, true],
] as const)('a view of %j differs from %j: %p', (saved, search, expected) => {
  expect(differs({ search: saved }, search)).toBe(expected);
});

test.each([
  ['/jobs', true],
  ['/inventory/ip-addresses', true],
  ['/inventory/prefixes/space', true],
  ['/', false],
  ['/account', false],
  ['/inventory/sites/sit_01', false],
])('%s is a list with views: %p', (path, expected) => {
  expect(new RegExp(LIST_PATTERN).test(path)).toBe(expected);
});
