import { applyDifferences, lockForRestore } from '../../db/backups/applyRestore.ts';
import { findDifferences } from '../../db/backups/differences.ts';
import type { RestorePlan } from '../../db/backups/restorePlan.ts';
import { limitStatements } from '../../db/backups/restoreRuns.ts';
import { queryIn } from '../../db/backups/sql.ts';
import { asRefusal, isBusy } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { RestoreReport } from '../../domain/backups/backups.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { describeViolation, Rollback } from './restoreFailures.ts';

/** A dry run stops early, since the restore itself finds the same conflicts. */
const LOCK_TIMEOUT_MS = 1_500;
const STATEMENT_TIMEOUT_MS = 10_000;
const MAX_CHANGES = 10_000;

/**
 * Applies a restore and rolls it back, when records that the restore does not replace could violate
 * constraints. Adds a conflict to the errors of the report, or the warning `dry_run_skipped`.
 */
export async function dryRun(db: Knex, plan: RestorePlan, report: RestoreReport): Promise<void> {
  if (!report.valid || !mayConflict(plan, report)) return;
  const skip = (message: string) =>
    void report.warnings.push({
      code: 'dry_run_skipped',
      message,
      section: null,
      table: null,
      key: null,
    });
  const { created, changed, deleted } = report.preview.counts;
  if (created + changed + deleted > MAX_CHANGES) {
    skip('There are too many changes for a dry run; the restore itself reports conflicts');
    return;
  }
  try {
    await applyAndRollBack(db, plan, report);
  } catch (error) {
    if (error instanceof Rollback) return;
    if (isBusy(error)) {
      skip('The records are being written; the restore itself reports conflicts');
      return;
    }
    const refusal = describeRefusal(error);
    if (!refusal) throw error;
    report.valid = false;
    report.errors.push({ section: null, key: null, ...refusal });
  }
}

/** Why the database refuses the restore: a constraint, a quota or a legal hold; null for other errors. */
function describeRefusal(error: unknown) {
  const refusal = asRefusal(error);
  if (refusal instanceof AppError)
    return { code: refusal.code, table: null, message: refusal.message };
  const violation = describeViolation(error);
  return violation && { code: 'conflict', ...violation };
}

/** True when restored rows are added to rows that remain: of other tenants, sections or times. */
function mayConflict(plan: RestorePlan, { preview }: RestoreReport): boolean {
  const historyTables = new Set(
    plan.tables.filter(({ role }) => role === 'history').map(({ table }) => table.name),
  );
  return (
    plan.scope.tenantId !== null ||
    preview.tables.some(
      ({ table, includedByReference, created }) =>
        created > 0 && (includedByReference || historyTables.has(table)),
    )
  );
}

/** Always throws: `Rollback` when the restore can be applied. */
const applyAndRollBack = (db: Knex, plan: RestorePlan, { preview }: RestoreReport): Promise<void> =>
  db.transaction(async (trx) => {
    const changedTables = new Set(
      preview.tables
        .filter(({ created, changed, deleted }) => created + changed + deleted > 0)
        .map(({ table }) => table),
    );
    await lockForRestore(trx, plan, LOCK_TIMEOUT_MS, changedTables);
    await limitStatements(trx, STATEMENT_TIMEOUT_MS);
    await findDifferences(queryIn(trx), plan);
    await applyDifferences(trx, plan);
    throw new Rollback();
  });
