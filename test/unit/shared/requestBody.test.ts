import { once } from 'node:events';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import Koa, { type Context } from 'koa';
import { Type } from 'typebox';
import { expect, test } from '@jest/globals';
import { readForm, readJson, receiveUpload } from '../../../api/http/requestBody.ts';
import { startServer } from '../../../api/server.ts';
import { eventually } from '../../support/eventually.ts';

const LIMIT_BYTES = 10_000;
const FILE = { examples: { 'text/csv': 'name\n' }, limitBytes: LIMIT_BYTES };

const json = (ctx: Context) => readJson(ctx, Type.Object({}), LIMIT_BYTES);
const form = (ctx: Context) => readForm(ctx, LIMIT_BYTES);
const file = (ctx: Context) => buffer(receiveUpload(ctx, FILE, () => Promise.resolve()).source);

type Read = (ctx: Context) => Promise<unknown>;

test.each<[string, Read, string[]]>([
  ['JSON', json, ['application/json', '']],
  ['compressed JSON', json, ['application/json', 'gzip']],
  ['a compressed form', form, ['application/x-www-form-urlencoded', 'deflate']],
  ['a file', file, ['text/csv', '']],
])('the read of %s ends when the client leaves, or has left', async (_what, read, headers) => {
  const [started, ended]: [string[], string[]] = [[], []];
  const app = new Koa().use(async (ctx) => {
    started.push(ctx.path);
    // As while the caller is authenticated.
    if (ctx.path === '/later') await once(ctx.res, 'close');
    await read(ctx).then(
      () => ended.push(`${ctx.path}: read`),
      () => ended.push(`${ctx.path}: refused`),
    );
  });
  app.on('error', () => undefined);
  const server = await startServer(app, { host: '127.0.0.1', port: 0 });
  const [type = '', encoding = ''] = headers;
  for (const path of ['/now', '/later']) {
    const client = connect(server.port, '127.0.0.1');
    client.write(
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 100\r\n` +
        `${encoding && `Content-Encoding: ${encoding}\r\n`}\r\n`,
    );
    client.write(gzipSync('{"name": "long enough"}').subarray(0, 10));
    await eventually(
      () => started,
      (paths) => paths.includes(path),
    );
    client.destroy();
  }
  await eventually(
    () => ended.length,
    (count) => count === 2,
  );
  expect(ended.toSorted()).toEqual(['/later: refused', '/now: refused']);
  await server.stop(0);
});
