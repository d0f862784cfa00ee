import { errorMessage } from '../../domain/shared/errorMessage.ts';
import type { RecordConflict } from '../parts/problems.ts';

/** A bad field of a request; `pointer` is a JSON Pointer into the part `in` of it. */
type FieldProblem = { in: string; pointer: string; code: string; detail: string };

type Fields = {
  status: number;
  code: string;
  title: string;
  detail: string;
  requestId?: string | undefined;
  errors?: FieldProblem[];
  conflicts?: RecordConflict[] | undefined;
  retryAfterSeconds?: number | undefined;
  /** The answer as it came, for fields of one kind of problem. */
  body?: unknown;
};

/** Why a request failed: what the server said (RFC 9457), or that it did not answer (status 0). */
export class Problem extends Error {
  readonly status: number;
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  readonly errors: FieldProblem[];
  readonly conflicts: RecordConflict[];
  readonly retryAfterSeconds: number | undefined;
  readonly body: unknown;

  constructor(fields: Fields) {
    super(fields.detail);
    this.name = 'Problem';
    this.status = fields.status;
    this.code = fields.code;
    this.title = fields.title;
    this.detail = fields.detail;
    this.requestId = fields.requestId;
    this.errors = fields.errors ?? [];
    this.conflicts = fields.conflicts ?? [];
    this.retryAfterSeconds = fields.retryAfterSeconds;
    this.body = fields.body;
  }
}

const READS = ['GET', 'HEAD'];

/** `method` is that of the request, if it could have changed something. */
export const networkProblem = (cause: unknown, method = 'GET'): Problem =>
  new Problem({
    status: 0,
    code: 'network',
    title: 'Holdfast cannot be reached',
    detail: READS.includes(method)
      ? 'The server does not answer.'
      : 'The server does not answer. The request may or may not have been carried out.',
    body: cause,
  });

/** Every answer of Holdfast has this header; one of a proxy, or of the sign-in page of a network, has none. */
const REQUEST_ID = 'x-request-id';
const PROBLEM_TYPE = 'application/problem+json';

/** What a proxy answers while Holdfast does not: these say that it may pass. */
const PASSING = [429, 502, 503, 504];

/**
 * What is no word of Holdfast's. Only the passing states count: that something is missing, forbidden or of another
 * version is for Holdfast to say.
 */
function foreignProblem({ status, headers }: Response, method = 'GET', body?: unknown): Problem {
  const unknown = READS.includes(method)
    ? ''
    : ' The request may or may not have been carried out.';
  return new Problem({
    status: PASSING.includes(status) ? status : 0,
    code: 'unexpected_answer',
    title: 'Not an answer of Holdfast',
    detail: `Something between you and Holdfast has answered with the status ${status}, such as a proxy or the sign-in page of a network. If you must sign in there, do it in another tab.${unknown}`,
    retryAfterSeconds: secondsOf(headers.get('retry-after')),
    body,
  });
}

/** An answer of Holdfast, as it came. Error: Problem, if something else has answered. */
export function ownAnswer(response: Response, method: string): Response {
  const { ok, headers } = response;
  const type = headers.get('content-type') ?? '';
  // A validation answers with an error status, and what it has found.
  const isRefusal =
    type.startsWith(PROBLEM_TYPE) ||
    (headers.has(REQUEST_ID) && type.startsWith('application/json'));
  if (ok ? headers.has(REQUEST_ID) : isRefusal) return response;
  void response.body?.cancel().catch(() => undefined);
  throw foreignProblem(response, method);
}

/** True for what is no answer of the network: a problem that has a reason already, and an aborted request. */
const isExplained = (error: unknown): boolean =>
  error instanceof Problem || (error instanceof Error && error.name === 'AbortError');

/** Sends a request. Error: Problem, if the server does not answer. */
export async function reach(
  request: Request,
  send: (request: Request) => Promise<Response>,
): Promise<Response> {
  const { method } = request;
  return send(request).catch((error: unknown) => {
    throw isExplained(error) ? error : networkProblem(error, method);
  });
}

/** Error: Problem, if the connection breaks before the end of the answer. */
export const whole = <T>(answered: Promise<T>): Promise<T> =>
  answered.catch((error: unknown) => {
    if (isExplained(error)) throw error;
    throw new Problem({
      status: 0,
      code: 'network',
      title: 'The answer is incomplete',
      detail: 'The connection broke before the end of the answer.',
      body: error,
    });
  });

type ProblemBody = {
  code?: string;
  title?: string;
  detail?: string;
  requestId?: string;
  errors?: { in: string; pointer: string; code: string; message: string }[];
  conflicts?: RecordConflict[];
};

const isObject = (value: unknown): value is ProblemBody =>
  typeof value === 'object' && value !== null;

/** The seconds of `Retry-After`; undefined without a number: an empty header says nothing. */
function secondsOf(header: string | null): number | undefined {
  const seconds = header === null || header.trim() === '' ? Number.NaN : Number(header);
  return Number.isFinite(seconds) ? seconds : undefined;
}

/** The problem in an answer with an error status. Without a code it is none of Holdfast's. */
export function problemOf(response: Response, body: unknown): Problem {
  const { status, headers } = response;
  const { code, title, detail, requestId, errors, conflicts } = isObject(body) ? body : {};
  if (typeof code !== 'string') return foreignProblem(response, 'GET', body);
  return new Problem({
    status,
    code,
    title: title ?? 'Unexpected answer',
    detail: detail ?? `The server answered with the status ${status}.`,
    requestId,
    errors: (errors ?? []).map(({ message, ...error }) => ({ ...error, detail: message })),
    conflicts,
    retryAfterSeconds: secondsOf(headers.get('retry-after')),
    body,
  });
}

/** Any error as a problem, for what has no part to show it. */
export const toProblem = (error: unknown): Problem =>
  error instanceof Problem
    ? error
    : new Problem({
        status: 0,
        code: 'console_error',
        title: 'This page has an error',
        detail: errorMessage(error),
        body: error,
      });
