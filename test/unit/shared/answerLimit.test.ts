import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { limitSetBy } from '../../../db/core/answerLimit.ts';

test('the limit that a statement sets for its transaction is known', () => {
  const limitOf = (text: string, values?: unknown[]) =>
    limitSetBy({ text, ...(values && { values }) });
  expect(limitOf('SET LOCAL statement_timeout = 0')).toBe(0);
  expect(limitOf(`SET LOCAL lock_timeout = '3s'; SET LOCAL statement_timeout = 700;`)).toBe(700);
  expect(limitOf("SELECT set_config('statement_timeout', $1, true)", ['800'])).toBe(800);
  // That of the connection.
  expect(limitOf("SELECT set_config('statement_timeout', $1, false)", ['9'])).toBeUndefined();
  expect(limitOf('SELECT 1')).toBeUndefined();
});

const ROOT = path.resolve(import.meta.dirname, '../../..');
/** Forms that `limitSetBy` reads. Where connections are not of the pool, they set it for the session. */
const KNOWN = /SET LOCAL statement_timeout = |set_config\('statement_timeout', \?, true\)/g;
const OWN_CONNECTIONS = [
  'db/backups/backupConnection.ts',
  'db/core/knex.ts',
  'db/core/answerLimit.ts',
];

test('statements of the pool set a limit in a form that is known', async () => {
  const files = (await readdir(path.join(ROOT, 'db'), { recursive: true }))
    .map((file) => `db/${file}`)
    .filter((file) => file.endsWith('.ts') && !OWN_CONNECTIONS.includes(file));
  const unknown: string[] = [];
  for (const file of files) {
    const text = await readFile(path.join(ROOT, file), 'utf8');
    if (text.replaceAll(KNOWN, '').includes('statement_timeout')) unknown.push(file);
  }
  expect(unknown).toEqual([]);
});
