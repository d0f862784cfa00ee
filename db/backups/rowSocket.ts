import { Socket } from 'node:net';

/** An event with bytes that the next read overwrites. Without a listener, `data` has a copy of them. */
export const ROW_BYTES = 'rowBytes';

const RECEIVE_BYTES = 256 << 10;

/**
 * A socket for the rows of COPY … TO STDOUT, which reads into one buffer: a new one for each read would
 * take 240 MB outside the heap for a million rows, and cause a garbage collection every 64 MB.
 * It emits events only: `read()` and `readable` do not work.
 */
export function createRowSocket(): Socket {
  const socket: Socket = new Socket({
    onread: {
      buffer: Buffer.allocUnsafeSlow(RECEIVE_BYTES),
      callback(length, { buffer, byteOffset }) {
        const bytes = Buffer.from(buffer, byteOffset, length);
        if (!socket.emit(ROW_BYTES, bytes)) socket.emit('data', Buffer.from(bytes));
        return true;
      },
    },
  });
  return socket;
}
