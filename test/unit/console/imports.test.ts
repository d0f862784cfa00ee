import { describe, expect, test } from '@jest/globals';
import {
  columnsProblem,
  headerCells,
  resourcesWith,
  templateOf,
  type FileResource,
} from '../../../ui/areas/inventory/imports/columnsOfFile.ts';
import { isOfMutations, readChosen } from '../../../ui/areas/inventory/imports/readFile.ts';
import { progressOf } from '../../../ui/areas/inventory/imports/progressOf.ts';

type Field = FileResource['fields'][number];
const field = (name: string, more: Partial<Field> = {}): Field => ({
  ...{ name, reference: null, required: false, derived: false },
  ...more,
});
const resource = (name: string, lookup: string[], ...fields: Field[]): FileResource => ({
  name,
  plural: name,
  idPrefix: 'xyz',
  lookup,
  fields,
});

const SITES = resource('sites', ['name'], field('name', { required: true }), field('status'));
const RACKS = resource(
  'racks',
  ['name'],
  field('height'),
  field('name', { required: true }),
  field('siteId', { required: true, reference: 'sites' }),
  field('used', { derived: true }),
);
const ALL = [SITES, RACKS];

describe('the columns of a file', () => {
  test('are read as in RFC 4180, after a byte order mark', () => {
    expect(headerCells('\uFEFFname, status ,"a ""b"", c"\r\nx,y')).toEqual([
      ...['name', 'status', 'a "b", c'],
    ]);
  });

  test('say which resource it is of, if only one has them and all that it needs is there', () => {
    const found = (head: string) => resourcesWith(headerCells(head), ALL).map(({ name }) => name);
    expect(found('name,siteId.name')).toEqual(['racks']);
    expect(found('name,status')).toEqual(['sites']);
    expect(found('id,name')).toEqual(['sites', 'racks']);
    expect(found('name,colour')).toEqual([]);
  });

  test.each([
    ['name,siteId.name,used,version', undefined],
    ['name;siteId.name', /semicolons/],
    ['name\tsiteId', /tabs/],
    ['name,siteId.slug,colour', /“siteId.slug”, “colour”/],
    ['siteId,siteId.name', /“siteId” has two columns/],
  ])('of %p are checked before it is sent', (head, problem) => {
    const found = columnsProblem(headerCells(head), RACKS, ALL);
    if (problem) expect(found).toMatch(problem);
    else expect(found).toBeUndefined();
  });

  test('of a template name records by a field of theirs, what is needed first', () => {
    expect(templateOf(RACKS, ALL)).toBe('name,siteId.name,height\n');
    const tags = { ...SITES, idPrefix: null };
    expect(templateOf(tags, ALL)).toBe('id,name,status\n');
  });
});

describe('a file', () => {
  test.each([
    ['a.csv', 'name\nx\ny', 'csv', 2],
    ['a.csv', 'name\nx\ny\n', 'csv', 2],
    ['a.csv', '', 'csv', 0],
    ['a.jsonl', '{"name":"x"}\n', 'ndjson', 1],
    ['a.txt', '{"name":"x"}\n{}', 'ndjson', 2],
  ])('%s with %j is %s with %d rows', async (name, text, format, rows) => {
    expect(await readChosen(new File([text], name))).toMatchObject({ format, rows });
  });

  test('of mutations says so in its first line', async () => {
    const isMixed = async (line: string) =>
      isOfMutations(await readChosen(new File([line], 'a.ndjson')));
    expect(await isMixed('{"resource":"sites","operation":"create","record":{}}')).toBe(true);
    expect(await isMixed('{"name":"x"}')).toBe(false);
    expect(await isMixed('{"resource"')).toBe(false);
  });
});

describe('the progress of an import', () => {
  const rows = 200_000;

  test('names the rows that are done, and 100 % only when all are', () => {
    const of = (done: number) => progressOf({ rows, done, progress: null });
    expect(of(900)).toEqual({ percent: 0, rowsDone: 900 });
    expect(of(199_999)).toEqual({ percent: 99, rowsDone: 199_999 });
    expect(of(rows)).toEqual({ percent: 100, rowsDone: rows });
  });

  test('is that of the job while a dry run has stored nothing', () => {
    const progress = { percent: (100 * 900) / rows };
    expect(progressOf({ rows, done: 0, progress })).toEqual({ percent: 0, rowsDone: 900 });
    expect(progressOf({ rows, done: 0, progress: null })).toEqual({ percent: 0, rowsDone: 0 });
  });
});
