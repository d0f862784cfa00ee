import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import Koa, { type Context } from 'koa';
import { Type } from 'typebox';
import { allRoutes } from '../../../api/app.ts';
import { createEventStreams } from '../../../api/http/eventStream.ts';
import { createExpensiveReads } from '../../../api/http/expensiveReads.ts';
import { mount } from '../../../api/http/mount.ts';
import { ok, streamResponse } from '../../../api/http/response.ts';
import { route, type Route } from '../../../api/http/route.ts';
import { requestContext } from '../../../api/middleware/requestContext.ts';
import { anonymousCaller, type Caller } from '../../../domain/shared/caller.ts';
import { createStrangers } from '../../../api/middleware/strangers.ts';
import { AppError, type ErrorCode } from '../../../domain/shared/errors.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { ProblemBody, TestClient } from '../../support/client.ts';
import { isThorough } from '../../support/effort.ts';
import { eventually } from '../../support/eventually.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let routes: Route[];
beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app).as({ actor: 'root', roles: 'platform-admin', tenant: 'platform' });
  routes = allRoutes(app.deps, 'test');
});
afterAll(() => app.stop());

type Answer = {
  status: number;
  headers: IncomingMessage['headers'];
  text: string;
  complete: boolean;
};

/** Sends bytes as they are, and says whether the whole response arrived. */
function exchange(
  base: string,
  method: string,
  path: string,
  { headers = {}, body }: { headers?: Record<string, string>; body?: Buffer | string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(base + path, { method, headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', () => undefined);
      response.on('close', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          text,
          complete: response.complete,
        }),
      );
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

const IDENTITY = {
  'x-service-actor-id': 'root',
  'x-service-role-ids': 'platform-admin',
  'x-service-tenant-id': 'platform',
};
const JSON_TYPE = { ...IDENTITY, 'content-type': 'application/json' };

const send = (
  method: string,
  path: string,
  options?: { headers?: Record<string, string>; body?: Buffer | string },
) => exchange(app.client.base, method, path, { headers: IDENTITY, ...options });

const problemOf = ({ text }: Answer) => JSON.parse(text) as ProblemBody;

/** The GET routes that need no record: lists, exports and descriptions. */
const lists = () =>
  routes.filter(
    ({ method, path, params, session }) =>
      method === 'GET' && !params && !session && !/callback|finish/.test(path),
  );

type Parameter = {
  type?: string;
  items?: unknown;
  enum?: unknown;
  pattern?: string;
  format?: string;
};
type Query = { properties: Record<string, Parameter> };
const parametersOf = ({ query }: Route) =>
  Object.entries((query as Query | undefined)?.properties ?? {});

/**
 * `count` of the values, other ones for each `n`: all positions are tried, and all values, but each value in each
 * position only in thorough runs.
 */
const someOf = <T>(values: readonly T[], n: number, count = 1): T[] =>
  values.filter(
    (_, i) => isThorough() || (i + (values.length - 1) * count * n) % values.length < count,
  );

/** Filters whose values nothing but their length limits: they are names that people choose. */
const FREE =
  /^(q|name|label|username|externalGroup|createdBy|actorId|type|jobType|dnsName|serial|assetTag|model|kind|facility|address|provider|cid|subject|subjectId)$/i;

describe('filters', () => {
  test('a value that no record can have is 400 at the parameter', async () => {
    let tried = 0;
    for (const listed of lists())
      for (const [name, { type, enum: values, pattern, format }] of parametersOf(listed)) {
        const isChecked = values ?? pattern ?? format ?? (type !== 'string' || undefined);
        if (isChecked === undefined || name === 'limit') continue;
        tried++;
        const sent = `${listed.path}?${name}=${encodeURIComponent(' ~bogus~\u0001 ')}`;
        const { status, body } = await root.get<ProblemBody>(sent);
        expect([sent, status, body.errors?.map(({ pointer }) => pointer.split('/')[1])]).toEqual([
          sent,
          400,
          expect.arrayContaining([name]),
        ]);
      }
    expect(tried).toBeGreaterThan(150);
  });

  test('ids, statuses and kinds are checked', () => {
    const loose = lists().flatMap(({ path, query }) =>
      parametersOf({ query } as Route)
        .filter(
          ([name, { enum: values, pattern, items }]) =>
            /(Id|Of|^status|^outcome|^execution|^kind|^tag)$/.test(name) &&
            (values ?? pattern ?? items) === undefined &&
            !(FREE.test(name) && name !== 'kind'),
        )
        .map(([name]) => `${path} ${name}`),
    );
    expect(loose.filter((name) => !name.startsWith('/api/workflows'))).toEqual([]);
  });

  test('text that cannot be stored is 400', async () => {
    const values = [
      ['a%ff', 'encoding'],
      ['%ed%a0%80', 'encoding'],
      ['%', 'encoding'],
    ] as const;
    for (const [n, listed] of lists().entries())
      for (const [at, [name]] of parametersOf(listed).entries()) {
        // Each parameter has a rule for its characters; the encoding is that of the whole query.
        const encodings = at === 0 || isThorough() ? someOf(values, n) : [];
        for (const [value, code] of [['%00', 'characters'] as const, ...encodings]) {
          const { status, body } = await root.get<ProblemBody>(`${listed.path}?${name}=${value}`);
          const codes = body.errors?.map((error) => error.code);
          expect([listed.path, name, value, status, codes]).toEqual([
            listed.path,
            name,
            value,
            400,
            expect.arrayContaining([code]),
          ]);
        }
      }
  });

  test('a second question mark is part of a name', async () => {
    const { status, body } = await root.get<ProblemBody>('/api/jobs??limit=1');
    expect([status, body.errors?.map(({ pointer }) => pointer)]).toEqual([400, ['/?limit']]);
  });

  test('a cursor that the list did not return is 400', async () => {
    const cursors = ['x', 'WyJhIiwiYiJd', 'W10', '%F0%9F%98%80', 'a'.repeat(3_000)];
    const paged = lists().filter((listed) =>
      parametersOf(listed).some(([name]) => name === 'cursor'),
    );
    for (const [n, { path }] of paged.entries())
      for (const cursor of someOf(cursors, n, 2)) {
        const { status } = await root.get(`${path}?cursor=${cursor}`);
        expect([path, cursor.slice(0, 20), status]).toEqual([path, cursor.slice(0, 20), 400]);
      }
  });

  test('a time that no record can have is 400', async () => {
    const times = [
      '0000-12-31T23:59:59Z',
      '9999-12-31T23:59:59-23:00',
      '+275760-09-13T00:00:00Z',
      '2026-06-30T23:59:60Z',
    ];
    const filters = lists().flatMap((listed) =>
      parametersOf(listed)
        .filter(([, { format }]) => format === 'date-time')
        .map(([name]) => ({ listed, name })),
    );
    for (const [n, { listed, name }] of filters.entries())
      for (const time of someOf(times, n)) {
        const sent = `${listed.path}?${name}=${encodeURIComponent(time)}`;
        expect([sent, (await root.get(sent)).status]).toEqual([sent, 400]);
      }
  });
});

describe('paths', () => {
  test('an id that no record can have is 404, for every operation', async () => {
    const ids = ['%00', '%ff', '%', '%ed%a0%80', 'x'.repeat(5_000), '..%2f', '%F0%9F%98%80'];
    const withId = routes.filter(({ params, session, runner }) => params && !session && !runner);
    for (const [n, { method, path }] of withId.entries())
      for (const id of someOf(ids, n, 2)) {
        const sent = path.replace(/\{\w+\}/, id);
        const { status } = await send(method, sent, {
          headers: JSON_TYPE,
          ...(method === 'POST' || method === 'PUT' ? { body: '{}' } : {}),
        });
        // The body is checked before a record is read.
        const expected = method === 'POST' && status === 400 ? 400 : 404;
        expect([method, sent.slice(0, 80), status]).toEqual([method, sent.slice(0, 80), expected]);
      }
  });

  test('405 and OPTIONS name the methods that a path has', async () => {
    const byPath = Map.groupBy(routes, ({ path }) => path);
    for (const [path, at] of byPath) {
      const sent = path.replace(/\{file\}/, 'start.js').replace(/\{\w+\}/, 'x');
      const methods = at.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
      const allow = [...methods, 'OPTIONS'].sort().join(', ');
      const options = await send('OPTIONS', sent);
      expect([path, options.status, options.headers.allow]).toEqual([path, 204, allow]);
      for (const method of ['PUT', 'DELETE', 'PATCH', 'POST'].filter(
        (each) => !methods.includes(each),
      )) {
        const refused = await send(method, sent);
        expect([method, path, refused.status, refused.headers.allow]).toEqual([
          method,
          path,
          405,
          allow,
        ]);
      }
    }
  });
});

describe('bodies', () => {
  const job = (payload: string) => `{"type":"core.echo","payload":${payload}}`;
  test.each<[string, string | Buffer, string, string]>([
    ['a repeated key', job('{"a":1,"a":1}'), '/payload/a', 'repeated_key'],
    ['a repeated field', '{"type":"x","type":"core.echo","payload":{}}', '/type', 'repeated_key'],
    ['1e400', job('{"n":1e400}'), '/payload/n', 'precision'],
    ['2^53 + 1', job('{"n":9007199254740993}'), '/payload/n', 'precision'],
    ['invalid UTF-8', Buffer.from(job('{"a":"\u00ff"}'), 'latin1'), '', 'encoding'],
    [
      'a surrogate in UTF-8',
      Buffer.concat([Buffer.from('"'), Buffer.from([0xed, 0xa0, 0x80]), Buffer.from('"')]),
      '',
      'encoding',
    ],
    ['NUL in a field', '{"type":"a\\u0000","payload":{}}', '/type', 'characters'],
    ['half a surrogate pair', '{"type":"\\ud800","payload":{}}', '/type', 'characters'],
    ['deep nesting', job('['.repeat(200_000) + ']'.repeat(200_000)), '', 'depth'],
    ['no JSON', '{"type":', '', 'json'],
  ])('%s is 400', async (_, body, pointer, code) => {
    const answer = await send('POST', '/api/jobs', { headers: JSON_TYPE, body });
    const { errors = [] } = problemOf(answer);
    expect([answer.status, ...errors.map((error) => [error.pointer, error.code])]).toContainEqual([
      pointer,
      code,
    ]);
    expect(answer.status).toBe(400);
  });

  test('compressed bodies are read, and broken or large ones refused with the connection open', async () => {
    const headers = { ...JSON_TYPE, 'content-encoding': 'gzip' };
    const good = gzipSync(job('{}'));
    expect((await send('POST', '/api/jobs', { headers, body: good })).status).toBe(201);
    const upperCase = { ...headers, 'content-encoding': 'GZIP' };
    expect((await send('POST', '/api/jobs', { headers: upperCase, body: good })).status).toBe(201);
    const cases: [Buffer, number][] = [
      [good.subarray(0, -9), 400],
      [Buffer.from('no gzip'), 400],
      [gzipSync(job(`{"a":"${'a'.repeat(2_000_000)}"}`)), 413],
    ];
    for (const [body, status] of cases)
      expect((await send('POST', '/api/jobs', { headers, body })).status).toBe(status);
    const chunked = { ...JSON_TYPE, 'transfer-encoding': 'chunked' };
    const large = await send('POST', '/api/jobs', {
      headers: chunked,
      body: Buffer.alloc(3_000_000, 0x20),
    });
    expect([large.status, large.complete]).toEqual([413, true]);
  });

  test('an empty chunked body without a type is an empty object', async () => {
    const headers = { ...IDENTITY, 'transfer-encoding': 'chunked' };
    const answer = await send('POST', '/api/schedules/preview', { headers });
    expect(problemOf(answer).errors?.[0]).toMatchObject({
      pointer: '/cronExpression',
      code: 'required',
    });
  });

  test('an upload that is refused early or late is answered', async () => {
    const headers = { ...IDENTITY, 'content-type': 'text/csv', 'transfer-encoding': 'chunked' };
    const path = '/api/inventory/import?resource=prefixes';
    const unknown = `nonsense\n${'x\n'.repeat(2_000_000)}`;
    expect(await send('POST', path, { headers, body: unknown })).toMatchObject({
      status: 400,
      complete: true,
    });
    expect(
      await send('POST', path, { headers, body: 'cidr,description\n10.0.0.0/8,"a\0b"\n' }),
    ).toMatchObject({ status: 400 });
    const large = Buffer.alloc(34 * 1_048_576, 'cidr\n');
    expect(await send('POST', path, { headers, body: large })).toMatchObject({
      complete: true,
      status: expect.any(Number),
    });
  });
});

describe('headers of responses', () => {
  test('every response to a caller is no-store, also an error', async () => {
    for (const { path, public: reason } of lists().filter(
      (listed) => listed.public === undefined && !listed.session,
    )) {
      expect(reason).toBeUndefined();
      for (const sent of [path, `${path}?bogus=1`]) {
        const { headers } = await send('GET', sent);
        expect([sent, headers['cache-control']]).toEqual([sent, 'no-store']);
      }
    }
    const refused = await exchange(app.client.base, 'GET', '/api/jobs');
    expect([refused.status, refused.headers['cache-control']]).toEqual([401, 'no-store']);
  });

  test.each<[string, Record<string, string>, string]>([
    ['identity_required', {}, 'Bearer'],
    ['session_invalid', { authorization: 'Bearer hfa_x' }, 'Bearer error="invalid_token"'],
    ['token_invalid', { authorization: 'Bearer hft_x' }, 'Bearer error="invalid_token"'],
  ])('%s says whether a token was refused', async (code, headers, expected) => {
    const refused = await exchange(app.client.base, 'GET', '/api/jobs', { headers });
    expect(problemOf(refused)).toMatchObject({ status: 401, code });
    expect(refused.headers['www-authenticate']).toBe(expected);
  });

  test('downloads have a file name', async () => {
    const downloads = lists().filter(
      ({ path, public: reason }) => reason === undefined && path.endsWith('/export'),
    );
    expect(downloads.length).toBeGreaterThan(15);
    for (const { path } of downloads) {
      const { headers, status } = await send('GET', path);
      expect([path, status, headers['content-disposition']]).toEqual([
        path,
        200,
        expect.stringMatching(/^attachment; filename="[a-z-]+\.(csv|ndjson)"$/),
      ]);
    }
  });
});

describe('streams', () => {
  const closed = {
    tag: 'Test',
    public: 'a test',
    strangers: { bodyBytes: 0, cost: 1 },
    responses: { 200: null },
  } as const;
  async function* failAfter(chunks: number): AsyncGenerator<string> {
    for (let i = 0; i < chunks; i++) yield await Promise.resolve(`${i}\n`.repeat(1_000));
    throw new AppError('conflict', 'the source failed');
  }
  /** What the server says when it is busy. */
  const BUSY = ['server_busy', 'no_database_connection', 'too_many_requests'] as const;
  async function* slowly(): AsyncGenerator<string> {
    for (let i = 0; i < 5; i++) yield await sleep(30, `${i}\n`);
  }
  const streamRoute = (path: string, chunks: number): Route =>
    route({
      ...closed,
      method: 'GET',
      path,
      operationId: 'readStream',
      summary: 'Stream',
      handle: () =>
        Promise.resolve(
          streamResponse(
            'text/csv',
            Readable.from(failAfter(chunks), { objectMode: false }),
            'a.csv',
          ),
        ),
    });

  const logged: string[] = [];
  let server: Server;
  let base: string;
  beforeAll(async () => {
    const koa = new Koa();
    koa.use(requestContext(app.deps, () => false));
    koa.use((ctx, next) => {
      const log = (level: string) => (context: { path: string }) =>
        void logged.push(`${level} ${context.path}`);
      Object.assign(ctx.state.log as object, { error: log('error'), debug: log('debug') });
      return next();
    });
    const events = createEventStreams(app.deps.slots.logStreams);
    const eventRoute = route({
      ...closed,
      method: 'GET',
      path: '/events',
      operationId: 'readEvents',
      summary: 'Events',
      handle: ({ caller }) => {
        async function* messages() {
          yield await Promise.resolve({ event: 'log', data: 1 });
          throw new AppError('conflict', 'the source failed');
        }
        return events.open(caller, () => Promise.resolve({ messages: messages() }));
      },
    });
    const endlessRoute = route({
      ...closed,
      method: 'GET',
      path: '/endless',
      operationId: 'readEndless',
      summary: 'Events for ever',
      handle: ({ caller, signal }) => {
        async function* messages() {
          yield await Promise.resolve({ event: 'log', data: 1 });
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        }
        return events.open(caller, () => Promise.resolve({ messages: messages() }));
      },
    });
    const guardedRoute = (path: string, code: ErrorCode, source: () => Readable) =>
      route({
        tag: 'Test',
        signedIn: 'a test',
        responses: { 200: null },
        method: 'GET',
        path,
        operationId: `guarded_${code}`,
        summary: 'A stream whose access cannot be confirmed',
        recheckAccess: () => Promise.reject(new AppError(code, 'no access')),
        handle: () => Promise.resolve(streamResponse('text/csv', source())),
      });
    const large = {
      tag: 'Test',
      summary: 'A large response',
      responses: { 200: Type.String() },
      handle: () => Promise.resolve(ok('x'.repeat(16_777_216), { etag: '"1"' })),
    };
    const strangers = { bodyBytes: 0, cost: 1 };
    const largeRoutes = (['GET', 'POST'] as const).flatMap((method) => [
      route({
        ...large,
        signedIn: 'a test',
        method,
        path: '/large',
        operationId: `${method}Large`,
      }),
      route({
        ...{ ...large, public: 'a test', strangers, method },
        path: '/public',
        operationId: `${method}Public`,
      }),
      route({ ...large, runner: 'a test', method, path: '/runner', operationId: `${method}Run` }),
    ]);
    const all = [
      ...largeRoutes,
      streamRoute('/first', 0),
      streamRoute('/later', 3),
      eventRoute,
      endlessRoute,
      guardedRoute('/guarded', 'session_invalid', () => new Readable({ read: () => null })),
      ...BUSY.map((code) => guardedRoute(`/${code}`, code, () => Readable.from(slowly()))),
    ];
    const deps = {
      ...app.deps,
      authenticate: ({ path }: Context): Promise<Caller> =>
        Promise.resolve({
          ...anonymousCaller({ requestId: 'req_test', address: null }),
          kind: 'gateway',
          actorId: 'alice',
          ...(path === '/runner' && { runner: { tokenId: 'tok_1', pools: [] } }),
        }),
      accessRecheckMs: 20,
      strangers: createStrangers({ budgetPerMinute: 1_000 }),
      expensiveReads: createExpensiveReads({
        slots: app.deps.slots.expensiveReads,
        budgets: app.deps.readBudgets,
      }),
      unreadBytes: app.deps.slots.unreadBytes,
      clientAddress: {
        isTrusted: () => false,
        addressOf: () => null,
        publicOriginOf: () => base,
        otherLoopbackOriginOf: () => undefined,
        isOwnOrigin: () => false,
        isForGatewayHost: () => true,
        isForgeable: () => false,
      },
      shutdownSignal: new AbortController().signal,
    };
    for (const middleware of mount(all, deps)) koa.use(middleware);
    koa.on('error', () => undefined);
    const handle = koa.callback();
    server = createServer((req, res) => void handle(req, res)).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => void server.close());

  const openUnread = (path: string) => {
    const { port } = server.address() as AddressInfo;
    const client = connect({ port, host: '127.0.0.1' }).pause();
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return client;
  };

  test('an error before the first byte has a status', async () => {
    const answer = await exchange(base, 'GET', '/first');
    expect(answer).toMatchObject({ status: 409, complete: true });
    expect(answer.headers['content-type']).toContain('application/problem+json');
    expect(answer.headers['content-disposition']).toBeUndefined();
    expect(await exchange(base, 'HEAD', '/first')).toMatchObject({ status: 409 });
  });

  test('a caller that does not read large responses gets no more of them, and writes nothing', async () => {
    const { unreadBytes } = app.deps.slots;
    const unread = [openUnread('/large'), openUnread('/large')];
    await eventually(unreadBytes.held, (bytes) => bytes > 33_554_432);
    expect(await app.deps.metrics.text()).toMatch(/^holdfast_unread_response_bytes 33554436$/m);
    // A runner reports, also if its account has not read what others asked for.
    expect(await exchange(base, 'POST', '/runner')).toMatchObject({ status: 200 });
    for (const method of ['GET', 'POST']) {
      const { status, headers } = await exchange(base, method, '/large');
      expect([status, headers['retry-after'], headers.etag]).toEqual([429, '5', undefined]);
    }
    expect(await exchange(base, 'GET', '/events')).toMatchObject({ status: 200 });
    for (const client of unread) client.destroy();
    await eventually(unreadBytes.held, (bytes) => bytes === 0);
    const { status, headers, text } = await exchange(base, 'POST', '/large');
    expect([status, headers['content-length'], text.length]).toEqual([200, '16777218', 16_777_218]);
    await eventually(unreadBytes.held, (bytes) => bytes === 0);
  });

  test('what strangers do not read is kept from nobody', async () => {
    const unread = Array.from({ length: 3 }, () => openUnread('/public'));
    await Promise.all(
      unread.map((client) => new Promise((resolve) => client.once('readable', resolve))),
    );
    expect(app.deps.slots.unreadBytes.held()).toBe(0);
    expect(await exchange(base, 'POST', '/public')).toMatchObject({ status: 200 });
    for (const client of unread) client.destroy();
  });

  test('an access that is lost before the first byte has a status', async () => {
    const answer = await exchange(base, 'GET', '/guarded');
    expect(answer).toMatchObject({ status: 401, complete: true });
    expect(JSON.parse(answer.text)).toMatchObject({ code: 'session_invalid' });
  });

  test.each(BUSY)('a server that is busy ends nothing that it has allowed: %s', async (code) => {
    const answer = await exchange(base, 'GET', `/${code}`);
    expect(answer).toMatchObject({ status: 200, complete: true, text: '0\n1\n2\n3\n4\n' });
  });

  test('after a later error the body is incomplete', async () => {
    const answer = await exchange(base, 'GET', '/later');
    expect(answer).toMatchObject({ status: 200, complete: false });
    expect(answer.headers['content-disposition']).toBe('attachment; filename="a.csv"');
    expect(logged).toContain('error /later');
  });

  test('a client that closes an event stream is no error', async () => {
    const left = new AbortController();
    const response = await fetch(`${base}/endless`, { signal: left.signal });
    await response.body?.getReader().read();
    left.abort();
    await eventually(
      () => logged.filter((line) => line.endsWith(' /endless')),
      ({ length }) => length > 0,
    );
    expect(logged).not.toContain('error /endless');
  });

  test('an event stream ends with the problem as an event', async () => {
    const answer = await exchange(base, 'GET', '/events');
    expect(answer).toMatchObject({ status: 200, complete: true });
    const messages = answer.text.trim().split('\n\n');
    expect(messages).toHaveLength(3);
    expect(messages[2]).toMatch(/^event: error\ndata: \{.*"status":409.*"code":"conflict"/);
  });
});
