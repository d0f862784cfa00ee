import { Type, type Static } from 'typebox';
import { AppError, type ErrorCode } from '../../domain/shared/errors.ts';

/** The one table from code to HTTP status and title. */
export const PROBLEMS: Readonly<Record<ErrorCode, { status: number; title: string }>> = {
  invalid_request: { status: 400, title: 'The request is not valid' },
  identity_required: { status: 401, title: 'Who asks is not known' },
  session_invalid: { status: 401, title: 'The session is not valid' },
  login_failed: { status: 401, title: 'Signing in failed' },
  password_change_required: { status: 403, title: 'The password must be changed first' },
  permission_denied: { status: 403, title: 'Permission is missing' },
  not_found: { status: 404, title: 'Not found' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  conflict: { status: 409, title: 'Another record stands against it' },
  no_room: { status: 409, title: 'There is no room' },
  allocation_refused: { status: 409, title: 'The prefix is not allocated from' },
  limit_reached: { status: 409, title: 'There are as many as there may be' },
  webhook_disabled: { status: 409, title: 'The webhook is disabled' },
  delivery_pending: { status: 409, title: 'The delivery is still under way' },
  in_use: { status: 409, title: 'The record is in use' },
  built_in: { status: 409, title: 'The record is built in' },
  last_administrator: { status: 409, title: 'Nobody could administer the platform any more' },
  not_local: { status: 409, title: 'The account belongs to an identity provider' },
  own_account: { status: 409, title: 'The account is your own' },
  master_key_missing: { status: 409, title: 'There is no master key' },
  job_finished: { status: 409, title: 'The job has ended' },
  job_not_retryable: { status: 409, title: 'Such jobs are made by another operation' },
  job_not_finished: { status: 409, title: 'The job has not ended' },
  schedule_busy: { status: 409, title: 'A job of the schedule has not ended' },
  schedule_cannot_run: { status: 409, title: 'The schedule cannot run' },
  self_approval: { status: 403, title: 'Nobody approves their own request' },
  not_assigned: { status: 403, title: 'The request names somebody else' },
  not_requester: { status: 403, title: "The request is somebody else's" },
  already_decided: { status: 409, title: 'There is a decision already' },
  approval_closed: { status: 409, title: 'The request is closed' },
  content_changed: { status: 409, title: 'Something else was looked at' },
  execution_begun: { status: 409, title: 'The job has begun' },
  backup_busy: { status: 409, title: 'The backup is in use' },
  backup_not_ready: { status: 409, title: 'There is no archive to restore from' },
  restore_invalid: { status: 409, title: 'The restore would not work' },
  restore_stale: { status: 409, title: 'The records have changed since they were looked at' },
  idempotency_in_progress: { status: 409, title: 'The first request is still at work' },
  version_stale: { status: 412, title: 'The record has changed' },
  version_required: { status: 428, title: 'If-Match is required' },
  body_too_large: { status: 413, title: 'The body is too large' },
  media_type_unsupported: { status: 415, title: 'The media type is not supported' },
  idempotency_mismatch: { status: 422, title: 'The key belongs to another request' },
  too_many_requests: { status: 429, title: 'Too many requests' },
  internal: { status: 500, title: 'Internal error' },
  not_supported: { status: 501, title: 'This installation does not have that' },
  provider_unavailable: { status: 502, title: 'The identity provider cannot be used' },
  unavailable: { status: 503, title: 'Unavailable' },
};

/** An error as it goes over the wire: RFC 9457. */
export const Problem = Type.Object(
  {
    type: Type.String({ description: 'A URI that names the kind of problem.' }),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String(),
    code: Type.Enum(Object.keys(PROBLEMS)),
    requestId: Type.String(),
    errors: Type.Optional(
      Type.Array(
        Type.Object({
          in: Type.Enum(['body', 'query', 'path', 'header']),
          pointer: Type.String({ description: 'JSON Pointer (RFC 6901) of the bad field.' }),
          code: Type.String(),
          message: Type.String(),
        }),
      ),
    ),
    conflicts: Type.Optional(
      Type.Array(
        Type.Object({
          pointer: Type.Union([Type.String(), Type.Null()]),
          code: Type.String(),
          message: Type.String(),
          resource: Type.Union([Type.String(), Type.Null()], {
            description: 'What stands against it; null where you may not read it.',
          }),
          id: Type.Union([Type.String(), Type.Null()]),
        }),
      ),
    ),
    report: Type.Optional(
      Type.Unknown({ description: 'Of restore_invalid: the report as the validation gives it.' }),
    ),
  },
  { title: 'Problem' },
);
export type Problem = Static<typeof Problem>;

export const PROBLEM_TYPE = 'application/problem+json';

const DEFAULT_RETRY_AFTER_SECONDS = 2;

/** SQLSTATE and socket codes that mean that PostgreSQL is away, busy, stopping, or that the same again may work. */
const DATABASE_AWAY =
  /^(08|57P|53|55P03|57014|40001|40P01)|^(ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN)$/;

/** SQLSTATE of text that PostgreSQL cannot hold, such as a NUL. */
const BAD_TEXT = /^(22021|22P05|22P02|22007|22008)$/;

function isDatabaseAway(error: object): boolean {
  const { code, message, name } = error as { code?: unknown; message?: string; name?: string };
  if (typeof code === 'string' && DATABASE_AWAY.test(code)) return true;
  return (
    name === 'KnexTimeoutError' ||
    /Connection (terminated|ended)|timeout expired|connection timeout|connection error/i.test(
      message ?? '',
    )
  );
}

/** Turns whatever was thrown into an expected failure. What is not expected becomes `internal` and says nothing. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (typeof error !== 'object' || error === null)
    return new AppError('internal', 'Something went wrong.');
  const { code, nativeError, name } = error as {
    code?: unknown;
    nativeError?: object;
    name?: string;
  };
  // A record that went between two statements.
  if (name === 'NotFoundError')
    return new AppError('not_found', 'The record is not there any more.');
  if (isDatabaseAway(nativeError ?? error)) {
    return new AppError('unavailable', 'The database is away.', {
      retryAfterSeconds: DEFAULT_RETRY_AFTER_SECONDS,
    });
  }
  const state = nativeError ? (nativeError as { code?: unknown }).code : code;
  if (typeof state === 'string' && BAD_TEXT.test(state)) {
    return new AppError('invalid_request', 'A value contains a character that cannot be stored.');
  }
  return new AppError(
    'internal',
    'Something went wrong. The log has the details under this request id.',
  );
}

export const toProblem = ({ code, message, extra }: AppError, requestId: string): Problem => ({
  type: `urn:holdfast:problem:${code}`,
  title: PROBLEMS[code].title,
  status: PROBLEMS[code].status,
  detail: message,
  code,
  requestId,
  ...(extra.errors && { errors: [...extra.errors] }),
  ...(extra.conflicts && { conflicts: [...extra.conflicts] }),
  ...(extra.report && { report: extra.report }),
});
