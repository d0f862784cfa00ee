import { expect, test } from '@jest/globals';
import {
  ONE_LINE,
  STORED_LINE,
  TRIMMED_LINE,
  VISIBLE_LINE,
} from '../../../domain/shared/oneLine.ts';

const accepts = ({ pattern }: { pattern: string }, text: string) =>
  new RegExp(pattern, 'u').test(text);
const SCHEMAS = { ONE_LINE, TRIMMED_LINE, VISIBLE_LINE, STORED_LINE };
const acceptedBy = (text: string) =>
  Object.entries(SCHEMAS).flatMap(([name, schema]) => (accepts(schema, text) ? [name] : []));

const ALL = Object.keys(SCHEMAS);

test.each(['a', 'åé 漢字', 'a  b', '👩‍💻', 'می‌خواهم', 'a\u00a0b'])(
  'text is accepted: %j',
  (text) => {
    // An emoji may have a joiner inside, as words of some scripts have.
    expect(acceptedBy(text)).toEqual(ALL);
  },
);

test.each(['\n', '\r', '\t', '\0', '\u007f', '\ud800'])('nothing accepts %j', (character) => {
  expect(acceptedBy(`a${character}b`)).toEqual([]);
});

test.each(['\u0080', '\u0085', '\u009f', '\u2028', '\u2029'])(
  'a line has no %j; what is stored may have it',
  (character) => {
    for (const text of [`a${character}b`, `${character}b`, `a${character}`])
      expect(acceptedBy(text)).toEqual(['STORED_LINE']);
  },
);

test.each(['\u00a0', '\u1680', '\u2003', '\u202f', '\u3000', '\ufeff'])(
  'a line does not begin or end with %j',
  (blank) => {
    for (const text of [`${blank}a`, `a${blank}`, blank])
      expect(acceptedBy(text)).toEqual(['ONE_LINE', 'STORED_LINE']);
  },
);

test.each(['\u00ad', '\u200b', '\u200e', '\u202e', '\u2060', '\u2067', '\u{e0041}'])(
  'what must be visible has no %j',
  (character) => {
    expect(acceptedBy(`a${character}b`)).toEqual(['ONE_LINE', 'TRIMMED_LINE', 'STORED_LINE']);
  },
);
