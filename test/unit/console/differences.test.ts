import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { changedPart, changeOf, isSameValue } from '../../../ui/parts/diff/change.ts';
import { diffLines, foldEqual } from '../../../ui/parts/diff/lines.ts';
import { compareThree, conflictsIn, mergeWith } from '../../../ui/parts/versioned/merge.ts';

const line = fc.constantFrom('a', 'b', 'c', 'd', '');
const text = fc.array(line, { maxLength: 40 });

/** The length of the longest common subsequence, by the table. */
function commonLength(before: readonly string[], after: readonly string[]): number {
  let row = after.map(() => 0);
  for (const one of before) {
    const next: number[] = [];
    after.forEach((other, at) => {
      const diagonal = at === 0 ? 0 : (row[at - 1] ?? 0);
      next.push(one === other ? diagonal + 1 : Math.max(row[at] ?? 0, next[at - 1] ?? 0));
    });
    row = next;
  }
  return row.at(-1) ?? 0;
}

describe('lines', () => {
  test('have both texts in them, with as few changes as possible', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const changes = diffLines(before, after);
        const side = (other: string) =>
          changes.filter(({ kind }) => kind !== other).map((change) => change.text);
        expect(side('added')).toEqual(before);
        expect(side('removed')).toEqual(after);
        const kept = changes.filter(({ kind }) => kind === 'same').length;
        expect(kept).toBe(commonLength(before, after));
      }),
      { numRuns: 500 },
    );
  });

  test('of texts without anything in common are removed and added, in bounded time', () => {
    const before = Array.from({ length: 5_000 }, (_, at) => `old ${at}`);
    const after = Array.from({ length: 5_000 }, (_, at) => `new ${at}`);
    const changes = diffLines(['same', ...before], ['same', ...after]);
    expect(changes).toHaveLength(10_001);
    expect(changes[0]).toEqual({ kind: 'same', text: 'same' });
    expect(changes[1]?.kind).toBe('removed');
    expect(changes.at(-1)?.kind).toBe('added');
  });

  test('that are equal are folded, except near a change', () => {
    const before = Array.from({ length: 20 }, (_, at) => String(at));
    const after = before.map((each) => (each === '10' ? 'ten' : each));
    const parts = foldEqual(diffLines(before, after), 2);
    expect(parts.map((part) => (part.kind === 'folded' ? part.count : part.lines.length))).toEqual([
      8, 6, 7,
    ]);
  });

  test('are all there after folding', () => {
    fc.assert(
      fc.property(text, text, fc.nat(4), (before, after, context) => {
        const changes = diffLines(before, after);
        const parts = foldEqual(changes, context);
        const count = parts.reduce(
          (sum, part) => sum + (part.kind === 'folded' ? part.count : part.lines.length),
          0,
        );
        expect(count).toBe(changes.length);
        const shown = parts.flatMap((part) => (part.kind === 'lines' ? part.lines : []));
        const differing = changes.filter(({ kind }) => kind !== 'same');
        expect(shown.filter(({ kind }) => kind !== 'same')).toEqual(differing);
      }),
    );
  });
});

describe('changes of values', () => {
  test.each([
    ['null and a missing value are equal', null, undefined, 'none'],
    ['the order of keys is no change', { a: 1, b: 2 }, { b: 2, a: 1 }, 'none'],
    ['a short text is a value', 'ams1', 'ams2', 'value'],
    ['a set value is a value', null, 'ams2', 'value'],
    ['a type is a value', 1, '1', 'value'],
    ['a long text is compared by lines', 'a\nb', 'a\nc', 'lines'],
    ['JSON is compared by lines', { a: 1 }, { a: 2 }, 'lines'],
    ['a list has members', ['a'], ['a', 'b'], 'list'],
    ['a list that was not there has members', null, ['b'], 'list'],
    ['another order of a list is compared by lines', ['a', 'b'], ['b', 'a'], 'lines'],
    ['a list of objects is compared by lines', [{ a: 1 }], [{ a: 2 }], 'lines'],
  ])('%s', (_name, before, after, kind) => {
    expect(changeOf(before, after).kind).toBe(kind);
  });

  test('members of a list are added and removed, also those that are in it twice', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4)), fc.array(fc.nat(4)), (before, after) => {
        const change = changeOf(before, after);
        if (change.kind !== 'list') return;
        const sorted = (values: readonly unknown[]) => values.map(Number).sort();
        const { removed, added } = change;
        expect(sorted([...after, ...removed])).toEqual(sorted([...before, ...added]));
        expect(change.kept + removed.length).toBe(before.length);
      }),
    );
  });

  test('a value is no change of itself', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(changeOf(value, structuredClone(value)).kind).toBe('none');
      }),
    );
  });

  test('the part of a text that differs is marked, unless there is little in common', () => {
    expect(changedPart('10.0.0.0/24', '10.0.1.0/24')).toEqual({ start: 5, end: 5 });
    expect(changedPart('active', 'planned')).toBeUndefined();
  });
});

describe('three states of a record', () => {
  const base = { name: 'a', status: 'active', site: 'x', tags: ['1'] };

  test('say who has changed what', () => {
    const mine = { ...base, name: 'b', status: 'planned', tags: ['1', '2'] };
    const theirs = { ...base, status: 'retired', site: 'y', tags: ['1', '2'] };
    const fields = compareThree(base, mine, theirs);
    expect(Object.fromEntries(fields.map(({ field, changedBy }) => [field, changedBy]))).toEqual({
      name: 'you',
      status: 'both',
      site: 'others',
      tags: 'others',
    });
    expect(conflictsIn(fields).map(({ field }) => field)).toEqual(['status']);
    expect(mergeWith(fields, { status: 'theirs' })).toEqual({
      name: 'b',
      status: 'retired',
      site: 'y',
      tags: ['1', '2'],
    });
  });

  test('merge without losing a change that only one side has made', () => {
    const record = fc.record({ a: fc.nat(2), b: fc.nat(2), c: fc.nat(2) });
    fc.assert(
      fc.property(record, record, record, (start, mine, theirs) => {
        const fields = compareThree(start, mine, theirs);
        const merged = mergeWith(fields, {});
        for (const { field, base: was, mine: own, theirs: other } of fields) {
          if (isSameValue(was, own)) expect(merged[field]).toEqual(other);
          else expect(merged[field]).toEqual(own);
        }
      }),
    );
  });
});

test('a long text instead of none is added only', () => {
  const text = 'x'.repeat(200);
  expect(changeOf('', text)).toEqual({ kind: 'lines', lines: [{ kind: 'added', text }] });
});
