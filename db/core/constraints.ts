import { quotaText, type ExceededQuota } from '../../domain/access/quotas.ts';
import { driverErrorOf } from '../../domain/shared/driverError.ts';
import { AppError, legalHoldError } from '../../domain/shared/errors.ts';

/** True when a row violates a unique constraint (SQLSTATE 23505). */
export const isUniqueViolation = (error: unknown): boolean => sqlState(error) === '23505';

/** For `catch`: throws `conflict` with this text for a violated unique constraint, any other error as it is. */
export const conflictIfTaken =
  (text: string) =>
  (error: unknown): never => {
    throw isUniqueViolation(error) ? new AppError('conflict', text) : error;
  };

/** True when a row violates the unique index or constraint of this name. */
export const violatesUnique = (error: unknown, name: string): boolean =>
  isUniqueViolation(error) && driverErrorOf(error).constraint === name;

/** True when a row violates a foreign key (SQLSTATE 23503). */
export const isForeignKeyViolation = (error: unknown): boolean => sqlState(error) === '23503';

/** True when a row violates any constraint (class 23 of SQLSTATE). */
export const isViolation = (error: unknown): boolean => String(sqlState(error)).startsWith('23');

/** True when a lock timeout has expired (SQLSTATE 55P03). */
export const isLockTimeout = (error: unknown): boolean => sqlState(error) === '55P03';

/** True when PostgreSQL has ended a deadlock by refusing a statement (SQLSTATE 40P01). */
export const isDeadlock = (error: unknown): boolean => sqlState(error) === '40P01';

/** True when another transaction has changed what a stable snapshot shows (SQLSTATE 40001). */
export const isSerializationFailure = (error: unknown): boolean => sqlState(error) === '40001';

/** True when a statement took longer than its time limit, or was cancelled (SQLSTATE 57014). */
export const isCancelledStatement = (error: unknown): boolean => sqlState(error) === '57014';

/** True when another transaction held a lock for too long (SQLSTATE 55P03, 40P01, 57014). */
export const isBusy = (error: unknown): boolean =>
  isLockTimeout(error) || isDeadlock(error) || isCancelledStatement(error);

/**
 * SQLSTATEs of errors of a statement. Not those of connections, of resources and of a server that
 * stops or only reads, nor timeouts: whether a COMMIT was carried out may be unknown, or the next attempt is not better.
 */
const REFUSALS = /^(?!08|40003|25006)(?:[0-4]\w|5[45]|P0|HF)\w{3}$/;

/** True when PostgreSQL has refused a statement, COMMIT included: the transaction has written nothing. */
export const isRefused = (error: unknown): boolean => {
  const { code, isConnectFailure } = driverErrorOf(error);
  return typeof code === 'string' && REFUSALS.test(code) && !isConnectFailure;
};

/** True when a legal hold keeps what a change would delete (SQLSTATE HF004). */
export const isHeld = (error: unknown): boolean => sqlState(error) === 'HF004';

/** Another transaction has changed a record since it was read. */
export class ConcurrencyError extends Error {}

/**
 * True when a checked transaction failed because a concurrent one committed first. A retry sees the
 * other transaction's changes.
 */
export const isConcurrencyError = (error: unknown): boolean =>
  error instanceof ConcurrencyError || CONCURRENCY_SQLSTATES.has(String(sqlState(error)));
const CONCURRENCY_SQLSTATES: ReadonlySet<string> = new Set([
  '23505',
  '23503',
  '23514',
  '23P01',
  '40P01',
  '40001',
]);

/**
 * The error for a change that the schema refuses: `quota_exceeded` by `check_quota`, `legal_hold` by
 * `refuse_if_held`, `unavailable` by `share_tenant` and `share_job_type`; any other error as it is.
 */
export function asRefusal(error: unknown): unknown {
  if (isHeld(error)) return legalHoldError();
  if (sqlState(error) === 'HF005')
    return new AppError(
      'unavailable',
      'What this would belong to was deleted at that moment. Try again.',
      {
        retryAfterSeconds: 1,
      },
    );
  if (sqlState(error) !== 'HF002') return error;
  const { tenantId, ...quota } = JSON.parse(
    driverErrorOf(error).detail ?? '{}',
  ) as ExceededQuota & {
    tenantId: string;
  };
  return new AppError('quota_exceeded', quotaText(tenantId, quota), { quota });
}

const sqlState = (error: unknown): unknown => driverErrorOf(error).code;
