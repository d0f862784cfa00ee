import type { IncomingMessage, Server } from 'node:http';

/** Less would keep the slot and the memory of an upload for hours. */
const MIN_PROGRESS = 65_536;

/** In which time the bodies have to arrive that may take longer than others. */
const longerMs = new WeakMap<IncomingMessage, number>();

/**
 * Lets the body of a request take `maxMs`, as long as it progresses. Only for callers with an accepted identity:
 * strangers could keep connections and slots with it.
 */
export const allowSlowBody = (request: IncomingMessage, maxMs: number): void =>
  void longerMs.set(request, maxMs);

type Arrival = { startedAt: number; bytes: number; since: number };

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;

/**
 * Watches the requests of a server, instead of its `requestTimeout`, which is the same for all. The function that
 * it returns answers those with 408 whose bodies have not arrived within `limitMs`. Bodies that may be slow have
 * their own limit, and must bring `MIN_PROGRESS` bytes, or their end, within each `limitMs`; while this process
 * does not read them, nothing is expected of the client.
 */
export function watchSlowBodies(
  server: Server,
  { limitMs, now = () => performance.now() }: { limitMs: number; now?: () => number },
): () => void {
  const arriving = new Map<IncomingMessage, Arrival>();
  server.on('request', (request: IncomingMessage) => {
    if (!hasBody(request)) return;
    const at = now();
    arriving.set(request, { startedAt: at, bytes: request.socket.bytesRead, since: at });
    request.once('close', () => arriving.delete(request));
  });

  function isLate(request: IncomingMessage, arrival: Arrival): boolean {
    const { bytesRead } = request.socket;
    const maxMs = longerMs.get(request) ?? limitMs;
    if (now() - arrival.startedAt >= maxMs) return true;
    if (request.readableLength > 0 || bytesRead - arrival.bytes >= MIN_PROGRESS) {
      arrival.bytes = bytesRead;
      arrival.since = now();
    }
    return now() - arrival.since >= limitMs;
  }

  return () => {
    for (const [request, arrival] of arriving) {
      if (request.complete) arriving.delete(request);
      else if (isLate(request, arrival)) {
        const error = Object.assign(new Error('The body is late'), { code: BODY_IS_LATE });
        server.emit('clientError', error, request.socket);
      }
    }
  };
}

/** As Node reports that headers are late. */
const BODY_IS_LATE = 'ERR_HTTP_REQUEST_TIMEOUT';
