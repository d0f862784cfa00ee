import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { answerClientErrors } from '../../../api/http/clientError.ts';
import { allowSlowBody, watchSlowBodies } from '../../../api/http/slowBodies.ts';
import { eventually } from '../../support/eventually.ts';

const PART = Buffer.alloc(65_536);

let at = 0;
const received = new Map<string, IncomingMessage>();
/** Reads what it gets, but at `/unread`; all but `/plain` may take 200 ms. */
const server = createServer((request) => {
  const { url = '' } = request;
  received.set(url, request);
  if (url !== '/plain') allowSlowBody(request, 200);
  if (url !== '/unread') request.resume();
  request.on('error', () => undefined);
});
answerClientErrors(server);
const check = watchSlowBodies(server, { limitMs: 60, now: () => at });

beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

type Client = { socket: Socket; request: IncomingMessage; answer: string };

/** A client that has sent the headers of a request with a body, and a byte of it. */
async function open(path: string): Promise<Client> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n.`);
  const request = await eventually(
    () => received.get(path),
    (found) => found !== undefined,
  );
  const client = { socket, request: assertDefined(request, 'request'), answer: '' };
  socket.setEncoding('utf8').on('data', (text: string) => (client.answer += text));
  return client;
}

/** Sends `bytes` and waits until they have arrived. */
async function send({ socket, request }: Client, bytes: Buffer): Promise<void> {
  const before = request.socket.bytesRead;
  socket.write(bytes);
  await eventually(
    () => request.socket.bytesRead,
    (count) => count >= before + bytes.length,
  );
}

/** Lets time pass. True if the server has refused the request then. */
function isRefusedAfter({ request }: Client, ms: number): boolean {
  at += ms;
  check();
  return !request.socket.writable;
}

const expectTimeout = async (client: Client): Promise<void> =>
  void (await eventually(
    () => client.answer,
    (text) => /^HTTP\/1.1 408 [^]*"code":"invalid_request"/.test(text),
  ));

test('a body that has not arrived in time is refused, though it progresses', async () => {
  const client = await open('/plain');
  await send(client, PART);
  expect(isRefusedAfter(client, 59)).toBe(false);
  await send(client, PART);
  expect(isRefusedAfter(client, 1)).toBe(true);
  await expectTimeout(client);
});

test('one that may be slow has longer while it progresses, but not for ever', async () => {
  const client = await open('/upload');
  for (let n = 0; n < 3; n++) {
    await send(client, PART);
    expect(isRefusedAfter(client, 59)).toBe(false);
  }
  await send(client, PART);
  expect(isRefusedAfter(client, 22)).toBe(false);
  await send(client, PART);
  expect(isRefusedAfter(client, 1)).toBe(true);
  await expectTimeout(client);
});

test('one that may be slow is refused when too little of it arrives', async () => {
  const client = await open('/stalled');
  await send(client, PART);
  expect(isRefusedAfter(client, 59)).toBe(false);
  await send(client, PART.subarray(1));
  expect(isRefusedAfter(client, 60)).toBe(true);
  await expectTimeout(client);
});

test('nothing is expected of a client whose body is not read', async () => {
  const client = await open('/unread');
  client.socket.write(Buffer.alloc(8 * PART.length));
  await eventually(
    () => client.request.readableLength,
    (bytes) => bytes > 0,
  );
  expect(isRefusedAfter(client, 120)).toBe(false);
  client.request.resume();
  await eventually(
    () => client.request.socket.bytesRead,
    (bytes) => bytes > 8 * PART.length,
  );
  expect(isRefusedAfter(client, 59)).toBe(false);
  expect(isRefusedAfter(client, 20)).toBe(false);
  expect(isRefusedAfter(client, 1)).toBe(true);
});
