import { Agent, request as httpRequest } from 'node:http';
import type { WireRequest } from './requests.ts';

/** What came back. `failure` says why there is no complete answer. */
export type Answer =
  | {
      failure?: undefined;
      status: number;
      headers: NodeJS.Dict<string | string[]>;
      body: Buffer;
    }
  | { failure: string };

/** An answer that takes longer counts as missing. */
const ANSWER_LIMIT_MS = 30_000;

/** Time in which an event stream, which has no end, may show what it begins with. */
const STREAM_MS = 200;

/** Sends requests to `base`, over connections that it keeps. */
export function createExchange(base: string) {
  const { hostname, port } = new URL(base);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });

  async function send({ method, path, headers, body }: WireRequest): Promise<Answer> {
    return new Promise((resolve) => {
      const fail = (failure: string) => resolve({ failure });
      const request = httpRequest({
        hostname,
        port,
        path,
        method,
        agent,
        headers: sentHeaders(headers, body),
      });
      request.setTimeout(ANSWER_LIMIT_MS, () => {
        fail(`no answer within ${ANSWER_LIMIT_MS / 1_000} s`);
        request.destroy();
      });
      request.once('error', ({ message }) =>
        fail(`connection ended without an answer: ${message}`),
      );
      request.once('response', (response) => {
        const chunks: Buffer[] = [];
        const answered = () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks),
          });
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', () => fail(`answer ${response.statusCode} is cut`));
        response.once('end', () => {
          if (response.complete) answered();
          else fail(`answer ${response.statusCode} is cut`);
        });
        if (response.headers['content-type']?.startsWith('text/event-stream') === true)
          setTimeout(() => {
            answered();
            request.destroy();
          }, STREAM_MS);
      });
      request.end(body);
    });
  }

  return { send, close: () => agent.destroy() };
}

/** A header without values is left out; so is a length that the encoding makes superfluous. */
function sentHeaders(
  headers: WireRequest['headers'],
  body: Buffer | undefined,
): Record<string, string | string[]> {
  const present = Object.entries(headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value]] : value.length > 0 ? [[name, [...value]]] : [],
  );
  const sent = Object.fromEntries(present) as Record<string, string | string[]>;
  if (body !== undefined && sent['transfer-encoding'] === undefined)
    sent['content-length'] = String(body.length);
  return sent;
}
