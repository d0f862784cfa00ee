import { request, type IncomingHttpHeaders } from 'node:http';
import { connect, type Socket } from 'node:net';

export type RawAnswer = { status: number; headers: IncomingHttpHeaders; text: string };

type RawRequest = {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
  /** Address of this machine from which the connection comes. */
  from?: string;
  /** Sends the body in chunks, so that its length is not announced. */
  chunked?: boolean;
};

/** Sends one request on a connection of its own. */
export function sendRaw(
  url: string,
  { method = 'GET', headers = {}, body = '', from, chunked = false }: RawRequest = {},
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      url,
      {
        method,
        agent: false,
        ...(from !== undefined && { localAddress: from }),
        headers: {
          ...headers,
          ...(chunked
            ? { 'transfer-encoding': 'chunked' }
            : body !== '' && { 'content-length': String(Buffer.byteLength(body)) }),
        },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        );
        response.once('error', reject);
      },
    );
    sent.once('error', reject);
    sent.end(body);
  });
}

/** Writes bytes to a server, and returns what it answers until it closes the connection. */
export function sendBytes(
  base: string,
  write: (socket: Socket) => void,
): Promise<{ answer: string }> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect({ host: hostname, port: Number(port) }, () => write(socket));
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('error', () => undefined);
    socket.once('close', () => resolve({ answer }));
  });
}
