/** Every way in which a request can fail, as a caller sees it. The HTTP status of each is in `api/kit/problem.ts`. */
export type ErrorCode =
  | 'invalid_request'
  | 'identity_required'
  | 'session_invalid'
  | 'login_failed'
  | 'password_change_required'
  | 'permission_denied'
  | 'not_found'
  | 'method_not_allowed'
  | 'conflict'
  | 'in_use'
  | 'no_room'
  | 'allocation_refused'
  | 'limit_reached'
  | 'webhook_disabled'
  | 'delivery_pending'
  | 'built_in'
  | 'last_administrator'
  | 'not_local'
  | 'own_account'
  | 'version_stale'
  | 'version_required'
  | 'job_finished'
  | 'job_not_finished'
  | 'job_not_retryable'
  | 'schedule_busy'
  | 'schedule_cannot_run'
  | 'self_approval'
  | 'not_assigned'
  | 'not_requester'
  | 'already_decided'
  | 'approval_closed'
  | 'content_changed'
  | 'execution_begun'
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
  | 'provider_unavailable'
  | 'master_key_missing'
  | 'unavailable'
  | 'internal';

/** Where the bad value stood. */
export type FieldPlace = 'body' | 'query' | 'path' | 'header';

/** One bad field: `pointer` is a JSON Pointer (RFC 6901) inside `in`. */
export type FieldError = { in: FieldPlace; pointer: string; code: string; message: string };

/** A record that stands against a change, where the caller may see it. */
export type Conflict = {
  pointer: string | null;
  code: string;
  message: string;
  resource: string | null;
  id: string | null;
};

type ErrorExtra = {
  errors?: readonly FieldError[];
  conflicts?: readonly Conflict[];
  retryAfterSeconds?: number;
  allow?: readonly string[];
  report?: object;
};

/** An expected failure. `message` is shown to the caller, so it never holds a secret. */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly extra: ErrorExtra;

  constructor(code: ErrorCode, detail: string, extra: ErrorExtra = {}) {
    super(detail);
    this.name = 'AppError';
    this.code = code;
    this.extra = extra;
  }
}

/** `invalid_request` for one field; several at once go through `invalidFields`. */
export const invalidField = (
  place: FieldPlace,
  pointer: string,
  code: string,
  message: string,
): AppError => invalidFields([{ in: place, pointer, code, message }]);

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

/** `not_found`, worded the same for an unknown id and for one outside the caller's scope. */
export const notFound = (what: string, id: string): AppError =>
  new AppError('not_found', `No ${what} with id ${id}.`);

/** `version_stale`: `If-Match` named another version than the record has. */
export const staleVersion = (version: number): AppError =>
  new AppError(
    'version_stale',
    `The record has changed since it was read; its version is now ${version}.`,
  );

/** Throws `version_stale` when a version was asked for and it is not the record's. */
export function checkVersion(record: { version: number }, expected: number | undefined): void {
  if (expected !== undefined && expected !== record.version) throw staleVersion(record.version);
}
