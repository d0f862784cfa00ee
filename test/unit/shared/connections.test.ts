import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import Koa from 'koa';
import { expect, test } from '@jest/globals';
import { startServer } from '../../../api/server.ts';
import { eventually } from '../../support/eventually.ts';

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
  expect(first.text).toMatch(/done$/);
});
