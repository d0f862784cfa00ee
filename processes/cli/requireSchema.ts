import type { Knex } from '../../db/core/knex.ts';
import { readSchemaFit } from '../../db/core/schemaFit.ts';
import { counted } from '../../domain/shared/counted.ts';
import { schemaTooNew } from '../../services/shared/schemaState.ts';
import { commandLine } from './program.ts';

/**
 * Refuses to run a command on a schema that it does not know; processes wait for theirs instead. Errors:
 * `SchemaTooNew`; `Error` that names the command which migrates.
 */
export async function requireSchema(db: Knex): Promise<void> {
  const { pending, refusedBy } = await readSchemaFit(db);
  if (refusedBy) throw schemaTooNew(refusedBy);
  if (pending.length === 0) return;
  throw new Error(
    `the database schema lacks ${counted(pending.length, 'migration')} of this version. ` +
      `Run \`${commandLine('migrate', 'up')}\` first.`,
  );
}
