import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as an endpoint received it. `at` is in milliseconds since 1970. */
export type ReceivedRequest = {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  at: number;
};

/** The body of a message to a webhook. */
export type SentMessage = {
  type: string;
  timestamp: string;
  sequence: number | null;
  tenantId: string;
  data: Record<string, unknown>;
};

/** `nth` counts the requests to the path, from 1. */
type RequestHandler = (received: ReceivedRequest, response: ServerResponse, nth: number) => void;

/** Answers each request with one status. */
export const respondWith =
  (code: number, headers: Record<string, string> = {}, body = ''): RequestHandler =>
  (_received, response) => {
    response.writeHead(code, headers).end(body);
  };

/** A receiver of webhooks on loopback that keeps all requests. A path answers 204 by default. */
export async function startSink() {
  const received: ReceivedRequest[] = [];
  const handlers = new Map<string, RequestHandler>();
  const requestsTo = (path: string) => received.filter((each) => each.path === path);
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const path = (request.url ?? '').split('?')[0] ?? '';
      const current = { path, headers: request.headers, body, at: Date.now() };
      received.push(current);
      (handlers.get(path) ?? respondWith(204))(current, response, requestsTo(path).length);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    base,
    url: (path: string) => base + path,
    respond: (path: string, handler: RequestHandler): void => void handlers.set(path, handler),
    requestsTo,
    /** The parsed bodies of the requests to a path. */
    bodiesTo: (path: string): SentMessage[] =>
      requestsTo(path).map(({ body }) => JSON.parse(body) as SentMessage),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Sink = Awaited<ReturnType<typeof startSink>>;
