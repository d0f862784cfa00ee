import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as an endpoint got it. */
export type Received = { path: string; headers: IncomingHttpHeaders; body: string; at: number };

type Answering = (received: Received, response: ServerResponse, nth: number) => void;

/** Answers each request with one status. */
export const status =
  (code: number, headers: Record<string, string> = {}, body = ''): Answering =>
  (_received, response) => {
    response.writeHead(code, headers).end(body);
  };

/**
 * An endpoint of somebody else on loopback, which keeps what it got. Each path answers as `behave` says, 204 at first.
 */
export async function startSink() {
  const received: Received[] = [];
  const behaviours = new Map<string, Answering>();
  const server = createServer((request: IncomingMessage, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const path = (request.url ?? '').split('?')[0] ?? '';
      const got = { path, headers: request.headers, body, at: Date.now() };
      received.push(got);
      (behaviours.get(path) ?? status(204))(
        got,
        response,
        received.filter((each) => each.path === path).length,
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    base,
    url: (path: string) => base + path,
    behave: (path: string, answering: Answering): void => void behaviours.set(path, answering),
    at: (path: string): Received[] => received.filter((each) => each.path === path),
    /** Bodies that came to a path, parsed. */
    bodies: (path: string): any[] =>
      received.filter((each) => each.path === path).map(({ body }) => JSON.parse(body)),
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Sink = Awaited<ReturnType<typeof startSink>>;
