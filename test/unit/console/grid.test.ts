import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { leastWidth, shownColumns, trackList } from '../../../ui/parts/grid/columns.ts';
import { gridAction, type Key, type Position } from '../../../ui/parts/grid/keys.ts';
import {
  extendTo,
  NO_SELECTION,
  selectedPart,
  toggleAll,
  toggleKey,
  stillListed,
} from '../../../ui/parts/grid/selection.ts';
import { directionOf, nextSort } from '../../../ui/parts/grid/sorting.ts';
import { readWidths, withWidths } from '../../../ui/parts/grid/storedWidths.ts';
import { flattenTree } from '../../../ui/parts/grid/tree.ts';
import { toTsv } from '../../../ui/parts/grid/tsv.ts';

const key = (name: string, modifiers: Partial<Key> = {}): Key => ({
  key: name,
  shift: false,
  control: false,
  alt: false,
  ...modifiers,
});

describe('keys', () => {
  const size = { rows: 100, columns: 5, page: 20 };
  const at: Position = { row: 10, column: 2 };
  const moved = (pressed: Key, from = at) => {
    const action = gridAction(pressed, from, size);
    return action?.kind === 'move' ? action.to : action?.kind;
  };

  test.each([
    ['ArrowDown', { row: 11, column: 2 }],
    ['j', { row: 11, column: 2 }],
    ['k', { row: 9, column: 2 }],
    ['PageDown', { row: 30, column: 2 }],
    ['PageUp', { row: 0, column: 2 }],
    ['Home', { row: 10, column: 0 }],
    ['End', { row: 10, column: 4 }],
    ['ArrowLeft', { row: 10, column: 1 }],
  ])('%s moves', (name, to) => {
    expect(moved(key(name))).toEqual(to);
  });

  test('the arrow leads into the header, the letter does not', () => {
    const first = { row: 0, column: 2 };
    expect(moved(key('ArrowUp'), first)).toEqual({ row: -1, column: 2 });
    expect(moved(key('k'), first)).toEqual(first);
    expect(moved(key('PageUp'), { row: -1, column: 0 })).toEqual({ row: -1, column: 0 });
  });

  test('Control goes to the ends, and leaves other keys to the browser', () => {
    expect(moved(key('End', { control: true }))).toEqual({ row: 99, column: 4 });
    expect(moved(key('Home', { control: true }))).toEqual({ row: 0, column: 0 });
    expect(moved(key('a', { control: true }))).toBe('selectAll');
    for (const name of ['j', 'x', 'e', 'c', 'Enter'])
      expect(gridAction(key(name, { control: true }), at, size)).toBeUndefined();
    expect(gridAction(key('ArrowLeft', { alt: true }), at, size)).toBeUndefined();
  });

  test('letters select and open', () => {
    expect(['x', ' ', 'e', 'Enter', 'Escape', 'q'].map((name) => moved(key(name)))).toEqual([
      'select',
      'select',
      'open',
      'activate',
      'clear',
      undefined,
    ]);
  });

  test('no key leaves the grid', () => {
    const names = fc.constantFrom(
      'ArrowUp',
      'ArrowDown',
      'ArrowLeft',
      'ArrowRight',
      'PageUp',
      'PageDown',
      'Home',
      'End',
      'j',
      'k',
    );
    fc.assert(
      fc.property(
        fc.array(fc.record({ name: names, control: fc.boolean() })),
        fc.nat(30),
        fc.integer({ min: 1, max: 6 }),
        (pressed, rows, columns) => {
          let position: Position = { row: 0, column: 0 };
          for (const { name, control } of pressed) {
            const action = gridAction(key(name, { control }), position, { rows, columns, page: 7 });
            if (action?.kind === 'move') position = action.to;
            expect(position.row).toBeGreaterThanOrEqual(-1);
            expect(position.row).toBeLessThan(Math.max(rows, 1));
            expect(position.column).toBeGreaterThanOrEqual(0);
            expect(position.column).toBeLessThan(columns);
          }
        },
      ),
    );
  });

  test('in a tree, the arrows open and close the row first', () => {
    const row = { row: 3, column: 0 };
    const closed = { isTree: true, isExpandable: true, isExpanded: false };
    expect(gridAction(key('ArrowRight'), row, size, closed)).toEqual({ kind: 'expand' });
    expect(gridAction(key('ArrowLeft'), row, size, closed)).toEqual({ kind: 'collapse' });
    expect(gridAction(key('ArrowRight'), row, size, { ...closed, isExpanded: true })).toMatchObject(
      {
        kind: 'move',
      },
    );
  });
});

describe('selection', () => {
  test('forgets rows that the list no longer has', () => {
    const keys = new Set(['a', 'b']);
    const rowKey = (row: string) => row;
    expect([...stillListed(keys, ['b', 'c'], rowKey)]).toEqual(['b']);
    expect(stillListed(keys, undefined, rowKey)).toBe(keys);
  });

  const order = ['a', 'b', 'c', 'd', 'e'];

  test('Shift selects the rows between, in both directions, and takes them out from a row that is out', () => {
    const one = toggleKey(NO_SELECTION, 'd');
    const range = extendTo(one, order, 'b');
    expect([...range.keys].sort()).toEqual(['b', 'c', 'd']);
    const out = toggleKey(range, 'c');
    expect([...extendTo(out, order, 'b').keys]).toEqual(['d']);
  });

  test('a start that has left the list makes it a single row', () => {
    expect([...extendTo({ keys: new Set(['z']), anchor: 'z' }, order, 'b').keys].sort()).toEqual([
      'b',
      'z',
    ]);
  });

  test('all means all that are listed, and twice is none; others stay', () => {
    const some = toggleKey(toggleKey(NO_SELECTION, 'z'), 'b');
    const all = toggleAll(some, order);
    expect(selectedPart(all.keys, order)).toBe('all');
    expect(selectedPart(some.keys, order)).toBe('some');
    const none = toggleAll(all, order);
    expect([...none.keys]).toEqual(['z']);
    expect(selectedPart(none.keys, order)).toBe('none');
  });
});

/** Reads tab-separated text as spreadsheets do. */
function fromTsv(text: string): string[][] {
  const rows: string[][] = [[]];
  let cell = '';
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? '';
    if (isQuoted) {
      if (char === '"' && text[at + 1] === '"') at += 1;
      else if (char === '"') {
        isQuoted = false;
        continue;
      }
      cell += char;
    } else if (char === '"' && cell === '') isQuoted = true;
    else if (char === '\t' || char === '\n') {
      rows.at(-1)?.push(cell);
      cell = '';
      if (char === '\n') rows.push([]);
    } else cell += char;
  }
  rows.at(-1)?.push(cell);
  return rows;
}

describe('copies', () => {
  test('spreadsheets read the same cells', () => {
    const text = fc.string({ unit: fc.constantFrom('a', '"', '\t', '\n', '\r', ' ', '1') });
    fc.assert(
      fc.property(
        fc
          .integer({ min: 1, max: 4 })
          .chain((width) =>
            fc.array(fc.array(text, { minLength: width, maxLength: width }), { minLength: 1 }),
          ),
        (rows) => expect(fromTsv(toTsv(rows))).toEqual(rows),
      ),
    );
  });

  test('no cell is run as a formula, and negative numbers stay numbers', () => {
    expect(toTsv([['=1+1', '@x', '+cmd', '-cmd|x', '＝1', '-12.5', '+3']])).toBe(
      "'=1+1\t'@x\t'+cmd\t'-cmd|x\t'＝1\t-12.5\t+3",
    );
  });
});

describe('columns', () => {
  const columns = [
    { id: 'name', width: 150, grow: 2 },
    { id: 'status', width: 90, grow: 0 },
    { id: 'created', hideBelow: 600 },
    { id: 'id', isOptional: true },
  ];
  const ids = (chosen: string[] | undefined, width: number) =>
    shownColumns(columns, chosen, width).map(({ id }) => id);

  test('those that fit are shown, unless some are chosen', () => {
    expect(ids(undefined, 360)).toEqual(['name', 'status']);
    expect(ids(undefined, 1_280)).toEqual(['name', 'status', 'created']);
    expect(ids(['id', 'name', 'of an old version'], 360)).toEqual(['id', 'name']);
    expect(ids(['of an old version'], 360)).toEqual(['name', 'status']);
  });

  test('as many are shown as fit, those that need the widest grid last, and the first one always', () => {
    const wide = [
      { id: 'time', width: 100 },
      { id: 'tenant', width: 100, hideBelow: 400 },
      { id: 'event', width: 200 },
      { id: 'changed', width: 100, hideBelow: 450 },
      { id: 'who', width: 100 },
    ];
    const shownAt = (width: number) => shownColumns(wide, undefined, width).map(({ id }) => id);
    expect(shownAt(600)).toEqual(['time', 'tenant', 'event', 'changed', 'who']);
    expect(shownAt(599)).toEqual(['time', 'tenant', 'event', 'who']);
    expect(shownAt(499)).toEqual(['time', 'event', 'who']);
    expect(shownAt(399)).toEqual(['time', 'event']);
    expect(shownAt(10)).toEqual(['time', 'event']);
    expect(shownColumns(wide, ['who', 'event'], 10).map(({ id }) => id)).toEqual(['who', 'event']);
  });

  test('free space is shared, and a width that was set stays', () => {
    expect(trackList(columns.slice(0, 3), { created: 201.6 })).toBe(
      'minmax(150px, 2fr) 90px 202px',
    );
    expect(leastWidth(columns.slice(0, 3), { created: 200 })).toBe(440);
  });

  test('a header sorts up, down and not at all', () => {
    expect(nextSort('name', undefined)).toBe('name');
    expect(nextSort('name', 'name')).toBe('-name');
    expect(nextSort('name', '-name')).toBeUndefined();
    expect(nextSort('name', '-createdAt')).toBe('name');
    expect(nextSort({ desc: '-size' }, undefined)).toBe('-size');
    expect(directionOf('name', '-name')).toBe('descending');
    expect(directionOf(undefined, '-name')).toBeUndefined();
  });
});

test('a tree is a list of its open rows, with levels and positions', () => {
  type Node = { id: string; children?: Node[] };
  const roots: Node[] = [
    { id: 'a', children: [{ id: 'a1' }, { id: 'a2', children: [{ id: 'x' }] }] },
    { id: 'b', children: [{ id: 'b1' }] },
  ];
  const rows = flattenTree(roots, {
    rowKey: ({ id }) => id,
    childrenOf: ({ children }) => children,
    hasChildren: ({ children }) => children !== undefined,
    expanded: new Set(['a', 'x']),
  });
  expect(
    rows.map(({ key: id, level, position, siblings, parent, isExpanded }) =>
      [id, level, position, siblings, parent, isExpanded].join(' '),
    ),
  ).toEqual(['a 1 1 2 -1 true', 'a1 2 1 2 0 false', 'a2 2 2 2 0 false', 'b 1 2 2 -1 false']);
});

describe('widths of columns', () => {
  test('are kept by user and list, those of a few users', () => {
    let stored = readWidths(null);
    stored = withWidths(stored, 'ada', 'Jobs', { type: 200 });
    stored = withWidths(stored, 'bob', 'Jobs', { type: 90 });
    stored = withWidths(stored, 'ada', 'Schedules', { name: 300 });
    expect(readWidths(JSON.parse(JSON.stringify(stored)))).toEqual([
      { userId: 'ada', lists: { Jobs: { type: 200 }, Schedules: { name: 300 } } },
      { userId: 'bob', lists: { Jobs: { type: 90 } } },
    ]);
    expect(withWidths(stored, 'bob', 'Jobs', {})[0]).toEqual({ userId: 'bob', lists: {} });
    for (let user = 0; user < 20; user += 1)
      stored = withWidths(stored, `user ${user}`, 'Jobs', { type: 90 });
    expect(stored).toHaveLength(8);
    expect(stored[0]?.userId).toBe('user 19');
  });

  test('that nobody can have set are left out', () => {
    const lists = { Jobs: { type: 'wide', id: -5, a: 1e9, b: 80 }, Runs: null };
    expect(readWidths([{ userId: 'ada', lists }, { userId: 5, lists }, 'ada', null])).toEqual([
      { userId: 'ada', lists: { Jobs: { b: 80 }, Runs: {} } },
    ]);
    expect(readWidths({})).toEqual([]);
  });
});
