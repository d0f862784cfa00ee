import type { ExceededQuota } from '../access/quotas.ts';
import { nounOf } from './nouns.ts';

/** Every error code of the API. `api/http/problem.ts` has the HTTP status of each. */
export type ErrorCode =
  | 'invalid_request'
  | 'identity_required'
  | 'identity_mismatch'
  | 'session_invalid'
  | 'token_invalid'
  | 'token_not_accepted'
  | 'address_not_allowed'
  | 'login_failed'
  | 'password_change_required'
  | 'permission_denied'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'in_use'
  | 'prefix_exhausted'
  | 'allocation_refused'
  | 'limit_reached'
  | 'quota_exceeded'
  | 'legal_hold'
  | 'hold_released'
  | 'webhook_disabled'
  | 'delivery_pending'
  | 'built_in'
  | 'last_administrator'
  | 'external_account'
  | 'own_account'
  | 'version_conflict'
  | 'if_match_required'
  | 'job_already_finished'
  | 'job_still_running'
  | 'job_not_retryable'
  | 'attempt_lost'
  | 'unknown_runner'
  | 'events_purged'
  | 'log_purged'
  | 'history_incomplete'
  | 'entries_archived'
  | 'unknown_position'
  | 'schedule_busy'
  | 'schedule_not_runnable'
  | 'self_approval'
  | 'not_assigned'
  | 'not_requester'
  | 'already_decided'
  | 'approval_closed'
  | 'content_mismatch'
  | 'execution_started'
  | 'backup_busy'
  | 'backup_not_ready'
  | 'restore_invalid'
  | 'restore_stale'
  | 'not_supported'
  | 'idempotency_in_progress'
  | 'idempotency_mismatch'
  | 'body_too_large'
  | 'media_type_unsupported'
  | 'too_many_requests'
  | 'queue_full'
  | 'provider_unavailable'
  | 'master_key_missing'
  | 'unavailable'
  | 'server_busy'
  | 'no_database_connection'
  | 'internal';

/** The part of the request that has the invalid value. */
export type FieldLocation = 'body' | 'query' | 'path' | 'header';

/** One bad field: `pointer` is a JSON Pointer (RFC 6901) inside `in`. */
export type FieldError = { in: FieldLocation; pointer: string; code: string; message: string };

/**
 * A conflict of a change with another record. `id` is null when the caller must not see that
 * record.
 */
export type RecordConflict = {
  pointer: string | null;
  code: string;
  message: string;
  resource: string | null;
  id: string | null;
};

type ErrorDetails = {
  errors?: readonly FieldError[];
  conflicts?: readonly RecordConflict[];
  retryAfterSeconds?: number;
  allow?: readonly string[];
  report?: object;
  quota?: ExceededQuota;
  /** From where on nothing is purged: the sequence of an event, a line of a log, or the position of an audit entry. */
  oldestSequence?: number;
  oldestLine?: number;
  oldestPosition?: number;
};

/** An expected failure. `message` is shown to the caller, so it never holds a secret. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly extra: ErrorDetails;

  constructor(code: ErrorCode, detail: string, extra: ErrorDetails = {}) {
    super(detail);
    this.name = 'AppError';
    this.code = code;
    this.extra = extra;
  }
}

/** A login failed, for the reason `cause`. Its browser continues at `failureTo`, a path of our origin. */
export class LoginFailure extends Error {
  readonly failureTo: string;

  constructor(failureTo: string, cause: unknown) {
    super('A login failed', { cause });
    this.name = 'LoginFailure';
    this.failureTo = failureTo;
  }
}

/** `invalid_request` for one field. */
export const invalidField = (
  location: FieldLocation,
  pointer: string,
  code: string,
  message: string,
): AppError => invalidFields([{ in: location, pointer, code, message }]);

/** Most bad fields of one request that an error lists. */
export const MAX_FIELD_ERRORS = 50;

/** `invalid_request` that names every bad field. */
export const invalidFields = (errors: readonly FieldError[]): AppError =>
  new AppError(
    'invalid_request',
    errors
      .map((e) => `${e.in}${e.pointer}: ${e.message}`)
      .join('; ')
      .slice(0, 1_000),
    {
      errors,
    },
  );

/** `not_found`, worded the same for an unknown id and for one outside the caller's scope. `type` is that of the record. */
export const notFound = (type: string, id: string): AppError =>
  new AppError('not_found', `No ${nounOf(type)} with id ${id}.`);

/**
 * `legal_hold`: what a change would delete is held. The hold is named only for callers who may read it.
 */
export const legalHoldError = (hold?: { id: string }): AppError => {
  const message = hold
    ? `The legal hold ${hold.id} keeps what this would delete.`
    : 'A legal hold keeps what this would delete.';
  return new AppError('legal_hold', message, {
    conflicts: [
      {
        pointer: null,
        code: 'legal_hold',
        message,
        resource: hold ? 'legal-holds' : null,
        id: hold?.id ?? null,
      },
    ],
  });
};

/** `version_conflict`: `If-Match` named another version than the record has. */
export const versionConflict = (version: number): AppError =>
  new AppError(
    'version_conflict',
    `The record has changed since it was read; its version is now ${version}.`,
  );

/** Throws `version_conflict` when a version was asked for and it is not the record's. */
export function checkVersion(record: { version: number }, expected: number | undefined): void {
  if (expected !== undefined && expected !== record.version) throw versionConflict(record.version);
}

/** True for `quota_exceeded`: the tenant owns as much as it may. */
export const isQuotaExceeded = (error: unknown): error is AppError =>
  error instanceof AppError && error.code === 'quota_exceeded';

/** True for `too_many_requests`: it may be possible later. */
export const isTooManyRequests = (error: unknown): error is AppError =>
  error instanceof AppError && error.code === 'too_many_requests';

/** True for `permission_denied`: the rights of the caller do not allow it. */
export const isPermissionDenied = (error: unknown): error is AppError =>
  error instanceof AppError && error.code === 'permission_denied';

/** For `catch`, where the record that is created may exist already. */
export function ignoreConflict(error: unknown): void {
  if (!(error instanceof AppError) || error.code !== 'conflict') throw error;
}
