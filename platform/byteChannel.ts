import type { MessagePort } from 'node:worker_threads';

/** Pieces that were sent and that the receiver has not taken yet. */
const MAX_IN_FLIGHT = 8;

/** The other thread has closed the channel. */
export class ChannelClosed extends Error {}

/** Bytes, a mark between them, or the end. */
type Message = Uint8Array | number | null;

/** Sends bytes to another thread. `write` waits while the receiver is behind. */
export function createByteSender(port: MessagePort) {
  let inFlight = 0;
  let isClosed = false;
  let wake: () => void = () => undefined;
  port.on('message', () => {
    inFlight -= 1;
    wake();
  });
  port.once('close', () => {
    isClosed = true;
    wake();
  });

  return {
    /** Error: `ChannelClosed`. */
    async write(bytes: Uint8Array): Promise<void> {
      while (inFlight >= MAX_IN_FLIGHT && !isClosed)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      if (isClosed) throw new ChannelClosed('The other thread has closed the channel');
      inFlight += 1;
      // Only memory that nothing else uses can be moved to another thread.
      const own = new Uint8Array(bytes);
      port.postMessage(own, [own.buffer]);
    },
    /** Reports how far the sender is. */
    mark: (value: number): void => port.postMessage(value),
    /** Marks the end of the bytes. */
    end: (): void => port.postMessage(null),
  };
}

/**
 * Receives the bytes that another thread sends. Ends early, without an error, when the other side
 * closes the channel: the result of its thread says why.
 */
export async function* receiveBytes(
  port: MessagePort,
  onMark: (value: number) => void = () => undefined,
): AsyncGenerator<Uint8Array> {
  const received: Message[] = [];
  let wake: () => void = () => undefined;
  const push = (message: Message) => {
    received.push(message);
    wake();
  };
  port.on('message', push);
  port.once('close', () => push(null));
  for (;;) {
    const message = received.shift();
    if (message === undefined)
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    else if (message === null) return;
    else if (typeof message === 'number') onMark(message);
    else {
      yield message;
      port.postMessage(null);
    }
  }
}
