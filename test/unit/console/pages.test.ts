import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Koa from 'koa';
import { readConsoleBundle } from '../../../api/console/bundle.ts';
import { consolePages } from '../../../api/console/pages.ts';
import { startServer, type HttpServer } from '../../../api/server.ts';
import { AppError } from '../../../domain/shared/errors.ts';

const SCRIPT = 'console.log("a part of the console");\n'.repeat(100);
const HTML = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

let folder: string;
let server: HttpServer;
let withoutBundle: HttpServer;

/** The pages in front of an application that answers every other request with the status 418. */
const serve = (bundle: Parameters<typeof consolePages>[0]) => {
  const app = new Koa();
  app.use(async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      ctx.status = 404;
      ctx.body = { code: error.code };
    }
  });
  app.use(consolePages(bundle));
  app.use((ctx) => void (ctx.status = 418));
  return startServer(app, { host: '127.0.0.1', port: 0 });
};

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-pages-'));
  await mkdir(path.join(folder, 'assets'));
  const write = (name: string, content: string | Buffer) =>
    writeFile(path.join(folder, name), content);
  await write(
    'index.html',
    '<script src="/assets/a-1.js" nonce="__CSP_NONCE__"></script>__CSP_NONCE__',
  );
  await write('assets/a-1.js', SCRIPT);
  await write('assets/a-1.js.br', brotliCompressSync(SCRIPT));
  await write('assets/a-1.js.gz', gzipSync(SCRIPT));
  await write('assets/icon-2.svg', '<svg/>');
  await write('assets/early.js', SCRIPT);
  await write('secret.json', '{}');
  server = await serve(await readConsoleBundle(folder));
  withoutBundle = await serve(undefined);
});
afterAll(async () => {
  await Promise.all([server.stop(0), withoutBundle.stop(0)]);
  await rm(folder, { recursive: true });
});

type Options = { method?: string; headers?: Record<string, string>; at?: HttpServer };

/** Sends the path as it is: `fetch` would resolve dots. */
async function get(target: string, { method = 'GET', headers = {}, at = server }: Options = {}) {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ host: '127.0.0.1', port: at.port, path: target, method, headers }, resolve)
      .once('error', reject)
      .end();
  });
  const header = (name: string) => [response.headers[name] ?? ''].flat().join(', ');
  return { status: response.statusCode, header, body: await buffer(response) };
}

describe('the page', () => {
  test('has the policy with a new nonce each time, and is not kept', async () => {
    const pages = [await get('/', { headers: HTML }), await get('/jobs/x.y', { headers: HTML })];
    for (const { status, header, body } of pages) {
      expect(status).toBe(200);
      expect(header('content-type')).toBe('text/html; charset=utf-8');
      expect(header('cache-control')).toBe('no-store');
      expect(header('etag')).toBe('');
      const nonce = /'nonce-([\w-]{24})'/.exec(header('content-security-policy'))?.[1];
      expect(body.toString()).toBe(
        `<script src="/assets/a-1.js" nonce="${nonce}"></script>${nonce}`,
      );
      expect(header('content-security-policy')).toBe(
        `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; ` +
          `img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; ` +
          `form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'`,
      );
    }
    expect(pages[0]?.body).not.toEqual(pages[1]?.body);
  });

  test('answers HEAD without a body', async () => {
    const { status, header, body } = await get('/', { method: 'HEAD', headers: HTML });
    expect([status, header('content-type'), body.length]).toEqual([
      200,
      'text/html; charset=utf-8',
      0,
    ]);
  });

  test.each([
    '/api',
    '/api/jobs',
    '/api/nothing',
    '/livez',
    '/readyz',
    '/routez',
    '/metrics',
    '/metrics/x',
  ])('is not at %s', async (target) => {
    expect((await get(target, { headers: HTML })).status).toBe(418);
  });

  test('is for those who prefer HTML, and for reading only', async () => {
    expect((await get('/apis', { headers: HTML })).status).toBe(200);
    expect((await get('/', { headers: { accept: '*/*' } })).status).toBe(418);
    expect((await get('/')).status).toBe(418);
    expect((await get('/', { headers: { accept: 'application/json' } })).status).toBe(418);
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
      expect((await get('/', { method, headers: HTML })).status).toBe(418);
  });

  // Reading these takes quadratic time.
  test.each([
    ['a quote', 'text/html, a/b;c="'],
    ['many types', `text/html${',a/b'.repeat(300)}`],
  ])('is not for an Accept that no browser sends: %s', async (_what, accept) => {
    expect((await get('/', { headers: { accept } })).status).toBe(418);
  });

  test('names the command where the console was not built', async () => {
    const { status, header, body } = await get('/', { headers: HTML, at: withoutBundle });
    expect([status, header('cache-control')]).toEqual([503, 'no-store']);
    expect(body.toString()).toContain('npm run bundle');
  });
});

describe('an asset', () => {
  test.each([
    ['br', brotliCompressSync(SCRIPT)],
    ['gzip', gzipSync(SCRIPT)],
    ['identity', Buffer.from(SCRIPT)],
  ] as const)('is sent as %s, for ever', async (encoding, content) => {
    const { status, header, body } = await get('/assets/a-1.js', {
      headers: { 'accept-encoding': encoding },
    });
    expect(status).toBe(200);
    expect(body).toEqual(content);
    expect(header('content-encoding')).toBe(encoding === 'identity' ? '' : encoding);
    expect(header('content-length')).toBe(String(content.length));
    expect(header('content-type')).toBe('text/javascript; charset=utf-8');
    expect(header('cache-control')).toBe('public, max-age=31536000, immutable');
    expect(header('vary').toLowerCase()).toBe('accept-encoding');
  });

  test('is confirmed by its ETag, which each encoding has its own of', async () => {
    const etags = await Promise.all(
      ['br', 'gzip', 'identity'].map(async (encoding) => {
        const headers = { 'accept-encoding': encoding };
        const etag = (await get('/assets/a-1.js', { headers })).header('etag');
        const again = await get('/assets/a-1.js', {
          headers: { ...headers, 'if-none-match': etag },
        });
        expect([again.status, again.body.length]).toEqual([304, 0]);
        return etag;
      }),
    );
    expect(new Set(etags).size).toBe(3);
  });

  test('without compressed files is sent as it is', async () => {
    const { header, body } = await get('/assets/icon-2.svg', {
      headers: { 'accept-encoding': 'br, gzip' },
    });
    expect([header('content-type'), header('content-encoding'), body.toString()]).toEqual([
      'image/svg+xml',
      '',
      '<svg/>',
    ]);
  });

  test('that all versions have under one path is kept for a short time', async () => {
    const { header } = await get('/assets/early.js');
    expect(header('cache-control')).toBe('public, max-age=300');
  });

  test('answers HEAD with the length of its content', async () => {
    const { status, header, body } = await get('/assets/a-1.js', { method: 'HEAD' });
    expect([status, header('content-length'), body.length]).toEqual([200, `${SCRIPT.length}`, 0]);
  });

  test.each([
    '/assets/a-2.js',
    '/assets/a-1.js.br',
    '/assets/',
    '/assets/../secret.json',
    '/assets/%2e%2e/secret.json',
    '/assets/..%2fsecret.json',
    '/assets//a-1.js',
    '/assets/__proto__',
  ])('that does not exist is no page and is not kept: %s', async (target) => {
    const { status, header, body } = await get(target, { headers: HTML });
    expect([status, header('cache-control')]).toEqual([404, 'no-store']);
    expect(body.toString()).toBe('{"code":"not_found"}');
  });
});
