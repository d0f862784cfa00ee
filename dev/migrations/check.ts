import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { MIGRATIONS } from '../../db/migrations/index.ts';
import { findNotAdditive } from './rules.ts';
import { readMigrationSource, type MigrationSource } from './source.ts';

/**
 * `npm run check` runs this: fails when a migration is not additive, because processes of two versions use
 * the schema at the same time (docs/upgrading.md). A contract step may remove what the last release does not
 * use any more.
 */
const FOLDER = path.resolve(import.meta.dirname, '../../db/migrations');
const LAST_RELEASE = path.resolve(import.meta.dirname, '../../test/fixtures/lastRelease.json');

/** Migrations up to this number are older than the rule. */
const EXEMPT_UNTIL = 65;

const MIN_REASON_LENGTH = 20;

const numberOf = (name: string): number => Number(name.slice(0, 4));

/** What is wrong with a declared contract step; `released` is the newest migration of the last release. */
function findBadContract(
  { needs = '', reason = '' }: NonNullable<MigrationSource['contract']>,
  released: string,
): string[] {
  return [
    ...(reason.length < MIN_REASON_LENGTH ? ['is a contract step without a reason'] : []),
    ...(needs in MIGRATIONS
      ? []
      : [`is a contract step that needs the unknown migration ${needs}`]),
    ...(numberOf(needs) > numberOf(released)
      ? [`needs ${needs}, which the last release does not have: it may still be running`]
      : []),
  ];
}

/** What is wrong with a migration. */
export function checkMigration(name: string, text: string, released: string): string[] {
  const source = readMigrationSource(name, text);
  if (source.contract) return findBadContract(source.contract, released);
  return findNotAdditive(source);
}

async function main(): Promise<number> {
  const { migration } = JSON.parse(await readFile(LAST_RELEASE, 'utf8')) as { migration: string };
  const files = (await readdir(FOLDER)).filter(
    (file) => /^\d{4}_/.test(file) && numberOf(file) > EXEMPT_UNTIL,
  );
  let found = 0;
  for (const file of files.toSorted()) {
    const text = await readFile(path.join(FOLDER, file), 'utf8');
    for (const finding of checkMigration(file, text, migration)) {
      process.stderr.write(`db/migrations/${file} ${finding}\n`);
      found += 1;
    }
  }
  return found === 0 ? 0 : 1;
}

if (import.meta.main) process.exitCode = await main();
