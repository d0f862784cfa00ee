import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type Koa from 'koa';
import { answerClientErrors } from './http/clientError.ts';

export type HttpServer = { port: number; stop(graceMs: number): Promise<void> };

/** Limits for slow and idle clients. */
const HEADERS_TIMEOUT_MS = 15_000;
const REQUEST_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_MS = 65_000;
const MAX_CONNECTIONS = 5_000;

/** Serves `app`; port 0 means any free port. Errors: those of listening, such as `EADDRINUSE`. */
export async function startServer(
  app: Koa,
  { host, port }: { host: string; port: number },
): Promise<HttpServer> {
  const callback = app.callback();
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_MS,
    },
    (req, res) => void callback(req, res),
  );
  server.maxConnections = MAX_CONNECTIONS;
  answerClientErrors(server);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  return { port: (server.address() as AddressInfo).port, stop: (graceMs) => stop(server, graceMs) };
}

/**
 * Accepts no new connection, waits `graceMs` for requests in flight, then closes every connection.
 */
async function stop(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearTimeout(timer);
}
