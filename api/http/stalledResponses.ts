import type { Server } from 'node:http';
import type { Socket } from 'node:net';

type Options = { limitMs: number; now?: () => number };

/**
 * Watches the connections of a server. The function that it returns closes those whose client has not
 * taken anything of what waits for it for `limitMs`. A client that reads slowly keeps its response, and
 * one that waits for a response, or for the next event of a stream, is not concerned: nothing waits for it.
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
      const waiting = socket.writableLength;
      const taken = socket.bytesWritten - waiting;
      if (waiting === 0 || taken > progress.taken) {
        progress.taken = taken;
        progress.since = now();
      } else if (now() - progress.since >= limitMs) socket.destroy();
    }
  };
}
