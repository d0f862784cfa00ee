import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Node warns of a leak beyond ten: the middleware and the stream of a response have about as many. */
const MAX_LISTENERS = 20;

/** Requests that a connection may have sent before the response to an earlier one is complete. */
const MAX_AHEAD = 10;

/**
 * For listeners that handle the requests of a connection one after the other. Node passes on those that a client
 * sends ahead (pipelining, RFC 9112, 9.3.2) while an earlier response is in progress: their responses would
 * wait in memory for a client that does not read, and would never close if it disconnects. A client
 * that sends more ahead than it may is disconnected. After the last response of a connection nothing is handled:
 * its client could not know that it was.
 */
export function createRequestOrder(): (handle: RequestListener) => RequestListener {
  const ahead = new WeakMap<Socket, (() => void)[]>();

  function begin(req: IncomingMessage, res: ServerResponse, handle: RequestListener): void {
    const { socket } = req;
    res.setMaxListeners(MAX_LISTENERS).once('close', () => {
      const next = socket.writable ? ahead.get(socket)?.shift() : undefined;
      if (next) next();
      else ahead.delete(socket);
    });
    handle(req, res);
  }

  return (handle) => (req, res) => {
    const { socket } = req;
    if (!socket.writable) return;
    const waiting = ahead.get(socket);
    if (!waiting) {
      ahead.set(socket, []);
      begin(req, res, handle);
    } else if (waiting.length < MAX_AHEAD) waiting.push(() => begin(req, res, handle));
    else socket.destroy();
  };
}
