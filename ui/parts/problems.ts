import { errorMessage } from '../../domain/shared/errorMessage.ts';

/** A bad field of a request: a JSON Pointer (RFC 6901), and what is wrong. */
export type FieldError = { pointer: string; detail: string };

/** Another record that a change conflicts with, or what forbids it; `id` and `resource` are null if it cannot be read. */
export type RecordConflict = {
  pointer: string | null;
  message: string;
  resource: string | null;
  id: string | null;
};

/** What is shown of a failed request. Problems of the API have these fields (RFC 9457). */
export type ProblemFields = {
  status: number;
  code: string;
  title: string;
  detail: string;
  requestId?: string | undefined;
  errors: readonly FieldError[];
  conflicts?: readonly RecordConflict[];
  retryAfterSeconds?: number | undefined;
};

/** True for what the API has answered, and for an answer that did not come. */
export const isProblem = (error: unknown): error is ProblemFields =>
  typeof error === 'object' &&
  error !== null &&
  'title' in error &&
  'detail' in error &&
  'code' in error;

/** Any error as a problem. One that the API has not sent is a mistake of the console. */
export const problemFields = (error: unknown): ProblemFields =>
  isProblem(error)
    ? error
    : {
        status: 0,
        code: 'console_error',
        title: 'This page has an error',
        detail: errorMessage(error),
        errors: [],
      };

/** True if the same request can have another answer: not for what is refused or missing. */
export const isWorthRepeating = ({ status }: ProblemFields): boolean =>
  ![403, 404, 405, 410].includes(status);

/** True for an error of the whole server, not of one request. */
export const isOutage = ({ status, code }: ProblemFields): boolean =>
  code === 'network' || status === 502 || status === 503 || status === 504;

/** True for an error that may pass by itself: an outage, or too many requests. */
export const isTemporary = (fields: ProblemFields): boolean =>
  isOutage(fields) || fields.status === 429;
