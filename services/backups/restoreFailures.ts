import { isConcurrencyError } from '../../db/core/constraints.ts';
import type { RestoreReport } from '../../domain/backups/backups.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { counted } from '../../domain/shared/counted.ts';

/** Thrown to roll back a transaction on purpose. */
export class Rollback extends Error {}

/**
 * The failure of a restore whose report has errors. It names codes only, since readers of the job
 * may not be allowed to see the records.
 */
export function restoreInvalid({ errors }: RestoreReport): JobFailure {
  const codes = [...new Set(errors.map(({ code }) => code))].join(', ');
  return new JobFailure(
    'restore_invalid',
    `The restore is prevented by ${counted(errors.length, 'error')}: ${codes}. A validation lists them.`,
    { retryable: false },
  );
}

/** Error: `restore_stale` when the expected plan hash is not the current one. */
export function assertPlanHash(expected: string | undefined, planHash: string): void {
  if (expected === undefined || expected === planHash) return;
  throw new JobFailure(
    'restore_stale',
    'The planHash does not match: records have changed since, or the validation had other sections',
    { retryable: false },
  );
}

/** Which constraint an error of PostgreSQL names, without values; null for other errors. */
export function describeViolation(
  error: unknown,
): { message: string; table: string | null } | null {
  if (!isConcurrencyError(error)) return null;
  const { table = null, constraint } = error as { table?: string | null; constraint?: string };
  const where = table === null ? '' : ` in ${table}`;
  const which = constraint === undefined ? '' : ` (${constraint})`;
  return { table, message: `Existing records${where} conflict with the restore${which}` };
}
