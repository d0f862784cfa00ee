import { Type, type Static } from 'typebox';
import { driverErrorOf } from '../../domain/shared/driverError.ts';
import { isConnectionLimit, isOutage, isPoolBusy } from '../../domain/shared/outage.ts';
import { AppError, LoginFailure, type ErrorCode } from '../../domain/shared/errors.ts';

/** HTTP status and title of every error code. */
export const PROBLEMS: Readonly<Record<ErrorCode, { status: number; title: string }>> = {
  invalid_request: { status: 400, title: 'Invalid request' },
  identity_mismatch: { status: 400, title: 'Identity headers do not match the token' },
  identity_required: { status: 401, title: 'Authentication required' },
  session_invalid: { status: 401, title: 'Invalid session' },
  token_invalid: { status: 401, title: 'Invalid token' },
  token_not_accepted: { status: 403, title: 'Not possible with a token' },
  address_not_allowed: { status: 403, title: 'Address not allowed for the token' },
  login_failed: { status: 401, title: 'Login failed' },
  password_change_required: { status: 403, title: 'Password change required' },
  permission_denied: { status: 403, title: 'Permission denied' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  conflict: { status: 409, title: 'Conflicts with another record' },
  prefix_exhausted: { status: 409, title: 'No free space' },
  allocation_refused: { status: 409, title: 'Prefix does not allow allocation' },
  limit_reached: { status: 409, title: 'Limit reached' },
  quota_exceeded: { status: 409, title: 'Quota exceeded' },
  legal_hold: { status: 409, title: 'A legal hold is in force' },
  hold_released: { status: 409, title: 'Legal hold is already released' },
  webhook_disabled: { status: 409, title: 'Webhook is disabled' },
  delivery_pending: { status: 409, title: 'Delivery in progress' },
  in_use: { status: 409, title: 'Record is in use' },
  built_in: { status: 409, title: 'Built-in record cannot be changed' },
  last_administrator: { status: 409, title: 'Last platform administrator' },
  external_account: { status: 409, title: 'Account is managed by an identity provider' },
  own_account: { status: 409, title: 'Not allowed on your own account' },
  master_key_missing: { status: 409, title: 'Master key missing' },
  job_already_finished: { status: 409, title: 'Job already finished' },
  job_not_retryable: { status: 409, title: 'Job cannot be retried' },
  attempt_lost: { status: 409, title: 'Attempt no longer counts' },
  unknown_runner: { status: 404, title: 'Runner not announced' },
  job_still_running: { status: 409, title: 'Job still running' },
  schedule_busy: { status: 409, title: 'Previous run still active' },
  schedule_not_runnable: { status: 409, title: 'Schedule cannot run' },
  self_approval: { status: 403, title: 'Requesters cannot decide on their own requests' },
  not_assigned: { status: 403, title: 'Not assigned to you' },
  not_requester: { status: 403, title: 'Not the requester' },
  already_decided: { status: 409, title: 'Already decided' },
  approval_closed: { status: 409, title: 'Request is closed' },
  content_mismatch: { status: 409, title: 'Content has changed since review' },
  execution_started: { status: 409, title: 'Execution has started' },
  backup_busy: { status: 409, title: 'Backup is in use' },
  backup_not_ready: { status: 409, title: 'Backup has no archive to restore' },
  restore_invalid: { status: 409, title: 'Restore validation failed' },
  restore_stale: { status: 409, title: 'Records have changed since validation' },
  idempotency_in_progress: { status: 409, title: 'Original request still in progress' },
  events_purged: { status: 410, title: 'Events are purged' },
  log_purged: { status: 410, title: 'Log lines are purged' },
  history_incomplete: { status: 410, title: 'History is not complete' },
  entries_archived: { status: 410, title: 'Audit entries are archived' },
  unknown_position: { status: 410, title: 'Position is not in the audit chain' },
  version_conflict: { status: 412, title: 'Record version does not match' },
  if_match_required: { status: 428, title: 'If-Match required' },
  body_too_large: { status: 413, title: 'Request body too large' },
  media_type_unsupported: { status: 415, title: 'Unsupported media type' },
  idempotency_mismatch: { status: 422, title: 'Idempotency key reused for a different request' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  queue_full: { status: 429, title: 'Too many jobs are waiting' },
  internal: { status: 500, title: 'Internal error' },
  not_supported: { status: 501, title: 'Not supported by this installation' },
  provider_unavailable: { status: 502, title: 'Identity provider unavailable' },
  unavailable: { status: 503, title: 'Service unavailable' },
  server_busy: { status: 503, title: 'Server is busy' },
  no_database_connection: { status: 503, title: 'No database connection is free' },
};

/** The body of an error response (RFC 9457). */
export const Problem = Type.Object(
  {
    type: Type.String({ description: 'URI that identifies the problem type.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.Enum(Object.keys(PROBLEMS), { title: 'ErrorCode' }),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(
        Type.Object(
          {
            in: Type.Enum(['body', 'query', 'path', 'header']),
            pointer: Type.String({ description: 'JSON Pointer (RFC 6901) to the invalid field.' }),
            code: Type.String(),
            message: Type.String(),
          },
          { title: 'FieldError' },
        ),
      ),
    ),
    conflicts: Type.Optional(
      Type.Array(
        Type.Object(
          {
            pointer: Type.Union([Type.String(), Type.Null()]),
            code: Type.String(),
            message: Type.String(),
            resource: Type.Union([Type.String(), Type.Null()], {
              description: 'Resource of the conflicting record; null if you may not read it.',
            }),
            id: Type.Union([Type.String(), Type.Null()]),
          },
          { title: 'RecordConflict' },
        ),
      ),
    ),
    quota: Type.Optional(
      Type.Object(
        {
          name: Type.String(),
          limit: Type.Integer(),
          used: Type.Integer({ description: 'What the tenant owns without this change.' }),
        },
        { description: 'Only with `quota_exceeded`: the quota, as `/api/quotas` names it.' },
      ),
    ),
    oldestSequence: Type.Optional(
      Type.Integer({
        description:
          'Only with `events_purged`: from this sequence on, no event is purged. Continue with the one before it as `after`.',
      }),
    ),
    oldestLine: Type.Optional(
      Type.Integer({
        description: 'Only with `log_purged`: from this line on, none is purged.',
      }),
    ),
    oldestPosition: Type.Optional(
      Type.Integer({
        description:
          'Only with `entries_archived`: from this position on, no audit entry is archived.',
      }),
    ),
    report: Type.Optional(
      Type.Unknown({ description: 'Only with `restore_invalid`: the validation report.' }),
    ),
  },
  { title: 'Problem' },
);
export type Problem = Static<typeof Problem>;

export const PROBLEM_TYPE = 'application/problem+json';

const DEFAULT_RETRY_AFTER_SECONDS = 2;

/** SQLSTATE of text that PostgreSQL cannot store, such as a NUL character. */
const UNSTORABLE_TEXT = /^(22021|22P05|22P02|22007|22008)$/;

/** What callers get while the database cannot be used; undefined for other errors. */
function outageError(error: object): AppError | undefined {
  const extra = { retryAfterSeconds: DEFAULT_RETRY_AFTER_SECONDS };
  if (isConnectionLimit(error))
    return new AppError(
      'no_database_connection',
      'The database accepts no further connection.',
      extra,
    );
  if (isPoolBusy(error)) return new AppError('server_busy', 'The server is busy.', extra);
  return isOutage(error)
    ? new AppError('unavailable', 'The database is unavailable.', extra)
    : undefined;
}

/**
 * Converts any thrown value to an `AppError`. An unexpected one becomes `internal`, without
 * details.
 */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof LoginFailure) return toAppError(error.cause);
  if (typeof error !== 'object' || error === null)
    return new AppError('internal', 'An unexpected error occurred.');
  const { name } = error as { name?: string };
  if (name === 'AbortError')
    return new AppError('unavailable', 'The server is stopping.', {
      retryAfterSeconds: DEFAULT_RETRY_AFTER_SECONDS,
    });
  // The record was deleted between two statements.
  if (name === 'NotFoundError') return new AppError('not_found', 'The record no longer exists.');
  const outage = outageError(error);
  if (outage) return outage;
  const sqlState = driverErrorOf(error).code;
  if (typeof sqlState === 'string' && UNSTORABLE_TEXT.test(sqlState)) {
    return new AppError('invalid_request', 'A value contains a character that cannot be stored.');
  }
  return new AppError(
    'internal',
    'An unexpected error occurred. The server log has the details under this request id.',
  );
}

/** Returns the body of the error response for `error`. */
export const toProblem = ({ code, message, extra }: AppError, requestId: string): Problem => ({
  type: `urn:holdfast:problem:${code}`,
  title: PROBLEMS[code].title,
  status: PROBLEMS[code].status,
  detail: message,
  code,
  requestId,
  ...(extra.errors && { errors: [...extra.errors] }),
  ...(extra.conflicts && { conflicts: [...extra.conflicts] }),
  ...(extra.quota && { quota: extra.quota }),
  ...(extra.oldestSequence !== undefined && { oldestSequence: extra.oldestSequence }),
  ...(extra.oldestLine !== undefined && { oldestLine: extra.oldestLine }),
  ...(extra.oldestPosition !== undefined && { oldestPosition: extra.oldestPosition }),
  ...(extra.report && { report: extra.report }),
});
