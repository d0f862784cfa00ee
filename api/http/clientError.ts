import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { AppError } from '../../domain/shared/errors.ts';
import { createIds } from '../../platform/ids.ts';
import { PROBLEM_TYPE, toProblem } from './problem.ts';

type Refusal = { status: number; code: 'invalid_request' | 'body_too_large'; detail: string };

/** Errors of Node's HTTP parser and timers that have a status of their own. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'invalid_request',
    detail: 'The headers of the request are too large.',
  },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: {
    status: 413,
    code: 'body_too_large',
    detail: 'The chunk extensions of the request are too large.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: 'invalid_request',
    detail: 'The request did not arrive in time.',
  },
};
const NOT_HTTP: Refusal = {
  status: 400,
  code: 'invalid_request',
  detail: 'The request is not valid HTTP.',
};

const UNKNOWN_EXPECTATION: Refusal = {
  status: 417,
  code: 'invalid_request',
  detail: 'The only supported value of Expect is 100-continue.',
};

const ids = createIds();

function answerOf({ status, code, detail }: Refusal) {
  const requestId = ids.next('req');
  const title = STATUS_CODES[status] ?? 'Bad Request';
  const problem = { ...toProblem(new AppError(code, detail), requestId), status, title };
  const body = JSON.stringify(problem);
  const headers = {
    'content-type': PROBLEM_TYPE,
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    connection: 'close',
  };
  return { status, title, headers, body };
}

function responseText(refusal: Refusal): string {
  const { status, title, headers, body } = answerOf(refusal);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${title}`, ...lines, '', body].join('\r\n');
}

/** Refuses a request that expects what is not supported. */
export function refuseExpectation(_: IncomingMessage, res: ServerResponse): void {
  const { status, headers, body } = answerOf(UNKNOWN_EXPECTATION);
  res.writeHead(status, headers).end(body);
}

/**
 * Answers what Node refuses, and no application sees, with a problem, and closes the connection: after an error of
 * the parser, where the next request would begin is unknown.
 */
export function answerClientErrors(server: Server): void {
  const responses = new WeakMap<Duplex, Set<ServerResponse>>();
  const note = ({ socket }: IncomingMessage, res: ServerResponse): void => {
    const open = responses.get(socket) ?? new Set();
    responses.set(socket, open.add(res));
    res.once('close', () => open.delete(res));
  };
  server.on('request', note).on('checkExpectation', note);
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    // A response that has started must not continue with the text of another one, and a request that has arrived must
    // not be answered with what is wrong with the next.
    const isAnswering = [...(responses.get(socket) ?? [])].some(
      (response) => response.headersSent || response.req.complete,
    );
    if (!socket.writable || isAnswering || error.code === 'ECONNRESET') socket.destroy();
    else socket.end(responseText(REFUSALS[error.code ?? ''] ?? NOT_HTTP), () => socket.destroy());
  });
}
