import { networkProblem, problemOf } from './problem.ts';
import { authorizedFetch } from './session/tokens.ts';

/** A message of a stream of server-sent events (WHATWG HTML, 9.2). */
export type StreamMessage = { id: string | undefined; event: string; data: string };

/** The server sends something every 10 s: a connection that is silent for longer is broken. */
const SILENCE_MS = 30_000;

/** Error: Problem, if nothing arrives in time. */
async function readInTime<T>(
  reader: ReadableStreamDefaultReader<T>,
): Promise<ReadableStreamReadResult<T>> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(networkProblem('The stream is silent'));
      void reader.cancel();
    }, SILENCE_MS);
  });
  try {
    return await Promise.race([reader.read(), silence]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Reads a stream of the API, from after the message `lastEventId` if it is set. Ends when the server
 * ends it. Errors: Problem, also when the stream is silent; those of `fetch`, when the
 * connection breaks or `signal` aborts.
 */
export async function* readStream(
  path: string,
  { signal, lastEventId }: { signal: AbortSignal; lastEventId?: string | undefined },
): AsyncGenerator<StreamMessage> {
  const headers = { ...(lastEventId !== undefined && { 'last-event-id': lastEventId }) };
  const response = await authorizedFetch(new Request(path, { headers, signal }));
  if (!response.ok || response.body === null)
    throw problemOf(response, await response.json().catch(() => undefined));
  let rest = '';
  let id: string | undefined;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await readInTime(reader);
      if (done) return;
      const messages = (rest + value).split('\n\n');
      rest = messages.pop() ?? '';
      for (const message of messages) {
        const fields = fieldsOf(message);
        id = fields.id ?? id;
        yield { id, event: fields.event ?? '', data: fields.data ?? '' };
      }
    }
  } finally {
    // Who stops reading closes the connection.
    void reader.cancel().catch(() => undefined);
  }
}

/** The fields of a message; the server writes each on one line. Comments have no name. */
const fieldsOf = (message: string): Partial<Record<string, string>> =>
  Object.fromEntries(
    message
      .split('\n')
      .map((line) => /^(\w+): ?(.*)$/.exec(line))
      .flatMap((match) => (match === null ? [] : [[match[1], match[2]]])),
  ) as Partial<Record<string, string>>;
