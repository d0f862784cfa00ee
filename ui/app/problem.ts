/** A bad field of a request; `pointer` is a JSON Pointer into the part `in` of it. */
type FieldProblem = { in: string; pointer: string; code: string; detail: string };

type Fields = {
  status: number;
  code: string;
  title: string;
  detail: string;
  requestId?: string | undefined;
  errors?: FieldProblem[];
  retryAfterSeconds?: number | undefined;
  /** The answer as it came, for fields of one kind of problem such as `conflicts`. */
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
    this.retryAfterSeconds = fields.retryAfterSeconds;
    this.body = fields.body;
  }
}

export const networkProblem = (cause: unknown): Problem =>
  new Problem({
    status: 0,
    code: 'network',
    title: 'Holdfast cannot be reached',
    detail: 'The server does not answer. The request may or may not have been carried out.',
    body: cause,
  });

type ProblemBody = {
  code?: string;
  title?: string;
  detail?: string;
  requestId?: string;
  errors?: { in: string; pointer: string; code: string; message: string }[];
};

const isObject = (value: unknown): value is ProblemBody =>
  typeof value === 'object' && value !== null;

/** The problem in an answer with an error status. A proxy may have sent it: then it has no fields. */
export function problemOf({ status, headers }: Response, body: unknown): Problem {
  const { code, title, detail, requestId, errors } = isObject(body) ? body : {};
  const retryAfter = Number(headers.get('retry-after') ?? Number.NaN);
  return new Problem({
    status,
    code: code ?? 'unexpected_answer',
    title: title ?? 'Unexpected answer',
    detail: detail ?? `The server answered with the status ${status}.`,
    requestId,
    errors: (errors ?? []).map(({ message, ...error }) => ({ ...error, detail: message })),
    retryAfterSeconds: Number.isFinite(retryAfter) ? retryAfter : undefined,
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
        title: 'This page has a mistake',
        detail: error instanceof Error ? error.message : String(error),
        body: error,
      });
