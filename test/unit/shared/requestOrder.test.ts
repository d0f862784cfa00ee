import { afterEach, expect, test } from '@jest/globals';
import Koa from 'koa';
import { startServer, type HttpServer } from '../../../api/server.ts';
import { eventually } from '../../support/eventually.ts';
import { sendBytes } from '../../support/rawHttp.ts';

const request = (path: string, ...headers: string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n');

let server: HttpServer | undefined;
afterEach(async () => {
  await server?.stop(0);
  server = undefined;
});

/** A server whose responses wait for `release`, with the paths that it has handled. */
async function start(bodyTimeoutMs = 60_000) {
  const handled: string[] = [];
  const { promise: released, resolve: release } = Promise.withResolvers<undefined>();
  const app = new Koa().use(async (ctx) => {
    handled.push(ctx.path);
    await released;
    ctx.body = `answer to ${ctx.path}`;
  });
  app.on('error', () => undefined);
  server = await startServer(app, { host: '127.0.0.1', port: 0, bodyTimeoutMs });
  const base = `http://127.0.0.1:${server.port}`;
  const send = (text: string) => sendBytes(base, (socket) => socket.write(text));
  const hasHandled = () =>
    eventually(
      () => handled.length,
      (count) => count === 1,
    );
  return { server, handled, release: () => release(undefined), send, hasHandled };
}

test('what was sent ahead is not handled after the last response of its connection', async () => {
  const { server: stopping, handled, release, send } = await start();
  stopping.announceStop();
  const answered = send(request('/1') + request('/2'));
  release();
  const { answer } = await answered;
  expect(answer.match(/HTTP\/1.1 \d+|answer to \/\d/g)).toEqual(['HTTP/1.1 200', 'answer to /1']);
  expect(handled).toEqual(['/1']);
});

test('an expectation that is not supported is refused in its turn, and nothing is handled after it', async () => {
  const { handled, release, send, hasHandled } = await start();
  const answered = send(request('/1') + request('/2', 'Expect: tea') + request('/3'));
  await hasHandled();
  release();
  const { answer } = await answered;
  expect(answer.match(/HTTP\/1.1 \d+|answer to \/\d/g)).toEqual([
    'HTTP/1.1 200',
    'answer to /1',
    'HTTP/1.1 417',
  ]);
  expect(handled).toEqual(['/1']);
});

test.each([
  ['no HTTP', 'no HTTP\r\n\r\n'],
  ['late', request('/2', 'Content-Length: 10')],
])('a request is not answered with what is wrong with the next: %s', async (_, next) => {
  const { handled, release, send, hasHandled } = await start(240);
  const answered = send(request('/1') + next);
  await hasHandled();
  const { answer } = await answered;
  release();
  expect(answer).toBe('');
  expect(handled).toEqual(['/1']);
});
