import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { refusedIn } from '../../../ui/parts/list/refused.ts';
import {
  activeFilters,
  formatTimeRange,
  joinValues,
  parseTimeRange,
  splitValues,
  toQuery,
  unknownIn,
  validateListSearch,
  withoutFilters,
  withTypedTimes,
  type Filter,
} from '../../../ui/parts/list/search.ts';

type Query = {
  limit?: number;
  status?: string[];
  createdBy?: string[];
  createdAt?: string;
  internal?: boolean;
  sort?: string;
};

const filters: Filter<Extract<keyof Query, string>>[] = [
  {
    id: 'status',
    label: 'Status',
    kind: 'choice',
    choices: [{ value: 'failed' }, { value: 'running' }],
  },
  { id: 'createdBy', label: 'Created by', kind: 'text' },
  { id: 'createdAt', label: 'Created', kind: 'time' },
  { id: 'internal', label: 'Jobs of the system', kind: 'flag', on: null, off: false },
];
const validate = validateListSearch;
const now = new Date('2026-11-23T12:00:00.000Z');

test('several values are one text, whatever is in them', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 })), (values) =>
      expect(splitValues(joinValues(values))).toEqual(values),
    ),
  );
});

describe('addresses', () => {
  test('keep everything as text, but for what is empty and an unknown height of rows', () => {
    const link = { status: 'failed,exploded', createdBy: 42, unknown: 'x', density: 'huge' };
    expect(validate({ ...link, type: ' ' })).toEqual({
      ...link,
      createdBy: '42',
      density: undefined,
    });
  });

  test('name each filter that the list does not have, and each value that it does not know', () => {
    const link = {
      ...{
        site: 'ams',
        status: 'failed,exploded,burnt',
        createdAt: '2026-99-99..',
        internal: 'off',
      },
      ...{ createdBy: 'ann', view: 'mine', sort: 'type', columns: 'type', saved: 'viw_1' },
    };
    expect(unknownIn(filters, validate(link), ['view']).map(({ id, text }) => [id, text])).toEqual([
      ['site', 'ams'],
      ['status', 'exploded, burnt'],
      ['createdAt', '2026-99-99..'],
      ['internal', 'off'],
    ]);
    expect(unknownIn(filters, validate({ status: 'failed', createdAt: '24h' }))).toEqual([]);
  });

  test('have any value of choices that are read later', () => {
    const later = { id: 'has', label: 'Has', kind: 'choice', choices: [] } as const;
    expect(unknownIn([later], { has: 'job:read' })).toEqual([]);
  });

  test('say which filters are active; clearing them keeps order and columns', () => {
    const search = validate({ status: 'failed', sort: 'type', columns: 'type,status' });
    expect(activeFilters(filters, search).map(({ id }) => id)).toEqual(['status']);
    expect(withoutFilters(filters, search)).toMatchObject({
      sort: 'type',
      columns: 'type,status',
      status: undefined,
    });
  });
});

describe('the query of the API', () => {
  const query = (search: Record<string, string>) => {
    const { limit, ...asked } = toQuery<Query>(filters, validate(search), now, { limit: 100 });
    expect(limit).toBe(100);
    return asked;
  };

  test('has several values as a list, and times up to now', () => {
    expect(query({ status: 'failed,running', createdAt: '24h', sort: 'type' })).toEqual({
      status: ['failed', 'running'],
      'createdAt.gte': '2026-11-22T12:00:00.000Z',
      internal: false,
      sort: 'type',
    });
  });

  test('does not split free text, and trims it', () => {
    expect(query({ createdBy: ' Doe, Jane ', internal: 'on' })).toEqual({
      createdBy: ['Doe, Jane'],
    });
  });

  test('has both ends of a range', () => {
    expect(
      query({ createdAt: '2026-11-01T00:00:00.000Z..2026-11-02T00:00:00.000Z', internal: 'on' }),
    ).toEqual({
      'createdAt.gte': '2026-11-01T00:00:00.000Z',
      'createdAt.lt': '2026-11-02T00:00:00.000Z',
    });
  });
});

test('a range of times is written as it is read', () => {
  const time = fc.option(
    fc.date({ min: new Date('2000-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
    { nil: undefined },
  );
  fc.assert(
    fc.property(time, time, (from, to) => {
      fc.pre(from !== undefined || to !== undefined);
      expect(parseTimeRange(formatTimeRange({ from, to }), now)).toEqual({ from, to });
    }),
  );
  for (const wrong of ['', '..', 'x..', '1h..', '2026-01-01', 'a..b..c'])
    expect(parseTimeRange(wrong, now)).toBeUndefined();
});

test('a preset of a time filter stays when no time is typed', () => {
  const from = new Date('2026-11-20T00:00:00.000Z');
  expect(withTypedTimes('24h', {})).toBe('24h');
  expect(withTypedTimes('24h', { from })).toBe('2026-11-20T00:00:00.000Z..');
  expect(withTypedTimes('2026-11-20T00:00:00.000Z..', {})).toBeUndefined();
  expect(withTypedTimes(undefined, {})).toBeUndefined();
});

describe('an answer that refuses the parameters of a list', () => {
  const problem = (status: number, ...pointers: string[]) => ({
    ...{ status, code: 'invalid_request', title: '', detail: '' },
    errors: pointers.map((pointer) => ({ pointer, detail: `about ${pointer}` })),
  });
  const named = (pointer: string, search: Record<string, string>) =>
    refusedIn(
      [
        ...filters,
        { id: 'customFields.zone', label: 'zone', kind: 'text' },
        { id: 'customFields.zones', label: 'zones', kind: 'text' },
      ],
      search,
      problem(400, pointer),
    ).map(({ id }) => id);

  test('names its filters, also by a part of their values', () => {
    expect(named('/status/0', { status: 'x' })).toEqual(['status']);
    expect(named('/createdAt.gte', { createdAt: '..' })).toEqual(['createdAt']);
    const zones = { 'customFields.zone': 'x', 'customFields.zones': 'y' };
    expect(named('/customFields/zone', zones)).toEqual(['customFields.zone']);
    expect(named('/sort', { sort: 'x' })).toEqual(['sort']);
  });

  test('names none of what the address does not have, and none for another reason', () => {
    expect(named('/limit', { status: 'x' })).toEqual([]);
    expect(refusedIn(filters, { status: 'x' }, problem(403, '/status'))).toEqual([]);
    expect(refusedIn(filters, { status: 'x' }, null)).toEqual([]);
  });
});
