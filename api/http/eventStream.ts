import { Readable } from 'node:stream';
import { AppError } from '../../domain/shared/errors.ts';
import { streamResponse, type HttpResponse } from './response.ts';

/** A message of a stream; a comment keeps the connection alive. */
export type ServerSentEvent = { id?: string; event: string; data: unknown } | { comment: string };

const encode = (message: ServerSentEvent): string => {
  if ('comment' in message) return `: ${message.comment}\n\n`;
  const id = message.id === undefined ? '' : `id: ${message.id}\n`;
  return `${id}event: ${message.event}\ndata: ${JSON.stringify(message.data)}\n\n`;
};

async function* encodeAll(
  messages: AsyncIterable<ServerSentEvent>,
  release: () => void,
): AsyncGenerator<string> {
  try {
    for await (const message of messages) yield encode(message);
  } finally {
    release();
  }
}

/** Sends server-sent events (WHATWG HTML, 9.2); at most `max` streams are open in this process. */
export function createEventStreams(max: number) {
  let openCount = 0;
  return {
    /** Error: `too_many_requests`. */
    open(messages: AsyncIterable<ServerSentEvent>): HttpResponse {
      if (openCount >= max) {
        throw new AppError('too_many_requests', 'Too many streams are open.', {
          retryAfterSeconds: 5,
        });
      }
      openCount += 1;
      let released = false;
      const release = () => {
        if (!released) openCount -= 1;
        released = true;
      };
      const source = Readable.from(encodeAll(messages, release), {
        objectMode: false,
        highWaterMark: 65_536,
      });
      // The generator never finishes if the client disconnects before the first message.
      source.once('close', release);
      return streamResponse('text/event-stream', source);
    },
  };
}
