import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createOperationsApp } from '../../../api/app.ts';
import { startServer, type HttpServer } from '../../../api/server.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import { sendBytes, sendRaw } from '../../support/rawHttp.ts';

let app: TestApp;
let operations: HttpServer;
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  operations = await startServer(createOperationsApp(app.deps), { host: '127.0.0.1', port: 0 });
});
afterAll(async () => {
  await operations.stop(0);
  await app.stop();
});

describe.each([
  ['the API', () => app.client.base],
  ['the metrics port', () => `http://127.0.0.1:${operations.port}`],
])('%s', (_what, base) => {
  /** Sends a request as it is. Returns the answer, of which the body is a problem. */
  async function exchange(...lines: string[]) {
    const { answer } = await sendBytes(base(), (socket) =>
      socket.write([...lines, 'Connection: close', '', ''].join('\r\n')),
    );
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const [, requestId] = /^x-request-id: (\S+)\r?$/im.exec(head) ?? [];
    const [status = ''] = head.split('\r\n');
    return { status, requestId, body };
  }

  test.each([
    ['without Host', ['GET /livez HTTP/1.1'], 400],
    ['with two Hosts', ['GET /livez HTTP/1.1', 'Host: x', 'Host: y'], 400],
    ['with an unknown expectation', ['GET /livez HTTP/1.1', 'Host: x', 'Expect: a-lot'], 417],
    ['at an unknown path', ['GET /nothing HTTP/1.1', 'Host: x'], 404],
    ['with a method that a probe does not have', ['POST /readyz HTTP/1.1', 'Host: x'], 405],
  ])('answers a request %s with a problem that names it', async (_why, lines, status) => {
    const answer = await exchange(...lines);
    expect(answer.status).toContain(`HTTP/1.1 ${status} `);
    const { requestId } = answer;
    expect(JSON.parse(answer.body)).toMatchObject({ status, requestId, code: expect.any(String) });
  });

  test('serves HTTP/1.0 without Host, and a request that waits for 100', async () => {
    expect((await exchange('GET /livez HTTP/1.0')).status).toContain(' 200 ');
    const { status } = await exchange('GET /livez HTTP/1.1', 'Host: x', 'Expect: 100-continue');
    expect(status).toContain(' 100 ');
  });

  test.each(['/livez', '/readyz', '/routez', '/metrics'])(
    'names the methods of %s',
    async (path) => {
      const send = (method: string) => sendRaw(base() + path, { method });
      for (const [method, status] of [
        ['OPTIONS', 204],
        ['POST', 405],
      ] as const)
        expect(await send(method)).toMatchObject({
          status,
          headers: { allow: 'GET, HEAD, OPTIONS' },
        });
    },
  );
});

test('other clients do not see by its methods that there are metrics', async () => {
  for (const method of ['GET', 'POST', 'OPTIONS'])
    expect(
      await sendRaw(`${app.client.base}/metrics`, { method, headers: { via: '1.1 proxy' } }),
    ).toMatchObject({ status: 404 });
});
