import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { collectLines } from '../../../ui/parts/log/collect.ts';
import {
  createLogReader,
  type LogPage,
  type LogReader,
  type LogSource,
} from '../../../ui/parts/log/logReader.ts';
import { createLogStore, type LogLine, type LogStore } from '../../../ui/parts/log/logStore.ts';
import {
  ALL_LINES,
  findMatches,
  formatLineHash,
  lineText,
  logRows,
  parseLineHash,
  summarize,
} from '../../../ui/parts/log/rows.ts';

const lineOf = (line: number, fields: Partial<LogLine> = {}): LogLine => ({
  line,
  time: '2026-11-23T09:00:00.000Z',
  level: line % 3 === 0 ? 'error' : 'info',
  message: `Message ${line}`,
  attempt: line > 50 ? 2 : 1,
  ...fields,
});
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => lineOf(from + at));
/** Reads pages of `all`, which end early after `most` lines. */
const pagesOf =
  (all: readonly LogLine[], most = Infinity) =>
  (from: number, limit: number): Promise<LogPage> => {
    const end = from - 1 + Math.min(limit, most);
    return Promise.resolve({ lines: all.slice(from - 1, end), hasMore: end < all.length });
  };
const noLines: LogPage = { lines: [], hasMore: false };

describe('the lines of a log', () => {
  const batches = fc.array(fc.array(fc.integer({ min: 1, max: 1_700 }), { maxLength: 60 }));

  test('are each there once, in order, however they come; the gaps are what is missing', () => {
    fc.assert(
      fc.property(batches, fc.integer({ min: 1, max: 1_700 }), (added, known) => {
        const store = createLogStore();
        store.extend({ last: known });
        const seen = new Set<number>();
        for (const numbers of added) {
          const before = seen.size;
          for (const number of numbers) seen.add(number);
          expect(store.add(numbers.map((number) => lineOf(number)))).toBe(seen.size - before);
        }
        const last = Math.max(known, ...seen);
        expect(store.last).toBe(last);
        expect(store.loaded).toBe(seen.size);
        const present = [...store.lines()].map(({ line }) => line);
        expect(present).toEqual([...seen].sort((one, other) => one - other));
        const missing = store.gaps().flatMap(({ from, to }) => range(from, to));
        expect([...present, ...missing.map(({ line }) => line)].sort((a, b) => a - b)).toEqual(
          range(1, last).map(({ line }) => line),
        );
      }),
    );
  });

  test('a gap is filled by what is read for it', () => {
    const store = createLogStore();
    store.add(range(1, 10));
    store.add(range(600, 610));
    expect(store.gaps()).toEqual([{ from: 11, to: 599 }]);
    expect(store.gaps({ from: 100, to: 605 })).toEqual([{ from: 100, to: 599 }]);
    store.add(range(5, 599));
    expect(store.gaps()).toEqual([]);
  });

  test('a line that comes again is nothing', () => {
    const store = createLogStore();
    store.add([lineOf(1, { message: 'first' })]);
    const { version } = store;
    expect(store.add([lineOf(1, { message: 'again' })])).toBe(0);
    expect(store.get(1)?.message).toBe('first');
    expect(store.version).toBe(version);
  });

  test('purged lines are no gap', () => {
    const store = createLogStore();
    store.extend({ first: 400, last: 900 });
    expect(store.add(range(390, 410))).toBe(11);
    expect(store.gaps()).toEqual([{ from: 411, to: 900 }]);
    expect(store.get(399)).toBeUndefined();
  });

  test('the memory is bounded: what is far away is forgotten and can be read again', () => {
    const store = createLogStore(1_000_000);
    store.add(range(1, 5_000).map((line) => ({ ...line, message: 'x'.repeat(500) })));
    store.shrink(4_800);
    expect(store.loaded).toBeLessThan(2_000);
    expect(store.get(4_800)).toBeDefined();
    expect(store.last).toBe(5_000);
    expect(store.gaps()[0]?.from).toBe(1);
    store.add(range(1, 500));
    expect(store.get(1)).toBeDefined();
  });
});

describe('rows', () => {
  const store = createLogStore();
  store.add([...range(1, 40), ...range(61, 100)]);

  test('have their position before they are read', () => {
    const rows = logRows(store, ALL_LINES);
    expect(rows.count).toBe(100);
    expect(rows.rowAt(49)).toEqual({ kind: 'line', line: 50 });
    expect(rows.indexOf(50)).toBe(49);
  });

  test('that a filter leaves, and what may be in a gap', () => {
    const rows = logRows(store, { levels: new Set(['error']), attempt: 2 });
    const all = Array.from({ length: rows.count }, (_, at) => rows.rowAt(at));
    expect(all[0]).toEqual({ kind: 'gap', from: 41, to: 60 });
    expect(all.slice(1).map((row) => (row.kind === 'line' ? row.line : 0))).toEqual(
      range(61, 100)
        .map(({ line }) => line)
        .filter((line) => line % 3 === 0),
    );
    expect(rows.rowAt(rows.indexOf(64))).toEqual({ kind: 'line', line: 66 });
    expect(rows.indexOf(50)).toBe(0);
  });

  test('are searched in any letter case, as text and not as a pattern', () => {
    const found = createLogStore();
    found.add([
      lineOf(1, { message: 'GET /a.b and get /a.b' }),
      lineOf(2, { message: 'get /axb' }),
    ]);
    expect(findMatches(found, ALL_LINES, 'get /a.b')).toEqual([
      { line: 1, start: 0, end: 8 },
      { line: 1, start: 13, end: 21 },
    ]);
    expect(findMatches(found, ALL_LINES, '')).toEqual([]);
    expect(findMatches(found, { levels: new Set(['error']), attempt: null }, 'get')).toEqual([]);
  });

  test('are counted by level and attempt', () => {
    const { levels, attempts } = summarize(store);
    expect(levels.get('error')).toBe(26);
    expect(attempts).toEqual([1, 2]);
  });
});

test('links name a line or a range', () => {
  expect(parseLineHash('#L120')).toEqual({ from: 120, to: 120 });
  expect(parseLineHash('L130-L120')).toEqual({ from: 120, to: 130 });
  for (const wrong of ['', '#L0', '#l1', '#L1-', '#L1234567890', 'x#L1'])
    expect(parseLineHash(wrong)).toBeUndefined();
  for (const hash of ['L7', 'L7-L9'])
    expect(formatLineHash(parseLineHash(hash) ?? { from: 0, to: 0 })).toBe(hash);
});

test('a line as text has its time, level, attempt, message and data', () => {
  expect(lineText(lineOf(3, { data: { status: 500 } }))).toBe(
    '2026-11-23T09:00:00.000Z ERROR [1] Message 3 {"status":500}',
  );
});

describe('reading a log', () => {
  const problem = (status: number, body?: object) => ({
    status,
    code: 'unavailable',
    title: 'Service unavailable',
    detail: '',
    errors: [],
    body,
  });

  /** Takes no time, but lets timers run: a reader that never ends fails the test. */
  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

  /** Runs until the log has ended or failed; waits after failures take no time. */
  async function readAll(source: LogSource, store: LogStore = createLogStore()) {
    const { promise, resolve } = Promise.withResolvers<LogReader>();
    const states = new Set<string>();
    const reader: LogReader = createLogReader({
      store,
      source,
      wait: turn,
      onChange: () =>
        queueMicrotask(() => {
          states.add(reader.state);
          if (reader.state === 'ended' || reader.state === 'failed') resolve(reader);
        }),
    });
    // An empty log has ended before anything changes.
    if (reader.state !== 'ended') await promise;
    reader.stop();
    return { store, reader, states, lines: [...store.lines()].map(({ line }) => line) };
  }
  const numbers = (to: number) => range(1, to).map(({ line }) => line);

  test('reads all of it, whether its length is known or not', async () => {
    for (const count of [0, 1, 999, 1_000, 1_001, 3_500]) {
      const read = pagesOf(range(1, count));
      expect((await readAll({ read })).lines).toEqual(numbers(count));
      expect((await readAll({ read, total: count })).lines).toEqual(numbers(count));
    }
  });

  test('goes on after a page that has ended early', async () => {
    for (const most of [1, 349, 999]) {
      const read = pagesOf(range(1, 1_600), most);
      for (const source of [{ read }, { read, total: 1_600 }]) {
        const { store, lines } = await readAll(source);
        expect(lines).toEqual(numbers(1_600));
        expect(store.first).toBe(1);
      }
    }
  });

  test('what is in view is read first', async () => {
    const all = range(1, 9_000);
    const asked: number[] = [];
    const store = createLogStore();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const reader = createLogReader({
      store,
      onChange: () => store.gaps().length === 0 && resolve(undefined),
      source: {
        total: 9_000,
        read: async (from, limit) => {
          asked.push(from);
          await Promise.resolve();
          return pagesOf(all)(from, limit);
        },
      },
    });
    reader.focus({ from: 8_400, to: 8_440 });
    await promise;
    expect(asked).toHaveLength(new Set(asked).size);
    expect(asked.indexOf(8_400)).toBeLessThan(4);
  });

  test('no line is lost or doubled when connections break anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 0, max: 400 }),
        fc.nat(400),
        fc.array(fc.integer({ min: 0, max: 60 }), { maxLength: 12 }),
        fc.array(fc.boolean(), { maxLength: 12 }),
        fc.constantFrom(0, 3),
        fc.constantFrom(7, Infinity),
        async (count, known, breaks, failing, repeated, most) => {
          const all = range(1, count);
          let passed = 0;
          const source: LogSource = {
            total: Math.min(known, count),
            read: async (from, limit) => {
              await Promise.resolve();
              if (failing.shift() === true) throw problem(503);
              return pagesOf(all, most)(from, limit);
            },
            follow: async (after, onLines) => {
              await Promise.resolve();
              onLines([]);
              // It goes on after the last line that has come, and asks for none a second time.
              expect(after).toBeGreaterThanOrEqual(passed);
              const next = breaks.shift();
              // Nevertheless, some lines may come a second time.
              const rest = all.slice(Math.max(after - repeated, 0));
              for (const line of next === undefined ? rest : rest.slice(0, next)) {
                passed = line.line;
                onLines([line]);
                if (line.line % 7 === 0) await Promise.resolve();
              }
              if (next !== undefined) throw new Error('broken');
            },
          };
          const { lines } = await readAll(source);
          expect(lines).toEqual(numbers(count));
        },
      ),
      {
        numRuns: 60,
        // The last line is the one that no later line shows to be missing.
        examples: [
          [5, 4, [], [], 0, Infinity],
          [5, 0, [4], [], 0, Infinity],
        ],
      },
    );
  });

  test('it says that it waits, and why', async () => {
    let isFirst = true;
    const { states, lines } = await readAll({
      read: (from, limit) => {
        if (isFirst) {
          isFirst = false;
          return Promise.reject(problem(503));
        }
        return pagesOf(range(1, 5))(from, limit);
      },
    });
    expect(states).toContain('waiting');
    expect(lines).toEqual(numbers(5));
  });

  test('a connection that keeps breaking is said to be interrupted, not a mistake of the page', async () => {
    let breaks = 6;
    const said: (string | undefined)[] = [];
    const store = createLogStore();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const reader: LogReader = createLogReader({
      store,
      wait: () => {
        said.push(reader.problem?.code);
        return turn();
      },
      onChange: () => {
        if (store.last === 3) resolve(undefined);
      },
      source: {
        read: () => Promise.resolve(noLines),
        follow: (_after, onLines) => {
          breaks -= 1;
          if (breaks > 0) return Promise.reject(new TypeError('network error'));
          onLines(range(1, 3));
          return Promise.resolve();
        },
      },
    });
    await promise;
    expect(said).toEqual([undefined, undefined, undefined, 'network', 'network']);
    expect(reader.problem).toBeUndefined();
    reader.stop();
  });

  test('an error that does not pass ends it', async () => {
    const { reader } = await readAll({ read: () => Promise.reject(problem(403)), total: 5 });
    expect(reader.state).toBe('failed');
    expect(reader.problem?.status).toBe(403);
  });

  test('purged lines are passed over', async () => {
    const all = range(1, 1_200);
    const { store, lines } = await readAll({
      total: 1_200,
      read: (from, limit) =>
        from < 700 ? Promise.reject(problem(410, { oldestLine: 700 })) : pagesOf(all)(from, limit),
    });
    expect(store.first).toBe(700);
    expect(lines).toEqual(range(700, 1_200).map(({ line }) => line));
  });

  test('a log without its lines ends', async () => {
    for (const hasMore of [false, true]) {
      const { lines } = await readAll({
        read: () => Promise.resolve({ lines: [], hasMore }),
        total: 50,
      });
      expect(lines).toEqual([]);
    }
  });

  test('a log that does not fit into memory is not read again and again', async () => {
    const all = range(1, 4_000).map((line) => ({ ...line, message: 'x'.repeat(400) }));
    let reads = 0;
    const { store } = await readAll(
      {
        total: 4_000,
        read: (from, limit) => {
          reads += 1;
          return pagesOf(all)(from, limit);
        },
      },
      createLogStore(800_000),
    );
    expect(reads).toBeLessThan(10);
    expect(store.get(1)).toBeDefined();
  });
});

test.each([1_000, 349])(
  'a copy has all lines, those that are not in memory too: %i on a page',
  async (most) => {
    const all = range(1, 2_500);
    const store = createLogStore();
    store.add(all.slice(0, 1_200));
    store.extend({ last: 2_500 });
    const parts: number[] = [];
    const lines = await collectLines(
      store,
      { read: pagesOf(all, most) },
      new AbortController().signal,
      (part) => void parts.push(part),
    );
    expect(lines.map(({ line }) => line)).toEqual(all.map(({ line }) => line));
    expect(parts.at(-1)).toBe(1);
  },
);
