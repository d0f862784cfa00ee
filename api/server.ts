import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type Koa from 'koa';
import { networkOf } from '../platform/network.ts';
import { answerClientErrors, refuseExpectation } from './http/clientError.ts';
import { createRequestOrder } from './http/requestOrder.ts';
import { watchSlowBodies } from './http/slowBodies.ts';
import { watchStalledResponses } from './http/stalledResponses.ts';
import { createIsTrusted } from './middleware/clientAddress.ts';

export type HttpServer = {
  port: number;
  /** Answers further requests as the last ones of their connections: the process stops soon. */
  announceStop(): void;
  stop(graceMs: number): Promise<void>;
};

/** Limits for slow and idle clients. */
const HEADERS_TIMEOUT_MS = 15_000;
/** For all of a body; uploads may have more, if this much time always brings some of them. */
const BODY_TIMEOUT_MS = 60_000;
const KEEP_ALIVE_MS = 65_000;
/** For how long a client may take nothing of a response that waits for it. */
const STALL_MS = 60_000;
/** How often what may last a minute is checked in that time. */
const CHECKS = 12;
/** Interval at which a server that stops closes connections whose requests have ended. */
const CLOSE_IDLE_MS = 50;
const MAX_CONNECTIONS = 5_000;
/** The most connections from one address that is not a trusted gateway. */
const MAX_CONNECTIONS_PER_ADDRESS = 1_000;

type ServerOptions = {
  host: string;
  port: number;
  trustedGateways?: readonly string[];
  maxConnectionsPerAddress?: number;
  keepAliveMs?: number;
  stallMs?: number;
  bodyTimeoutMs?: number;
};

/** Serves `app`; port 0 means any free port. Errors: those of listening, such as `EADDRINUSE`. */
export async function startServer(
  app: Koa,
  {
    host,
    port,
    trustedGateways = [],
    maxConnectionsPerAddress = MAX_CONNECTIONS_PER_ADDRESS,
    keepAliveMs = KEEP_ALIVE_MS,
    stallMs = STALL_MS,
    bodyTimeoutMs = BODY_TIMEOUT_MS,
  }: ServerOptions,
): Promise<HttpServer> {
  const callback = app.callback();
  const inOrder = createRequestOrder();
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      // `watchSlowBodies` limits the time of bodies.
      requestTimeout: 0,
      keepAliveTimeout: keepAliveMs,
      // The application answers a request without one, with a problem.
      requireHostHeader: false,
    },
    inOrder((req, res) => void callback(req, res)),
  );
  server.on('checkExpectation', inOrder(refuseExpectation));
  server.maxConnections = MAX_CONNECTIONS;
  answerClientErrors(server);
  limitConnections(server, createIsTrusted(trustedGateways), maxConnectionsPerAddress);
  const endStalled = watchStalledResponses(server, { limitMs: stallMs });
  const refuseSlow = watchSlowBodies(server, { limitMs: bodyTimeoutMs });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const checks = [
    setInterval(endStalled, stallMs / CHECKS).unref(),
    setInterval(refuseSlow, bodyTimeoutMs / CHECKS).unref(),
  ];
  server.once('close', () => checks.forEach(clearInterval));
  return {
    port: (server.address() as AddressInfo).port,
    announceStop: () => closeAfterAnswers(server),
    stop: (graceMs) => stop(server, graceMs),
  };
}

/** Closes new connections of an address (IPv6: a /64) that has too many, so that others find one. */
function limitConnections(
  server: Server,
  isTrusted: (address: string | undefined) => boolean,
  limit: number,
): void {
  const open = new Map<string, number>();
  server.on('connection', (socket: Socket) => {
    if (isTrusted(socket.remoteAddress)) return;
    const network = networkOf(socket.remoteAddress ?? null);
    const count = (open.get(network) ?? 0) + 1;
    open.set(network, count);
    socket.once('close', () => {
      const left = (open.get(network) ?? 1) - 1;
      if (left > 0) open.set(network, left);
      else open.delete(network);
    });
    if (count > limit) socket.destroy();
  });
}

/**
 * Closes each connection after its next response. A client that keeps connections would otherwise send a request on
 * one that `stop` closes at the same moment, and could not know whether it was done.
 */
function closeAfterAnswers(server: Server): void {
  const close: RequestListener = (_, response) => void response.setHeader('connection', 'close');
  server.prependListener('request', close);
}

/**
 * Accepts no new connection, waits `graceMs` for requests in flight, then closes every connection. Those
 * without a request are closed, so that clients continue at another process instead of here.
 */
async function stop(server: Server, graceMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  closeAfterAnswers(server);
  server.closeIdleConnections();
  const idle = setInterval(() => server.closeIdleConnections(), CLOSE_IDLE_MS);
  const timer = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(timer);
}
