import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** Less would keep the memory of a large response for days. */
const MIN_PROGRESS = 65_536;

type Options = { limitMs: number; now?: () => number };

/** What a socket knows of its writes; Node has no public way to ask how far one has come. */
type WriteHandle = { bytesWritten: number; writeQueueSize: number };

/**
 * Bytes that the system has taken for the client of a connection. `writableLength` shows nothing until all of a
 * write was taken, however large it is; so the timeouts of Node use the queue of the handle, too.
 */
export function bytesTaken(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { _handle?: WriteHandle | null };
  return handle ? handle.bytesWritten - handle.writeQueueSize : 0;
}

/**
 * Watches the connections of a server. The function that it returns closes those whose client has not
 * taken `MIN_PROGRESS` bytes, or all, of what waits for it for `limitMs`. A client that reads slowly keeps its
 * response, and one that waits for a response, or for the next event of a stream, is not concerned: nothing
 * waits for it.
 */
export function watchStalledResponses(
  server: Server,
  { limitMs, now = () => performance.now() }: Options,
): () => void {
  const connections = new Map<Socket, { taken: number; since: number }>();
  server.on('connection', (socket: Socket) => {
    connections.set(socket, { taken: 0, since: now() });
    socket.once('close', () => connections.delete(socket));
  });
  return () => {
    for (const [socket, progress] of connections) {
      const taken = bytesTaken(socket);
      const waiting = Math.min(socket.writableLength, MIN_PROGRESS);
      if (waiting === 0 || taken - progress.taken >= waiting) {
        progress.taken = taken;
        progress.since = now();
      } else if (now() - progress.since >= limitMs) socket.destroy();
    }
  };
}
