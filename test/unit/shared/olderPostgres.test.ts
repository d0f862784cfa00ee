import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';

const ROOT = path.resolve(import.meta.dirname, '../../..');

/** Where the parenthesis at `start` closes. */
function endOf(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '(') depth++;
    if (text[at] === ')' && --depth === 0) return at;
  }
  return text.length;
}

/** Subqueries in FROM without a name, which PostgreSQL 15 refuses. */
function withoutAlias(text: string): string[] {
  const found: string[] = [];
  for (const match of text.matchAll(/\b(?:FROM|JOIN|LATERAL)\s+(\(\s*(?:SELECT|VALUES|WITH)\b)/g)) {
    const start = match.index + match[0].length - (match[1] ?? '').length;
    const after = text.slice(endOf(text, start) + 1).trimStart();
    if (!/^(?:AS\s|\$\{|[a-z]\w*)/.test(after)) found.push(text.slice(start, start + 80));
  }
  return found;
}

test('the search for subqueries without an alias finds them', () => {
  expect(withoutAlias('SELECT 1 FROM (SELECT count(*) FROM t) WHERE true')).toHaveLength(1);
  expect(withoutAlias('SELECT 1 FROM a JOIN LATERAL (SELECT (1)) ON true')).toHaveLength(1);
  expect(withoutAlias('SELECT 1 FROM (SELECT 1) AS a JOIN (SELECT 2) b ON true')).toEqual([]);
});

test('every subquery in FROM has an alias: PostgreSQL 15 needs one, newer versions do not', async () => {
  const files = globSync('{db,services,platform,activities,temporal,processes}/**/*.ts', {
    cwd: ROOT,
  });
  expect(files.length).toBeGreaterThan(200);
  const found = await Promise.all(
    files.map(async (file) =>
      withoutAlias(await readFile(path.join(ROOT, file), 'utf8')).map((sql) => `${file}: ${sql}`),
    ),
  );
  expect(found.flat()).toEqual([]);
});
