import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { pino } from 'pino';
import { expect, test } from '@jest/globals';
import { requestContext } from '../../../api/middleware/requestContext.ts';
import { asConnectFailure } from '../../../domain/shared/driverError.ts';
import { createIds } from '../../../platform/ids.ts';
import { logOptions } from '../../../platform/log.ts';
import { createMetrics } from '../../../platform/metrics.ts';

/** The line in the log of a request that fails with `error`. */
async function lineOf(error: Error): Promise<object> {
  const lines: string[] = [];
  const log = pino(logOptions('info', { role: 'api', instance: 'test' }), {
    write: (text: string) => void lines.push(text),
  });
  const metrics = createMetrics({ role: 'api', version: 'test' });
  const app = new Koa()
    .use(requestContext({ ids: createIds(), log, metrics }, () => false))
    .use(() => Promise.reject(error));
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  expect((await fetch(`http://127.0.0.1:${port}/api/jobs`)).status).toBe(503);
  server.close();
  return JSON.parse(lines[0] ?? '{}') as object;
}

test.each([
  ['57P01', 'terminating connection due to administrator command'],
  ['ECONNREFUSED', 'connect ECONNREFUSED 10.0.0.20:5432'],
  ['28P01', 'password authentication failed for user "holdfast"'],
])('the line of a request that cannot be served says why: %s', async (code, message) => {
  const error = asConnectFailure(Object.assign(new Error(message), { code }));
  expect(await lineOf(error)).toMatchObject({
    level: 'warn',
    msg: 'a request cannot be served',
    code: 'unavailable',
    err: { code, message },
  });
});
