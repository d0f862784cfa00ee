import { hashKey } from '@tanstack/react-query';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import { Problem, type Schemas } from './api.ts';
import { queryClient } from './queryClient.ts';
import { createRefresh, createRereading, type Refresh } from './refresh.ts';
import { onLeader } from './session/tokens.ts';
import { readStream } from './stream.ts';
import { localNow } from '../parts/clock.ts';

export type LiveEvent = Schemas['Event'];

/**
 * Whether events reach the pages: `live` by the stream, `waiting` until it is connected, `refused` for
 * users who may not read events.
 */
export type LiveState = 'live' | 'waiting' | 'refused';

type Message =
  | { kind: 'event'; event: LiveEvent }
  /** Events may have been missed: everything on screen is read again. */
  | { kind: 'gap' }
  | { kind: 'state'; state: LiveState }
  /** A tab has opened and asks for the state. */
  | { kind: 'hello' };

const POLL_MS = 15_000;
const RECONNECT_MS = { first: 1_000, longest: 15_000 };
/** At most one refresh of a page in this time, however many events there are. */
const REFRESH_MS = 500;
/** Events of an interruption that was longer are not read. */
const LONG_MS = 60_000;

const channel = new BroadcastChannel('holdfast-live');
const listeners = new Set<(event: LiveEvent) => void>();
const stateListeners = new Set<() => void>();

let state: LiveState = 'waiting';
/** The stream of this tab, if it leads and its user is signed in. */
let stream: AbortController | undefined;
let isLeader = false;
let users = 0;

const rereading = createRereading(queryClient, () => document.hidden);
document.addEventListener('visibilitychange', () => {
  if (!document.hidden) rereading.shown();
});

function receive(message: Message): void {
  if (message.kind === 'event') {
    for (const listener of [...listeners]) listener(message.event);
    // A restore has no event for each record that it changes.
    if (message.event.type === 'restore.completed') void queryClient.invalidateQueries();
  } else if (message.kind === 'gap') rereading.soon(false);
  else if (message.kind === 'state') {
    state = message.state;
    for (const listener of stateListeners) listener();
  } else if (stream !== undefined) channel.postMessage({ kind: 'state', state } satisfies Message);
}

channel.addEventListener('message', ({ data }: MessageEvent<Message>) => receive(data));

/** To this tab, and to the others. */
function publish(message: Message): void {
  receive(message);
  channel.postMessage(message);
}

onLeader((leads) => {
  isLeader = leads;
  if (!leads) close();
  else if (users > 0) open();
});

/**
 * Follows the events while a user is signed in. One tab of the browser reads them for all. The stream has
 * only events of tenants in which the user may read them, while pages also show records of sites,
 * devices, other tenants and the platform. Unless it has all (`hasAllEvents`), what the page shows is polled, too.
 */
export function useLiveStream(hasAllEvents: boolean): void {
  useEffect(() => {
    users += 1;
    if (isLeader) open();
    else channel.postMessage({ kind: 'hello' } satisfies Message);
    return () => {
      users -= 1;
      if (users === 0) close();
    };
  }, []);
  const current = useLiveState();
  const isPolled = current === 'refused' || (current === 'live' && !hasAllEvents);
  useEffect(() => {
    if (!isPolled) return undefined;
    const timer = setInterval(() => rereading.soon(true), POLL_MS);
    return () => clearInterval(timer);
  }, [isPolled]);
}

function open(): void {
  if (stream !== undefined) return;
  stream = new AbortController();
  void follow(stream.signal);
}

function close(): void {
  stream?.abort();
  stream = undefined;
}

async function follow(signal: AbortSignal): Promise<void> {
  let lastEventId: string | undefined;
  let lastMessageAt = 0;
  // The tab that led before may have been closed some time ago.
  let mayHaveMissed = state === 'live';
  let failures = 0;
  const forget = () => {
    lastEventId = undefined;
    mayHaveMissed = true;
  };
  const arrived = () => {
    failures = 0;
    lastMessageAt = localNow();
    if (state !== 'live') publish({ kind: 'state', state: 'live' });
    if (mayHaveMissed) publish({ kind: 'gap' });
    mayHaveMissed = false;
  };
  while (!signal.aborted) {
    let pauseMs = Math.min(RECONNECT_MS.longest, RECONNECT_MS.first * 2 ** failures);
    try {
      const options = { signal, lastEventId };
      for await (const { id, event, data } of readStream('/api/events?follow', options)) {
        arrived();
        lastEventId = id ?? lastEventId;
        if (event === 'event') publish({ kind: 'event', event: JSON.parse(data) as LiveEvent });
      }
    } catch (error) {
      if (signal.aborted) return;
      const status = error instanceof Problem ? error.status : 0;
      publish({ kind: 'state', state: status === 403 ? 'refused' : 'waiting' });
      // The events after the last one are purged.
      if (status === 410) forget();
      if (status === 403) pauseMs = POLL_MS;
    }
    // Also after a stream that the server has ended, as it does when the token of the stream expires.
    failures += 1;
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    // After a long time, reading everything again is less work than all events since.
    if (lastEventId === undefined || localNow() - lastMessageAt > LONG_MS) forget();
  }
}

/** Whether changes reach this page. */
export const useLiveState = (): LiveState =>
  useSyncExternalStore(
    (listener) => {
      stateListeners.add(listener);
      return () => void stateListeners.delete(listener);
    },
    () => state,
  );

/** True if `types` has the type, an area with a star such as `job.*`, or `*` for all. */
const includes = (types: readonly string[], type: string): boolean =>
  types.some(
    (each) =>
      each === type || each === '*' || (each.endsWith('.*') && type.startsWith(each.slice(0, -1))),
  );

/** Calls `onEvent` for each event of these types, such as `job.failed` or `job.*`, as it happens. */
export function useLive(types: readonly string[], onEvent: (event: LiveEvent) => void): void {
  const latest = useRef({ types, onEvent });
  useEffect(() => {
    latest.current = { types, onEvent };
  });
  useEffect(() => {
    const listener = (event: LiveEvent) => {
      if (includes(latest.current.types, event.type)) latest.current.onEvent(event);
    };
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}

/**
 * Reads the queries whose key begins with `queryKey` again after events of these types that `concerns`
 * accepts: after `pauseMs`, at most once in that time, and not while the page is hidden.
 */
export function useLiveRefresh(
  types: readonly string[],
  queryKey: readonly unknown[],
  concerns: (event: LiveEvent) => boolean = () => true,
  pauseMs = REFRESH_MS,
): void {
  const refresh = useRef<Refresh>(undefined);
  const key = useRef(queryKey);
  useEffect(() => void (key.current = queryKey));
  const hash = hashKey(queryKey);
  useEffect(() => {
    const isHidden = () => document.hidden;
    const options = { client: queryClient, queryKey: key.current, pauseMs, isHidden };
    const started = createRefresh(options);
    refresh.current = started;
    const onVisibility = () => {
      if (!isHidden()) started.shown();
    };
    document.addEventListener('visibilitychange', onVisibility);
    return () => {
      document.removeEventListener('visibilitychange', onVisibility);
      started.stop();
    };
  }, [hash, pauseMs]);
  useLive(types, (event) => {
    if (concerns(event)) refresh.current?.soon();
  });
}
