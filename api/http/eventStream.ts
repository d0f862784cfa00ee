import { Readable } from 'node:stream';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Slots } from '../../platform/slots.ts';
import { toAppError, toProblem } from './problem.ts';
import { streamResponse, type HttpResponse } from './response.ts';

export const EVENT_STREAM = 'text/event-stream';

/** A message of a stream; a comment keeps the connection alive. */
export type ServerSentEvent = { id?: string; event: string; data: unknown } | { comment: string };

const encode = (message: ServerSentEvent): string => {
  if ('comment' in message) return `: ${message.comment}\n\n`;
  const id = message.id === undefined ? '' : `id: ${message.id}\n`;
  return `${id}event: ${message.event}\ndata: ${JSON.stringify(message.data)}\n\n`;
};

/** The last message of a stream that ends because of an error: a problem, as in other responses. */
export const encodeError = (error: unknown, requestId: string): string =>
  encode({ event: 'error', data: toProblem(toAppError(error), requestId) });

async function* encodeAll(
  messages: AsyncIterable<ServerSentEvent>,
  requestId: string,
  release: () => void,
): AsyncGenerator<string> {
  try {
    for await (const message of messages) yield encode(message);
  } catch (error) {
    yield encodeError(error, requestId);
  } finally {
    release();
  }
}

/** Sends server-sent events (WHATWG HTML, 9.2); each stream holds one of `slots`. */
export const createEventStreams = (slots: Slots) => ({
  /** An error of `messages` is the last message of the stream. Error: `too_many_requests`. */
  open(messages: AsyncIterable<ServerSentEvent>, caller: Caller): HttpResponse {
    const release = slots.takeNow(caller);
    const source = Readable.from(encodeAll(messages, caller.requestId, release), {
      objectMode: false,
      highWaterMark: 65_536,
    });
    // The generator never finishes if the client disconnects before the first message.
    source.once('close', release);
    return streamResponse(EVENT_STREAM, source);
  },
});
