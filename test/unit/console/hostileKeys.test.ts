import { describe, expect, test } from '@jest/globals';
import { guideOf } from '../../../ui/app/guideOf.ts';
import { changesOf } from '../../../ui/areas/audit/changes.ts';
import { parseTimeRange, unknownIn } from '../../../ui/parts/list/search.ts';
import { labelOf, mergeNames, personName } from '../../../ui/parts/names.ts';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { rowsOf } from '../../../ui/parts/plan/effects.ts';

/** Names that every object has: an id, a part of an address or a custom field may be one of them. */
const INHERITED = Object.getOwnPropertyNames(Object.prototype);

describe.each(INHERITED)('a text that is %s', (text) => {
  test('is no preset of a time, and leads to no guide of its own', () => {
    expect(parseTimeRange(text, new Date(0))).toBeUndefined();
    const filter = { id: 'createdAt', label: 'Created', kind: 'time' } as const;
    expect(unknownIn([filter], { createdAt: text })).toHaveLength(1);
    expect(guideOf(`/${text}`).guide).toBe('console');
    expect(nounOf(text, 1)).toEqual(expect.any(String));
  });

  test('is an id without a name, or with its own', () => {
    const named = { labels: { tenants: { red: 'Red' } }, people: {} };
    expect(labelOf(named, text)).toBeUndefined();
    expect(labelOf(named, text, 'tenants')).toBeUndefined();
    expect(labelOf(named, 'red', text)).toBeUndefined();
    expect(personName(named, text)).toBe(text);
    const own = { people: Object.fromEntries([[text, { displayName: 'Ann' }]]) };
    expect(personName(mergeNames([own, named]), text)).toBe('Ann');
  });

  test('is a field that one state has, and the other has not', () => {
    const state = Object.fromEntries([[text, 'x']]);
    expect(changesOf({}, state).rows).toEqual([{ field: text, before: undefined, after: 'x' }]);
    const change = { field: 'customFields', before: {}, after: state };
    expect(rowsOf({ action: 'update', changes: [change] })).toEqual([
      { field: `customFields.${text}`, label: text, before: null, after: 'x' },
    ]);
  });
});
