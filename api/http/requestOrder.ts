import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Node warns of a leak beyond ten: the middleware and the stream of a response have about as many. */
const MAX_LISTENERS = 20;

/** Requests that a connection may have sent before the response to an earlier one is complete. */
const MAX_AHEAD = 10;

/**
 * Handles the requests of a connection one after the other. Node passes on those that a client sends
 * ahead (pipelining, RFC 9112, 9.3.2) while an earlier response is in progress: their responses would
 * wait in memory for a client that does not read, and would never close if it disconnects. A client
 * that sends more ahead than it may is disconnected.
 */
export function oneAfterTheOther(handle: RequestListener): RequestListener {
  const ahead = new WeakMap<Socket, [IncomingMessage, ServerResponse][]>();

  function begin(req: IncomingMessage, res: ServerResponse): void {
    const { socket } = req;
    res.setMaxListeners(MAX_LISTENERS).once('close', () => {
      const next = ahead.get(socket)?.shift();
      if (next && !socket.destroyed) begin(...next);
      else ahead.delete(socket);
    });
    handle(req, res);
  }

  return (req, res) => {
    const waiting = ahead.get(req.socket);
    if (!waiting) {
      ahead.set(req.socket, []);
      begin(req, res);
    } else if (waiting.length < MAX_AHEAD) waiting.push([req, res]);
    else req.socket.destroy();
  };
}
