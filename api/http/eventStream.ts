import { Readable } from 'node:stream';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Slots } from '../../platform/slots.ts';
import { toAppError, toProblem } from './problem.ts';
import type { HttpResponse } from './response.ts';

export const EVENT_STREAM = 'text/event-stream';

/**
 * A message of a stream, or some that are encoded already. A comment keeps the connection alive; its
 * id, if it has one, is where the client continues.
 */
export type ServerSentEvent =
  | { id?: string; event: string; data: unknown }
  | { comment: string; id?: string }
  | { encoded: string };

/** What a stream sends. `recheck` gets the caller with its current rights, at intervals; its error ends the stream. */
export type StreamSource = {
  messages: AsyncIterable<ServerSentEvent>;
  recheck?(caller: Caller): void;
  /** Called once, when nobody reads the messages any more. */
  close?(): void;
};

/** When clients of a process that has ended connect to another one: not all in the same moment. */
const RETRY_MS = { min: 1_000, spread: 2_000 };

/** Proxies must pass each message on: neither collect nor compress them. */
const STREAM_HEADERS = {
  'cache-control': 'no-store, no-transform',
  'x-accel-buffering': 'no',
};

/** A message as text (WHATWG HTML, 9.2.6). */
export function encodeMessage(message: ServerSentEvent): string {
  if ('encoded' in message) return message.encoded;
  const id = message.id === undefined ? '' : `id: ${message.id}\n`;
  if ('comment' in message) return `: ${message.comment}\n${id}\n`;
  return `${id}event: ${message.event}\ndata: ${JSON.stringify(message.data)}\n\n`;
}

/** The last message of a stream that ends because of an error: a problem, as in other responses. */
export const encodeError = (error: unknown, requestId: string): string =>
  encodeMessage({ event: 'error', data: toProblem(toAppError(error), requestId) });

async function* encodeAll(
  messages: AsyncIterable<ServerSentEvent>,
  requestId: string,
): AsyncGenerator<string> {
  yield `retry: ${RETRY_MS.min + Math.floor(Math.random() * RETRY_MS.spread)}\n\n`;
  try {
    for await (const message of messages) yield encodeMessage(message);
  } catch (error) {
    yield encodeError(error, requestId);
  }
}

/** Sends server-sent events (WHATWG HTML, 9.2); each stream holds one of `slots`. */
export const createEventStreams = (slots: Slots) => ({
  /**
   * An error of the messages is the last message of the stream. Errors: `too_many_requests`; those of
   * `begin`.
   */
  async open(caller: Caller, begin: () => Promise<StreamSource>): Promise<HttpResponse> {
    const release = slots.takeNow(caller);
    try {
      const { messages, recheck, close } = await begin();
      const source = Readable.from(encodeAll(messages, caller.requestId), {
        objectMode: false,
        highWaterMark: 65_536,
      });
      // Also if the client disconnects before the first message.
      source.once('close', () => {
        release();
        close?.();
      });
      return {
        status: 200,
        headers: STREAM_HEADERS,
        stream: { contentType: EVENT_STREAM, source, ...(recheck && { recheck }) },
      };
    } catch (error) {
      release();
      throw error;
    }
  },
});
