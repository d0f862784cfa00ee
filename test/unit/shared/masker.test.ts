import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { secretValuesIn } from '../../../domain/jobs/secretFields.ts';
import { createLineReader } from '../../../runner/command/lineReader.ts';
import { createMasker } from '../../../domain/shared/masker.ts';
import { propertyRuns } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';

const SECRET = `p4ss"w/rd'<&> é$x`;

const forms: Record<string, string> = {
  raw: SECRET,
  url: encodeURIComponent(SECRET),
  'url in lower case': encodeURIComponent(SECRET).replaceAll(/%../g, (code) => code.toLowerCase()),
  form: new URLSearchParams({ q: SECRET }).toString().slice(2),
  json: JSON.stringify({ q: SECRET }),
  'json in ASCII': JSON.stringify(SECRET).replaceAll('é', '\\u00e9'),
  xml: SECRET.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
  'single quotes': `'${SECRET.replaceAll("'", "'\\''")}'`,
  'double quotes': `"${SECRET.replaceAll(/["$`\\]/g, '\\$&')}"`,
};

test.each(Object.entries(forms))('a secret in the form %s is masked', (_, form) => {
  const masked = createMasker([SECRET]).text(`before ${form} after`);
  expect(masked).toMatch(/^before .{0,7}\*{8}.{0,2} after$/);
});

test('a secret is masked at every position in base64', () => {
  const masker = createMasker(['a-long-secret-value']);
  for (const before of ['', 'x', 'xy', 'xyz', 'user:'])
    for (const encoding of ['base64', 'base64url'] as const) {
      const encoded = Buffer.from(`${before}a-long-secret-value-after`).toString(encoding);
      const masked = masker.text(encoded);
      expect(masked).toContain('********');
      const rest = Buffer.from(masked.replaceAll('*', ''), encoding).toString('latin1');
      expect(rest).not.toMatch(/a-long|secret|value-/);
    }
});

test('a secret in base64 is masked in lines of any length, wherever it begins', () => {
  const secret = 'a-private-key/'.repeat(20);
  const masker = createMasker([secret]);
  for (const before of ['', 'x', 'xy', 'a: b\nkey: '])
    for (const width of [8, 19, 60, 64, 76])
      for (const encoding of ['base64', 'base64url'] as const) {
        const encoded = Buffer.from(`${before}${secret}\nend\n`).toString(encoding);
        const lines = encoded.match(new RegExp(`.{1,${width}}`, 'g')) ?? [];
        const left = lines.map((line) => masker.text(line).replaceAll('********', ''));
        const own = Math.ceil((before.length * 4) / 3) + 1;
        // Up to five characters at the start and the end of the secret, and what surrounds it.
        expect(left.join('').length).toBeLessThanOrEqual(own + 5 + 5 + 8);
        expect(left.filter((line) => line !== '').length).toBeLessThanOrEqual(5);
      }
});

test('pieces of secrets in base64 have a bound', () => {
  const values = Array.from({ length: 6 }, () => randomBytes(49_152).toString('base64'));
  expect(createMasker().addAll(values.slice(0, 1))).toBe(true);
  expect(createMasker().addAll(values)).toBe(false);
});

test('each line of a secret with several lines is masked, and overlapping secrets as one', () => {
  const masker = createMasker(['first-line\n  second-line\nabc', 'abcdef', 'defghi']);
  expect(masker.text('a first-line b second-line c abc')).toBe('a ******** b ******** c abc');
  expect(masker.text('abcdefghi')).toBe('********');
  expect(masker.json({ 'k-abcdef': [1, 'defghi', null, true] })).toEqual({
    'k-********': [1, '********', null, true],
  });
  expect(createMasker(['123456']).json({ port: 123456 })).toEqual({ port: '********' });
});

const linesOf = (count: number) =>
  Array.from({ length: count }, (_, at) => `line/${at}+of=a:bundle`).join('\n');

test('no secret takes what another needs: all values and lines are masked, and their first lines in all forms', () => {
  const masker = createMasker();
  expect(masker.addAll([linesOf(2_000), 'p4ss/word+1', `first/of+last\n${linesOf(3)}`])).toBe(true);
  const masked = masker.text(
    `line/1999+of=a:bundle ${encodeURIComponent('p4ss/word+1')} ${encodeURIComponent('first/of+last')}`,
  );
  expect(masked).toBe('******** ******** ********');
});

test('a masker says that it does not mask a secret', () => {
  for (const secrets of [
    [linesOf(6_000)],
    Array.from({ length: 6_000 }, (_, at) => `value-${at}`),
    ['p4ssword', 'x'.repeat(65_537)],
  ])
    expect(createMasker().addAll([...secrets, 'the-last'])).toBe(false);
  const full = createMasker([linesOf(6_000), 'a-named-secret']);
  expect(full.text('a-named-secret')).toBe('********');
});

test('a secret that is split over writes never appears, wherever it is split', () => {
  fc.assert(
    fc.property(fc.array(fc.nat(60), { maxLength: 6 }), (cuts) => {
      const masker = createMasker([SECRET]);
      const lines: string[] = [];
      const reader = createLineReader({
        onLine: (line) => void lines.push(masker.text(line)),
        holdBack: (text) => masker.unfinished(text),
        partialMs: 0,
      });
      const bytes = Buffer.from(`some text ${SECRET} and ${SECRET}\r\nnext ${SECRET}`);
      const ends = [...cuts, bytes.length].sort((a, b) => a - b);
      ends.reduce((start, end) => (reader.push(bytes.subarray(start, end)), end), 0);
      reader.end();
      expect(lines).toEqual(['some text ******** and ********', 'next ********']);
    }),
  );
});

const escaped = [
  JSON.stringify(SECRET)
    .slice(1, -1)
    .replaceAll('&', String.raw`\u0026`),
  SECRET.replaceAll(/[^a-z]/g, (each) => `&#${each.charCodeAt(0)};`),
  encodeURIComponent(SECRET),
  JSON.stringify(JSON.stringify(SECRET).replaceAll('é', String.raw`\u00e9`)).slice(3, -3),
  SECRET.replaceAll("'", String.raw`'\''`),
  SECRET.replaceAll('é', String.raw`\303\251`),
];

test('an escaped secret that parts of a line divide never appears, wherever they do', () => {
  const masker = createMasker([SECRET]);
  for (const form of escaped)
    for (let cut = 1; cut < form.length; cut++) {
      const text = `some text ${form.slice(0, cut)}`;
      const ready = text.slice(0, text.length - masker.unfinished(text));
      expect(ready).toBe('some text ');
    }
});

test('a part of a line is passed on without waiting for its end, but no part of a secret', async () => {
  const masker = createMasker([SECRET]);
  const lines: string[] = [];
  const reader = createLineReader({
    onLine: (line) => void lines.push(masker.text(line)),
    holdBack: (text) => masker.unfinished(text),
    partialMs: 1,
  });
  const bytes = Buffer.from(`password: ${SECRET}!\n`);
  reader.push(bytes.subarray(0, 16));
  await eventually(
    () => lines,
    ({ length }) => length === 1,
  );
  reader.push(bytes.subarray(16, 29));
  reader.push(bytes.subarray(29));
  reader.end();
  expect(lines).toEqual(['password: ', '********!']);
});

test('a secret that the limit of a line divides is left out', () => {
  const masker = createMasker([SECRET]);
  const lines: string[] = [];
  const reader = createLineReader({
    onLine: (line) => void lines.push(masker.text(line)),
    holdBack: (text) => masker.unfinished(text),
  });
  reader.push(Buffer.from(`${'x'.repeat(65_536 - 8)}${SECRET}\n`));
  expect(lines).toEqual(['x'.repeat(65_536 - 8)]);
});

/** A few units, so that secrets repeat themselves and overlap. */
const unit = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 4 });
const repeated = fc.tuple(unit, fc.nat(12)).map(([text, times]) => text.repeat(times + 1));

test('secrets that repeat themselves are found like one occurrence after another', () => {
  const secretsOf = (values: string[]) => values.flatMap((value) => [value, value.slice(0, -1)]);
  const arbitrary = fc.tuple(
    fc.array(fc.tuple(repeated, unit).map(secretsOf), { minLength: 1, maxLength: 3 }),
    fc.array(fc.oneof(repeated, unit, fc.constant('c')), { maxLength: 12 }),
  );
  fc.assert(
    fc.property(arbitrary, ([groups, parts]) => {
      const secrets = groups.flat().filter((secret) => secret !== '');
      const text = [...parts, ...secrets.map((secret) => secret.slice(1)), ...parts].join('');
      const masker = createMasker(secrets, { minChars: 1 });
      const isSecret = Array.from(text, (_, at) =>
        secrets.some((secret) =>
          Array.from(secret, (__, back) => at - back).some(
            (start) => start >= 0 && text.startsWith(secret, start),
          ),
        ),
      );
      const marked = Array.from(text, (each, at) => (isSecret[at] ? '#' : each)).join('');
      expect(masker.text(text)).toBe(marked.replaceAll(/#+/g, '********'));
      const ends = Array.from(text, (_, at) => text.slice(at));
      const isStart = (end: string) =>
        secrets.some((secret) => secret.length > end.length && secret.startsWith(end));
      expect(masker.unfinished(text)).toBe((ends.find(isStart) ?? '').length);
    }),
    { numRuns: propertyRuns(300) },
  );
});

test.each([
  ['of one letter', 'a'.repeat(60_000)],
  ['that differs at its start', `b${'a'.repeat(60_000)}`],
  ['that differs at its end', `${'a'.repeat(60_000)}b`],
  ['that differs in the middle', `${'a'.repeat(30_000)}b${'a'.repeat(30_000)}`],
  ['of two letters', 'ab'.repeat(30_000)],
])('a long secret %s takes no time that grows faster than the text', (_what, secret) => {
  const masker = createMasker([secret]);
  for (const part of ['a', 'ab', `${'a'.repeat(59_999)}c`]) {
    const text = part.repeat(Math.ceil(1_000_000 / part.length));
    expect(masker.text(text).length).toBeLessThanOrEqual(text.length);
    expect(masker.unfinished(text)).toBeLessThanOrEqual(secret.length);
  }
  expect(masker.text(`x${secret}y`)).toBe('x********y');
});

/** What the masker of the Python kit must do, too: its tests read the same file. */
const VECTORS = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '../../support/maskingVectors.json'), 'utf8'),
) as {
  texts: { name: string; secrets: string[]; text: string; masked: string }[];
  payloads: { name: string; schema: object; payload: unknown; secrets: string[] }[];
};

test.each(VECTORS.texts)('a secret is masked as in the Python kit: $name', (vector) => {
  expect(createMasker(vector.secrets).text(vector.text)).toBe(vector.masked);
});

test.each(VECTORS.payloads)('secrets of a payload are those of the Python kit: $name', (vector) => {
  expect(secretValuesIn(vector.schema, vector.payload).sort()).toEqual(vector.secrets);
});
