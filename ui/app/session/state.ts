import { useSyncExternalStore } from 'react';

/**
 * An access token of the session, and whose it is. Times are those of the server, in milliseconds.
 * `maxIdleMs`: the session ends when its user has done nothing for this long.
 */
export type Token = {
  value: string;
  userId: string;
  receivedAt: number;
  expiresAt: number;
  maxIdleMs: number;
};

export type SessionState =
  /** Nothing is known yet. */
  | { kind: 'starting' }
  /** The server does not answer, so nothing is known. */
  | { kind: 'unreachable'; detail: string }
  | { kind: 'signedOut' }
  /** A gateway authenticates every request: there is no session. */
  | { kind: 'gateway' }
  | { kind: 'signedIn'; token: Token }
  /** The session has ended while pages are open. They stay as they are until the user signs in again. */
  | { kind: 'expired'; token: Token }
  /** Another account has signed in in this browser. */
  | { kind: 'otherUser'; token: Token };

let state: SessionState = { kind: 'starting' };
const listeners = new Set<() => void>();

export const sessionState = (): SessionState => state;

export function setSessionState(next: SessionState): void {
  state = next;
  for (const listener of [...listeners]) listener();
}

export function onSessionState(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** Resolves with the first state that `accept` returns true for. Error: the reason of `signal`. */
export function sessionStateWhere<S extends SessionState>(
  accept: (state: SessionState) => state is S,
  signal?: AbortSignal,
): Promise<S> {
  return new Promise((resolve, reject) => {
    const stopListening = onSessionState(check);
    const abort = () => {
      stopListening();
      reject(signal?.reason as Error);
    };
    function check(): void {
      if (!accept(state)) return;
      stopListening();
      signal?.removeEventListener('abort', abort);
      resolve(state);
    }
    signal?.addEventListener('abort', abort);
    if (signal?.aborted) abort();
    else check();
  });
}

export const useSessionState = (): SessionState =>
  useSyncExternalStore(onSessionState, sessionState);
