import type { Token } from './state.ts';

/** Messages between the tabs of a browser. */
export type Message =
  /** A tab has got a token: all tabs of this user continue with it. */
  | { kind: 'token'; token: Token }
  /** A tab has opened and asks for the token. */
  | { kind: 'hello' }
  /** The session of this token has ended without anyone wanting it. */
  | { kind: 'expired'; token: Token }
  /** The user has signed out. */
  | { kind: 'signedOut' }
  /** The session belongs to another tenant now. */
  | { kind: 'tenant' };

const channel = new BroadcastChannel('holdfast-session');

export const broadcast = (message: Message): void => channel.postMessage(message);

export function onMessage(listener: (message: Message) => void): void {
  channel.addEventListener('message', ({ data }: MessageEvent<Message>) => listener(data));
}
