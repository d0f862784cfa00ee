import { setTimeout as sleep } from 'node:timers/promises';
import { startServer } from '../server.ts';

/** Calls the API as an operator of a tenant, or as the staff of the platform. */
export type BenchApi = (
  method: 'POST' | 'PUT',
  path: string,
  body: object,
  tenant?: 'bench' | 'platform',
) => Promise<{ id: string }>;

/** A message at the endpoint: how long after its event, and when, by `performance.now`. */
type Arrival = {
  path: string;
  id: string;
  recordId: string | undefined;
  afterMs: number;
  atMs: number;
};

/**
 * An endpoint that records the latency of each event. Requests to `/hanging` get no response, and every
 * second one to `/failing` is refused.
 */
export async function startEndpoint() {
  const arrivals: Arrival[] = [];
  const byPath = new Map<string, Arrival[]>();
  const arrivalsAt = (path: string): Arrival[] => {
    const known = byPath.get(path) ?? [];
    byPath.set(path, known);
    return known;
  };
  let hanging = 0;
  let failing = 0;
  const { base, stop } = await startServer((incoming, response) => {
    const atMs = performance.now();
    if (incoming.url === '/hanging') {
      hanging += 1;
      return;
    }
    if (incoming.url === '/failing' && failing++ % 2 === 0) {
      incoming.resume();
      response.writeHead(503).end();
      return;
    }
    let body = '';
    incoming.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    incoming.on('end', () => {
      const { timestamp, data } = JSON.parse(body) as {
        timestamp: string;
        data: { recordId?: string };
      };
      const arrival: Arrival = {
        path: String(incoming.url),
        id: String(incoming.headers['webhook-id']),
        recordId: data.recordId,
        afterMs: performance.timeOrigin + atMs - Date.parse(timestamp),
        atMs,
      };
      arrivals.push(arrival);
      arrivalsAt(arrival.path).push(arrival);
      response.writeHead(204).end();
    });
  });
  return {
    arrivals,
    /** The arrivals at one path; other webhooks may still retry. */
    arrivalsAt,
    hanging: () => hanging,
    url: (path: string) => `${base}${path}`,
    stop,
  };
}
export type BenchEndpoint = Awaited<ReturnType<typeof startEndpoint>>;

export const waitForArrivals = async (arrivals: readonly unknown[], count: number) => {
  while (arrivals.length < count) await sleep(1);
};
