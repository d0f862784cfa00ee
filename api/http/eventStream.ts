import { Readable } from 'node:stream';
import { AppError } from '../../domain/shared/errors.ts';
import { streamed, type Answer } from '../kit/answer.ts';

/** One message of a stream; without `data` it is a comment that keeps the connection alive. */
export type ServerSentEvent = { id?: string; event: string; data: unknown } | { comment: string };

const encode = (message: ServerSentEvent): string => {
  if ('comment' in message) return `: ${message.comment}\n\n`;
  const id = message.id === undefined ? '' : `id: ${message.id}\n`;
  return `${id}event: ${message.event}\ndata: ${JSON.stringify(message.data)}\n\n`;
};

async function* encoded(
  messages: AsyncIterable<ServerSentEvent>,
  end: () => void,
): AsyncGenerator<string> {
  try {
    for await (const message of messages) yield encode(message);
  } finally {
    end();
  }
}

/** Server-sent events (WHATWG HTML, 9.2), at most `max` streams at once in this process. */
export function eventStream(max: number) {
  let open = 0;
  return {
    /** Error: `too_many_requests`. */
    open(messages: AsyncIterable<ServerSentEvent>): Answer {
      if (open >= max) {
        throw new AppError('too_many_requests', 'Too many streams are open here.', {
          retryAfterSeconds: 5,
        });
      }
      open += 1;
      let counted = true;
      const end = () => {
        if (counted) open -= 1;
        counted = false;
      };
      const source = Readable.from(encoded(messages, end), {
        objectMode: false,
        highWaterMark: 65_536,
      });
      // A reader that goes before the first message never lets the generator reach its end.
      source.once('close', end);
      return streamed('text/event-stream', source);
    },
  };
}
