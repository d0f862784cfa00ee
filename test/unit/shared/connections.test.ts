import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import Koa from 'koa';
import { expect, test } from '@jest/globals';
import { bytesTaken, watchStalledResponses } from '../../../api/http/stalledResponses.ts';
import { startServer } from '../../../api/server.ts';
import { eventually } from '../../support/eventually.ts';
import { sendBytes } from '../../support/rawHttp.ts';

test('an address has its share of the connections; gateways and other addresses have theirs', async () => {
  const server = await startServer(new Koa(), {
    host: '0.0.0.0',
    port: 0,
    trustedGateways: ['127.0.0.9/32'],
    maxConnectionsPerAddress: 3,
  });
  const sockets: { socket: Socket; from: string; closed: boolean }[] = [];
  const open = (from: string, count: number) => {
    for (let n = 0; n < count; n++) {
      const socket = connect({ host: '127.0.0.1', port: server.port, localAddress: from });
      const opened = { socket, from, closed: false };
      socket.on('error', () => undefined).once('close', () => (opened.closed = true));
      sockets.push(opened);
    }
  };
  const closed = () => sockets.flatMap((each) => (each.closed ? [each.from] : []));
  open('127.0.0.2', 5);
  await eventually(closed, ({ length }) => length === 2);
  open('127.0.0.9', 6);
  open('127.0.0.3', 4);
  await eventually(closed, ({ length }) => length === 3);
  expect(closed().sort()).toEqual(['127.0.0.2', '127.0.0.2', '127.0.0.3']);
  for (const { socket } of sockets) socket.destroy();
  await server.stop(0);
});

test('a server that stops waits for requests in flight, not for clients that keep their connections', async () => {
  const { promise: held, resolve: release } = Promise.withResolvers<undefined>();
  const app = new Koa().use(async (ctx) => {
    if (ctx.path === '/held') await held;
    ctx.body = 'done';
  });
  const server = await startServer(app, { host: '127.0.0.1', port: 0 });
  const open = () => {
    const opened = { socket: connect(server.port, '127.0.0.1'), text: '', closed: false };
    opened.socket.on('data', (chunk) => (opened.text += chunk.toString()));
    opened.socket.once('close', () => (opened.closed = true));
    return opened;
  };
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const [first, second] = [open(), open()];
  first.socket.write(request('/held'));
  second.socket.write('GET /second HTTP/1.1\r\n');
  await setTimeout(50);
  const stopped = server.stop(60_000);
  second.socket.write('Host: x\r\n\r\n');
  await eventually(
    () => second.closed,
    (closed) => closed,
  );
  expect(second.text).toMatch(/^HTTP\/1.1 200 [^]*connection: close[^]*done$/i);
  expect(first.closed).toBe(false);
  release(undefined);
  await stopped;
  await eventually(
    () => first.text,
    (text) => text.endsWith('done'),
  );
});

/** More than the buffers of both systems hold. */
const LARGE = Buffer.alloc(48 * 1_048_576);
const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

test('a server that is going to stop closes each connection after its next response, and accepts new ones', async () => {
  const app = new Koa().use((ctx) => void (ctx.body = 'done'));
  const server = await startServer(app, { host: '127.0.0.1', port: 0, keepAliveMs: 7_000 });
  const kept = connect(server.port, '127.0.0.1');
  let text = '';
  let closed = false;
  kept.on('data', (chunk) => (text += chunk.toString())).once('close', () => (closed = true));
  kept.write(GET);
  await eventually(
    () => text,
    (answer) => answer.endsWith('done'),
  );
  expect(text).toMatch(/connection: keep-alive\r\nkeep-alive: timeout=7\r\n/i);
  server.announceStop();
  await setTimeout(50);
  expect(closed).toBe(false);
  text = '';
  kept.write(GET);
  await eventually(
    () => closed,
    (is) => is,
  );
  expect(text).toMatch(/^HTTP\/1.1 200 [^]*connection: close[^]*done$/i);
  const { answer } = await sendBytes(`http://127.0.0.1:${server.port}`, (socket) =>
    socket.write(GET),
  );
  expect(answer).toMatch(/^HTTP\/1.1 200 [^]*done$/);
  await server.stop(0);
});

/** A client that has sent `text` and reads only what it is asked to. */
function openUnread(port: number, text: string): Socket {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.on('error', () => undefined).pause();
  socket.write(text);
  return socket;
}

test('a response that its client does not read ends', async () => {
  let closed = 0;
  const app = new Koa().use((ctx) => {
    ctx.res.once('close', () => (closed += 1));
    ctx.body = LARGE;
  });
  app.on('error', () => undefined);
  const server = await startServer(app, { host: '127.0.0.1', port: 0, stallMs: 60 });
  const client = openUnread(server.port, GET);
  await eventually(
    () => closed,
    (count) => count === 1,
  );
  client.destroy();
  await server.stop(0);
});

test('a client that reads slowly, or waits, keeps its connection; one that stops loses it', async () => {
  let at = 0;
  let served: Socket | undefined;
  const answer = Promise.withResolvers<undefined>();
  const app = new Koa().use(async (ctx) => {
    served = ctx.req.socket;
    await answer.promise;
    ctx.body = LARGE;
  });
  app.on('error', () => undefined);
  const handle = app.callback();
  const server = createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
  const check = watchStalledResponses(server, { limitMs: 60, now: () => at });
  const taken = () => (served ? bytesTaken(served) : 0);
  const later = (ms: number) => {
    at += ms;
    check();
    return served?.destroyed;
  };
  await new Promise((resolve) => server.once('listening', resolve));
  const client = openUnread((server.address() as AddressInfo).port, GET);
  await eventually(
    () => served,
    (socket) => socket !== undefined,
  );
  expect(later(1_000)).toBe(false);
  answer.resolve(undefined);
  for (let n = 0; n < 3; n++) {
    const before = taken();
    await eventually(
      () => {
        client.read();
        return taken();
      },
      (now) => now > before,
    );
    expect(later(59)).toBe(false);
  }
  // What the systems still take in is progress, too.
  await eventually(
    () => later(60),
    (isClosed) => isClosed === true,
  );
  client.destroy();
  server.close();
});

test('requests sent ahead wait for the response before theirs, and end with the connection', async () => {
  const handled: string[] = [];
  const closed: string[] = [];
  const held = new Map<string, () => void>();
  const app = new Koa().use(async (ctx) => {
    handled.push(ctx.path);
    ctx.res.once('close', () => closed.push(ctx.path));
    await new Promise<void>((resolve) => held.set(ctx.path, resolve));
    ctx.body = ctx.path;
  });
  app.on('error', () => undefined);
  const server = await startServer(app, { host: '127.0.0.1', port: 0 });
  const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const ahead = connect(server.port, '127.0.0.1');
  let text = '';
  ahead.on('data', (chunk) => (text += chunk.toString()));
  ahead.write(request('/1') + request('/2') + request('/3'));
  await eventually(
    () => held.has('/1'),
    (is) => is,
  );
  expect(handled).toEqual(['/1']);
  held.get('/1')?.();
  await eventually(
    () => handled.length,
    (count) => count === 2,
  );
  expect(text).toMatch(/\/1$/);
  ahead.destroy();
  await eventually(
    () => closed.length,
    (count) => count === 2,
  );
  // A client that sends ahead without end loses its connection.
  const endless = openUnread(server.port, request('/4').repeat(100));
  await new Promise((resolve) => endless.resume().once('close', resolve));
  expect([handled, closed]).toEqual([
    ['/1', '/2', '/4'],
    ['/1', '/2', '/4'],
  ]);
  for (const release of held.values()) release();
  await server.stop(0);
});
