import { MIGRATIONS } from '../migrations/index.ts';
import type { Knex } from './knex.ts';
import { pendingMigrations } from './migrate.ts';
import type { ContractStep, Migrations } from './migration.ts';

/** A contract step that the schema has taken, and that a process is too old for. */
export type RefusingStep = ContractStep & { name: string };

/** How the schema fits a version: what it lacks, or the contract step after which the version is too old. */
export type SchemaFit = { pending: string[]; refusedBy: RefusingStep | undefined };

/** Reads how the schema fits the version that knows `migrations`. */
export async function readSchemaFit(
  db: Knex,
  migrations: Migrations = MIGRATIONS,
): Promise<SchemaFit> {
  const { rows } = await db.raw<{ rows: { found: string | null }[] }>(
    `SELECT to_regclass('schema_contracts') AS found`,
  );
  const steps: RefusingStep[] = rows[0]?.found
    ? await db('schema_contracts').orderBy('name').select('name', 'needs', 'reason')
    : [];
  return {
    pending: await pendingMigrations(db, migrations),
    refusedBy: steps.find(({ needs }) => !(needs in migrations)),
  };
}
