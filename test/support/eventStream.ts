import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { EventRecord } from '../../api/events/schemas.ts';
import type { TestClient } from './client.ts';

/** A message of a stream of server-sent events. A comment is one without an event. */
export type StreamMessage = { id?: string; event?: string; data?: string; retry?: string };

function parseMessage(text: string): StreamMessage {
  const fields = text.split('\n').flatMap((line) => {
    const [, name = '', value = ''] = /^(\w+): (.*)$/.exec(line) ?? [];
    return name === '' ? [] : [[name, value] as const];
  });
  return Object.fromEntries(fields);
}

/** Opens a stream and reads it until it ends or is left. `onMessage` gets each message. */
export async function openEventStream(
  client: Pick<TestClient, 'base' | 'identity'>,
  path: string,
  headers: Record<string, string> = {},
  onMessage: (message: StreamMessage) => void = () => undefined,
) {
  const leaving = new AbortController();
  const response = await request(client.base + path, {
    headers: { ...client.identity, ...headers },
    signal: leaving.signal,
  });
  const messages: StreamMessage[] = [];
  async function read(): Promise<'ended' | 'broken'> {
    let text = '';
    try {
      for await (const chunk of response.body as AsyncIterable<Buffer>) {
        const parts = (text + chunk.toString()).split('\n\n');
        text = parts.pop() ?? '';
        for (const message of parts.map(parseMessage)) {
          messages.push(message);
          onMessage(message);
        }
      }
      return 'ended';
    } catch {
      return 'broken';
    }
  }
  return {
    status: response.statusCode,
    headers: response.headers,
    messages,
    /** The data of the messages with an event of this name. */
    data: <T>(event: string): T[] =>
      messages.flatMap((message) =>
        message.event === event ? [JSON.parse(message.data ?? '') as T] : [],
      ),
    /** What an `EventSource` sends when it connects again. */
    lastId: () => messages.findLast(({ id }) => id !== undefined)?.id,
    ended: read(),
    leave: () => leaving.abort(),
  };
}

/** How long a follower waits before it connects again. */
const RECONNECT_MS = 50;

/**
 * Follows events as an `EventSource` does: when a stream ends or breaks, it connects again after the
 * last id that it has received. `server` is asked each time: a process that is replaced has another
 * port.
 */
export function startFollower(
  server: () => Pick<TestClient, 'base' | 'identity'>,
  path = '/api/events?follow',
) {
  const received: EventRecord[] = [];
  let lastId: string | undefined;
  let connections = 0;
  let isLeaving = false;
  let leaveCurrent: () => void = () => undefined;

  async function connect(): Promise<void> {
    const headers: Record<string, string> = lastId === undefined ? {} : { 'last-event-id': lastId };
    const stream = await openEventStream(server(), path, headers, ({ id, event, data }) => {
      lastId = id ?? lastId;
      if (event === 'event') received.push(JSON.parse(data ?? '') as EventRecord);
    });
    if (stream.status === 200) connections += 1;
    leaveCurrent = stream.leave;
    if (isLeaving) stream.leave();
    await stream.ended;
  }
  async function run(): Promise<void> {
    while (!isLeaving) {
      await connect().catch(() => undefined);
      await sleep(RECONNECT_MS);
    }
  }
  const ended = run();
  return {
    received,
    /** How many streams it has opened. */
    connections: () => connections,
    /** The first stream is open: from now on nothing is missed. */
    isConnected: () => lastId !== undefined,
    async leave(): Promise<void> {
      isLeaving = true;
      leaveCurrent();
      await ended;
    },
  };
}
