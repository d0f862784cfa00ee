import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createCopyParser } from '../../../db/backups/copyRows.ts';
import { propertyRuns } from '../../support/effort.ts';

/** A message of the server: code, length of the rest with itself, content. */
function message(code: string, content: string | Uint8Array): Buffer {
  const head = Buffer.from(`${code}1234`);
  head.writeUInt32BE(4 + content.length, 1);
  return Buffer.concat([head, Buffer.from(content as string)]);
}

const END = Buffer.concat([message('c', ''), message('C', 'COPY 3\0'), message('Z', 'T')]);

function parse(bytes: Buffer, size: number): { rows: string[]; rest: Buffer } {
  const rows: string[] = [];
  let row = '';
  const parser = createCopyParser({
    write: (piece, start, end) => (row += piece.toString('latin1', start, end)),
    endRow() {
      rows.push(row);
      row = '';
    },
  });
  for (let at = 0; at < bytes.length; at += size) {
    const rest = parser.parse(bytes.subarray(at, at + size));
    if (rest) return { rows, rest: Buffer.concat([rest, bytes.subarray(at + size)]) };
  }
  throw new Error('The rows have no end');
}

test('rows are read in pieces of any size, and what follows them is returned', () => {
  const content = fc.uint8Array({ maxLength: 60 });
  const row = content.map((bytes) => ({ bytes: message('d', bytes), rows: [bytes] }));
  const notice = content.map((bytes) => ({ bytes: message('N', bytes), rows: [] }));
  fc.assert(
    fc.property(
      fc.array(fc.oneof({ weight: 4, arbitrary: row }, notice)),
      fc.integer({ min: 1, max: 200 }),
      (messages, size) => {
        const start = message('H', '\0\0\0');
        const bytes = Buffer.concat([start, ...messages.map((each) => each.bytes), END]);
        expect(parse(bytes, size)).toEqual({
          rows: messages.flatMap((each) =>
            each.rows.map((one) => Buffer.from(one).toString('latin1')),
          ),
          rest: END,
        });
      },
    ),
    { numRuns: propertyRuns(200) },
  );
});

test('an error in the middle of the rows is left to the client', () => {
  const error = message('E', 'SERROR\0C57014\0\0');
  const bytes = Buffer.concat([message('H', '\0'), message('d', 'one\n'), error]);
  for (const size of [1, 7, 100])
    expect(parse(bytes, size)).toEqual({ rows: ['one\n'], rest: error });
});
