import type { QueryBuilder } from 'objection';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Scope } from '../../domain/access/scope.ts';
import { scopeCondition } from '../core/scopeSql.ts';
import type { Knex } from '../core/knex.ts';
import { Import } from '../models/Import.ts';
import { Job } from '../models/Job.ts';

/**
 * The imports of tenants inside `scope`, and those that the actor started at its own tenant. With an API token,
 * those that were started with it: others may be about more than it may know.
 */
export function readableImports(
  db: Knex,
  scope: Scope,
  { actorId, tenantId, token }: Pick<Caller, 'actorId' | 'tenantId' | 'token'>,
): QueryBuilder<Import> {
  const { sql, bindings } = scopeCondition(scope);
  const withToken = token ? "AND authority->>'tokenId' = ?" : '';
  return Import.query(db).whereRaw(`(${sql} OR (created_by = ? AND tenant_id = ? ${withToken}))`, [
    ...bindings,
    actorId,
    tenantId,
    ...(token ? [token.id] : []),
  ]);
}

/** Reads an import by its id. It must exist. */
export const readImport = (db: Knex, id: string): Promise<Import> =>
  Import.query(db).findById(id).throwIfNotFound().execute();

/** Locks an import, so that one transaction at a time writes its rows. */
export const lockImport = async (trx: Knex, id: string): Promise<void> =>
  void (await Import.query(trx).findById(id).forUpdate());

/** An import of the rows of a dry run that runs or has written rows; undefined if there is none. */
export async function findApplied(db: Knex, dryRunId: string): Promise<string | undefined> {
  const found = await Import.query(db)
    .where({ dry_run_id: dryRunId })
    .whereRaw(
      `(EXISTS (SELECT FROM jobs WHERE jobs.id = imports.job_id AND jobs.status IN ('queued', 'running'))
        OR EXISTS (SELECT FROM import_rows WHERE import_id = imports.id AND outcome IN ('created', 'updated', 'deleted')))`,
    )
    .first()
    .execute();
  return found?.id;
}

/** The job of an import, as far as readers of the import may see it. */
export type ImportJob = Pick<Job, 'id' | 'status' | 'progress' | 'error' | 'finishedAt'>;

/** The jobs of imports by their ids. */
export async function readImportJobs(
  db: Knex,
  ids: readonly string[],
): Promise<Map<string, ImportJob>> {
  const jobs: ImportJob[] = await Job.query(db)
    .findByIds([...ids])
    .select('id', 'status', 'progress', 'error', 'finished_at');
  return new Map(jobs.map((job) => [job.id, job]));
}
