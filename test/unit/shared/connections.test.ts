import { connect, type Socket } from 'node:net';
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
