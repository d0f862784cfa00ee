import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createJsonRows, type JsonColumn } from '../../../db/backups/jsonRows.ts';

const column = (name: string, type: string, notNull = false): JsonColumn => ({
  name,
  type,
  notNull,
});
const pause = () => Promise.resolve();

/** COPY text of lines of JSON, which come in pieces of some bytes. */
async function convert(columns: JsonColumn[], lines: string, pieceBytes = 1_000): Promise<string> {
  const rows = createJsonRows(columns);
  const bytes = Buffer.from(lines);
  const converted: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceBytes)
    converted.push(await rows.convert(bytes.subarray(at, at + pieceBytes), pause));
  return Buffer.concat(converted).toString();
}

test('values become COPY text, and JSON columns keep theirs as it is written', async () => {
  const columns = [
    column('id', 'text'),
    column('payload', 'json', true),
    column('tags', 'text[]'),
    column('count', 'bigint'),
    column('enabled', 'boolean'),
    column('result', 'json'),
  ];
  const rows = [
    String.raw`{"id":"a\\b\tü","payload":{"a":"\u0000 \ud800", "b":[1.0,"}\""]},"tags":["x,\"y\"",null,[]],"count":1,"enabled":true,"result":"a\"b"}`,
    String.raw`{"enabled":false,"id":null,"payload":null,"tags":null,"unknown":{},"count":12345678901234567890}`,
  ];
  expect(await convert(columns, `${rows.join('\n')}\n`)).toBe(
    [
      [
        String.raw`a\\b\tü`,
        String.raw`{"a":"\\u0000 \\ud800", "b":[1.0,"}\\""]}`,
        String.raw`{"x,\\"y\\"",NULL,{}}`,
        '1',
        'true',
        String.raw`"a\\"b"`,
      ].join('\t'),
      ['\\N', 'null', '\\N', '12345678901234567890', 'false', '\\N'].join('\t'),
      '',
    ].join('\n'),
  );
});

const unescapeCopy = (text: string): string =>
  text.replace(/\\(.)/g, (_, character: string) =>
    character === 'n' ? '\n' : character === 'r' ? '\r' : character === 't' ? '\t' : character,
  );

test('every text and every JSON value comes through, however the bytes are divided', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ id: fc.string({ unit: 'grapheme' }), payload: fc.json() }), {
        minLength: 1,
      }),
      fc.integer({ min: 1, max: 40 }),
      async (rows, pieceBytes) => {
        const lines = rows.map(
          ({ id, payload }) => `{"id":${JSON.stringify(id)},"payload":${payload}}\n`,
        );
        const columns = [column('id', 'text'), column('payload', 'json', true)];
        const copied = (await convert(columns, lines.join(''), pieceBytes)).split('\n');
        expect(copied.slice(0, -1).map((row) => row.split('\t').map(unescapeCopy))).toEqual(
          rows.map(({ id, payload }) => [id, payload.trim()]),
        );
      },
    ),
  );
});

test.each(['{"id":"a', '{"id":"a"', '{"id"}'])('a row that is cut is refused: %s', async (row) => {
  await expect(convert([column('id', 'text')], `${row}\n`)).rejects.toThrow(
    'The archive is damaged',
  );
});
