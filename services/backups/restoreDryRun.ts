import { tryDifferences } from '../../db/backups/applyRestore.ts';
import { findDifferences } from '../../db/backups/differences.ts';
import type { RestorePlan } from '../../db/backups/restorePlan.ts';
import { limitLocks, removeTimeouts } from '../../db/backups/restoreRuns.ts';
import { queryIn } from '../../db/backups/sql.ts';
import { cancelOnAbort } from '../../db/core/cancelOnAbort.ts';
import { asRefusal, isBusy, isSerializationFailure } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { RestoreReport } from '../../domain/backups/backups.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { describeViolation, Rollback } from './restoreFailures.ts';

/**
 * Others wait for the rows that a dry run writes, so it soon stops; the restore itself finds the same
 * conflicts.
 */
const LOCK_TIMEOUT_MS = 200;
const WRITE_TIMEOUT_MS = 2_000;
const MAX_CHANGES = 10_000;

/**
 * Applies a restore and rolls it back, when records that the restore does not replace could violate
 * constraints. Adds a conflict to the errors of the report, or the warning `dry_run_skipped`.
 */
export async function dryRun(
  db: Knex,
  { plan, report, signal }: { plan: RestorePlan; report: RestoreReport; signal: AbortSignal },
): Promise<void> {
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
  let outcome = await applyAndRollBack(db, plan, signal);
  // A record that is written while the dry run runs can conflict with what it has read before.
  if (outcome !== null && outcome !== 'busy') outcome = await applyAndRollBack(db, plan, signal);
  if (outcome === 'busy')
    skip('The dry run would have held up other writers; the restore itself reports conflicts');
  else if (outcome !== null) {
    report.valid = false;
    report.errors.push({ section: null, key: null, ...outcome });
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

/** Why the restore cannot be applied; `busy` when that is not known; null when it can. */
async function applyAndRollBack(
  db: Knex,
  plan: RestorePlan,
  signal: AbortSignal,
): Promise<NonNullable<ReturnType<typeof describeRefusal>> | 'busy' | null> {
  try {
    await db.transaction(
      async (trx) => {
        await removeTimeouts(trx);
        await cancelOnAbort(db, trx, signal, () => findDifferences(queryIn(trx, signal), plan));
        await limitLocks(trx, LOCK_TIMEOUT_MS);
        const limited = AbortSignal.any([signal, AbortSignal.timeout(WRITE_TIMEOUT_MS)]);
        await cancelOnAbort(db, trx, limited, () => tryDifferences(trx, plan, limited));
        throw new Rollback();
      },
      { isolationLevel: 'repeatable read' },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Rollback) return null;
    if (isTimeout(error) || isBusy(error) || isSerializationFailure(error)) return 'busy';
    const refusal = describeRefusal(error);
    if (refusal) return refusal;
    throw error;
  }
  return null;
}

const isTimeout = (error: unknown): boolean =>
  error instanceof DOMException && error.name === 'TimeoutError';
