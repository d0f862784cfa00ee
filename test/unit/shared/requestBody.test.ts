import { once } from 'node:events';
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import Koa, { type Context } from 'koa';
import { Type } from 'typebox';
import { expect, test } from '@jest/globals';
import { toAppError, toProblem } from '../../../api/http/problem.ts';
import { readForm, readJson, receiveUpload } from '../../../api/http/requestBody.ts';
import { startServer } from '../../../api/server.ts';
import { eventually } from '../../support/eventually.ts';
import { sendRaw } from '../../support/rawHttp.ts';

const LIMIT_BYTES = 10_000;

const json = (ctx: Context) => readJson(ctx, Type.Object({}), LIMIT_BYTES);
const form = (ctx: Context) => readForm(ctx, LIMIT_BYTES);
const upload = async (ctx: Context, type: string): Promise<Buffer> => {
  const route = { examples: { [type]: '' }, limitBytes: LIMIT_BYTES };
  return buffer(receiveUpload(ctx, route, () => Promise.resolve()).source);
};
const file = (ctx: Context) => upload(ctx, 'text/csv');
const binary = (ctx: Context) => upload(ctx, 'application/octet-stream');

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

test.each<[string, Read, string]>([
  ['JSON', json, 'application/json'],
  ['a form', form, 'application/x-www-form-urlencoded'],
  ['a file', file, 'text/csv'],
])('%s may name UTF-8 and ASCII, and no other charset', async (_what, read, type) => {
  const answers = await Promise.all(
    ['', '; charset=utf-8', '; charset="UTF8"', '; Charset=US-ASCII', '; charset=iso-8859-1'].map(
      (charset) => statusOf(read, type + charset),
    ),
  );
  expect(answers).toEqual([200, 200, 200, 200, 415]);
});

test('the charset of a file of bytes has no meaning', async () => {
  expect(await statusOf(binary, 'application/octet-stream; charset=binary')).toBe(200);
});

/** The status of an answer to a body of this content type. */
async function statusOf(read: Read, contentType: string): Promise<number> {
  const app = new Koa().use(async (ctx) => {
    await read(ctx).then(
      () => (ctx.status = 200),
      (error: unknown) => (ctx.status = toProblem(toAppError(error), 'req').status),
    );
  });
  const server = await startServer(app, { host: '127.0.0.1', port: 0 });
  try {
    const answer = await sendRaw(`http://127.0.0.1:${server.port}`, {
      method: 'POST',
      headers: { 'content-type': contentType },
      body: '{}',
    });
    return answer.status;
  } finally {
    await server.stop(0);
  }
}
