import { createServer, type Server } from 'node:http';
import type { LookupAddress } from 'node:dns';
import { networkInterfaces } from 'node:os';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  createAddressGuard,
  readAllowedNetwork,
  type Resolve,
} from '../../../platform/addressGuard.ts';
import { createGuardedHttp } from '../../../platform/guardedHttp.ts';
import { createOwnEndpoints, endpointOf } from '../../../platform/ownEndpoints.ts';

type Callback = Parameters<Resolve>[2];

const publicOnly = createGuardedHttp({ allow: [] });
const loopbackAllowed = createGuardedHttp({ allow: ['127.0.0.0/8'] });
afterAll(() => Promise.all([publicOnly.close(), loopbackAllowed.close()]));

const get = (url: string, client = publicOnly, timeoutMs = 3_000) =>
  client.request({ url, method: 'GET', headers: {}, timeoutMs });

describe('an internal address', () => {
  test.each([
    'http://127.0.0.1/',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://0/',
    'http://0177.1/',
    'http://127.0.1/',
    'http://0x7f.1/',
    'http://127.0.0.1./',
    'http://①②⑦.0.0.1/',
    'http://%31%32%37.0.0.1/',
    'http://[0:0:0:0:0:ffff:127.0.0.1]/',
    'http://[::ffff:a9fe:a9fe]/',
    'http://[::ffff:0:127.0.0.1]/',
    'http://[64:ff9b:1::1]/',
    'http://[fec0::1]/',
    'http://[100::1]/',
    'http://[2001::1]/',
    'http://0xa9fea9fe/',
    'http://198.18.0.1/',
    'http://10.0.0.1/',
    'http://172.16.0.1/',
    'http://192.168.1.1/',
    'http://169.254.169.254/',
    'http://100.64.0.1/',
    'http://224.0.0.1/',
    'http://255.255.255.255/',
    'http://192.0.2.1/',
    'http://[::1]/',
    'http://[::]/',
    'http://[fe80::1]/',
    'http://[fc00::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:7f00:1]/',
    'http://[64:ff9b::7f00:1]/',
    'http://[2002:7f00:1::]/',
    'http://[ff02::1]/',
    'http://[::127.0.0.1]/',
    'http://[4000::1]/',
    'http://[2001:db8::1]/',
  ])('%s is refused without a connection', async (url) => {
    await expect(get(url)).rejects.toMatchObject({ code: 'address_not_allowed', transient: false });
  });

  test('is refused for a name when it connects', async () => {
    await expect(get('http://localhost:1/')).rejects.toMatchObject({ code: 'address_not_allowed' });
  });
});

test.each([
  'X-Service-Actor-Id',
  'x-service-role-ids',
  'X-SERVICE-TENANT-ID',
  'x-forwarded-for',
  'X-Forwarded-Host',
  'Forwarded',
  'x-real-ip',
  'Host',
  // Servers that turn names into variables take these for the names above.
  'X_Service_Actor_Id',
  'x-service_role.ids',
  'X.Service.Tenant~Id',
  'X_FORWARDED_FOR',
  'X_Real-IP',
  'True_Client_IP',
  'Via',
  'Proxy',
  'Content_Length',
  'transfer.encoding',
])('the header %s is not sent: the receiver may believe it from us', async (name) => {
  await expect(
    publicOnly.request({
      url: 'http://1.1.1.1/',
      method: 'GET',
      headers: { [name]: 'x' },
      timeoutMs: 1_000,
    }),
  ).rejects.toMatchObject({ code: 'url_not_allowed' });
});

describe('an address where clouds serve credentials', () => {
  const everything = createGuardedHttp({ allow: ['0.0.0.0/0', '::/0', '169.254.0.0/16'] });
  afterAll(() => everything.close());

  test.each([
    'http://169.254.169.254/',
    'http://169.254.170.2/',
    'http://0xa9fea9fe/',
    'http://168.63.129.16/',
    'http://100.100.100.200/',
    'http://192.0.0.192/',
    'http://[::ffff:169.254.169.254]/',
    'http://[fe80::a9fe:a9fe]/',
    'http://[fd00:ec2::254]/',
    'http://[fd20:ce::254]/',
    'http://[fd00:c1::a9fe:a9fe]/',
    // Gateways translate these to the IPv4 addresses.
    'http://[64:ff9b::a9fe:a9fe]/',
    'http://[64:ff9b::a83f:8110]/',
    'http://[2002:a9fe:a9fe::1]/',
  ])('is refused, whatever is allowed: %s', async (url) => {
    const refused = {
      code: 'address_not_allowed',
      message: expect.stringContaining('no exception opens'),
    };
    await expect(get(url, everything)).rejects.toMatchObject(refused);
    await expect(get(url)).rejects.toMatchObject(refused);
  });

  test('is refused for a name', async () => {
    const client = createGuardedHttp({
      allow: ['0.0.0.0/0'],
      resolve: (_host, _options, done) => done(null, [{ address: '168.63.129.16', family: 4 }]),
    });
    await expect(get('http://wire.example/', client)).rejects.toMatchObject({
      code: 'address_not_allowed',
    });
    await client.close();
  });
});

test.each([
  'ftp://1.1.1.1/',
  'file:///etc/passwd',
  'http://user@1.1.1.1/',
  'http://user:pw@1.1.1.1/',
  'nonsense',
])('%s is refused as a URL', async (url) => {
  await expect(get(url)).rejects.toMatchObject({ code: 'url_not_allowed' });
});

describe('a server', () => {
  let server: Server;
  let base: string;
  beforeAll(async () => {
    server = createServer((req, res) => {
      if (req.url === '/redirect')
        res.writeHead(302, { location: '/', 'set-cookie': 'secret=1' }).end();
      else if (req.url === '/busy') res.writeHead(503, { 'retry-after': '7' }).end();
      else if (req.url === '/large') res.end('x'.repeat(1_000_000));
      else if (req.url === '/drip') {
        res.write('a');
        const timer = setInterval(() => res.write('a'), 50);
        res.on('close', () => clearInterval(timer));
      } else if (req.url === '/broken') req.socket.end('this is not HTTP\r\n\r\n');
      else res.end('fine');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  test('is reached at an address that is allowed', async () => {
    expect(await get(`${base}/`, loopbackAllowed)).toMatchObject({
      status: 200,
      body: 'fine',
      truncated: false,
    });
  });

  test('a redirect is returned and not followed, without its cookies', async () => {
    const answer = await get(`${base}/redirect`, loopbackAllowed);
    expect(answer.status).toBe(302);
    expect(answer.headers).not.toHaveProperty('set-cookie');
  });

  test('Retry-After is returned in milliseconds', async () => {
    expect(await get(`${base}/busy`, loopbackAllowed)).toMatchObject({
      status: 503,
      retryAfterMs: 7_000,
    });
  });

  test('a large response is truncated', async () => {
    const answer = await get(`${base}/large`, loopbackAllowed);
    expect([answer.body.length, answer.truncated]).toEqual([65_536, true]);
  });

  test('a slow response ends at the time limit of the whole request', async () => {
    const startedAt = performance.now();
    await expect(get(`${base}/drip`, loopbackAllowed, 400)).rejects.toMatchObject({
      code: 'timed_out',
      transient: true,
    });
    expect(performance.now() - startedAt).toBeLessThan(1_500);
  });

  test('invalid HTTP and a refused connection have different codes', async () => {
    await expect(get(`${base}/broken`, loopbackAllowed)).rejects.toMatchObject({
      code: 'invalid_response',
    });
    await expect(get('http://127.0.0.1:1/', loopbackAllowed)).rejects.toMatchObject({
      code: 'connection_failed',
    });
  });

  test.each(['Host', 'content-length', 'Transfer-Encoding'])(
    'the header %s cannot be set',
    async (name) => {
      const sent = loopbackAllowed.request({
        url: `${base}/`,
        method: 'GET',
        headers: { [name]: '1' },
        timeoutMs: 1_000,
      });
      await expect(sent).rejects.toMatchObject({ code: 'url_not_allowed' });
    },
  );
});

describe('a port that accepts connections and never answers', () => {
  const sockets = new Set<Socket>();
  const silent = createTcpServer((socket) => {
    sockets.add(socket);
    socket.resume();
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  let port: number;
  beforeAll(async () => {
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    port = (silent.address() as AddressInfo).port;
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => silent.close(resolve));
  });

  const allClosed = async () => {
    for (let n = 0; n < 100 && sockets.size > 0; n += 1)
      await new Promise((resolve) => setTimeout(resolve, 10));
    return sockets.size === 0;
  };

  test.each(['http', 'https'])(
    'ends each of many parallel requests over %s at its own time limit',
    async (scheme) => {
      const startedAt = performance.now();
      const limits = [200, 300, 400, 200, 300, 400];
      const ended = await Promise.all(
        limits.map((limit) =>
          get(`${scheme}://127.0.0.1:${port}/`, loopbackAllowed, limit).catch((error: unknown) => ({
            ...(error as object),
            late: performance.now() - startedAt - limit > 1_000,
          })),
        ),
      );
      expect(ended).toEqual(
        limits.map(() => expect.objectContaining({ code: 'timed_out', late: false })),
      );
      expect(await allClosed()).toBe(true);
    },
  );

  test.each(['http', 'https'])(
    'ends a request over %s with the reason of its signal, and its connection',
    async (scheme) => {
      const abort = new AbortController();
      const sent = loopbackAllowed.request({
        url: `${scheme}://127.0.0.1:${port}/`,
        method: 'GET',
        headers: {},
        timeoutMs: 5_000,
        signal: abort.signal,
      });
      setTimeout(() => abort.abort(new Error('cancelled')), 100);
      const startedAt = performance.now();
      await expect(sent).rejects.toThrow('cancelled');
      expect(performance.now() - startedAt).toBeLessThan(1_500);
      expect(await allClosed()).toBe(true);
    },
  );

  test('leaves the identity providers that are asked through fetch no longer waiting than their signal', async () => {
    const sent = loopbackAllowed.fetch(`https://127.0.0.1:${port}/`, {
      method: 'GET',
      headers: {},
      signal: AbortSignal.timeout(100),
    });
    await expect(sent).rejects.toMatchObject({ name: 'TimeoutError' });
  });
});

test('a name that does not resolve for a long time does not outlast the time limit', async () => {
  const client = createGuardedHttp({ allow: [], resolve: () => undefined });
  await expect(get('https://slow.example/', client, 100)).rejects.toMatchObject({
    code: 'timed_out',
  });
  await client.close();
});

/**
 * Each test decides how names resolve. All addresses of 127/8 lead to this machine. 127.0.0.2 is
 * allowed and represents a public address; the others represent internal ones.
 */
describe('a name', () => {
  const PUBLIC = '127.0.0.2';
  const v4 = (address: string): LookupAddress => ({ address, family: 4 });
  let answers: (nth: number) => LookupAddress[];
  let lookups = 0;
  let reached: string[] = [];
  let server: Server;
  let port: number;
  const client = createGuardedHttp({
    allow: [`${PUBLIC}/32`],
    resolve: (_hostname, _options, callback) =>
      setTimeout(() => callback(null, answers(++lookups)), 5),
  });

  beforeAll(async () => {
    server = createServer((req, res) => {
      reached.push(req.socket.localAddress ?? '');
      res.writeHead(200, { connection: 'close' }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
    await new Promise((resolve) => server.close(resolve));
    // Listens on every address, so that a connection to a wrong one would succeed.
    server.listen(port, '0.0.0.0');
    await new Promise((resolve) => server.once('listening', resolve));
  });
  beforeEach(() => {
    lookups = 0;
    reached = [];
  });
  afterAll(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const requestName = (name = 'hooks.example') => get(`http://${name}:${port}/`, client);

  test('that resolves to an allowed address is reached there', async () => {
    answers = () => [v4(PUBLIC)];
    expect(await requestName()).toMatchObject({ status: 200 });
    expect(reached).toEqual([PUBLIC]);
  });

  test.each([
    ['the first', [v4('127.0.0.1'), v4(PUBLIC)]],
    ['the last', [v4(PUBLIC), v4('127.0.0.1')]],
    ['an IPv6 one', [v4(PUBLIC), { address: '::1', family: 6 }]],
    ['a mapped one', [v4(PUBLIC), { address: '::ffff:10.0.0.1', family: 6 }]],
    ['one with a zone', [v4(PUBLIC), { address: 'fe80::1%lo', family: 6 }]],
  ])(
    'that resolves to several addresses is refused when %s is inside',
    async (_which, addresses) => {
      answers = () => addresses;
      await expect(requestName()).rejects.toMatchObject({ code: 'address_not_allowed' });
      expect(reached).toEqual([]);
    },
  );

  test('that changes between two lookups is only reached at the address that was checked', async () => {
    answers = (nth) => (nth % 2 === 1 ? [v4(PUBLIC)] : [v4('127.0.0.1')]);
    const outcomes = [];
    for (let n = 0; n < 6; n++)
      outcomes.push(
        await requestName().then(
          ({ status }) => status,
          (error: unknown) => (error as { code: string }).code,
        ),
      );
    // One lookup for each connection, which uses exactly the resolved address.
    expect(lookups).toBe(6);
    expect(outcomes).toEqual([
      200,
      'address_not_allowed',
      200,
      'address_not_allowed',
      200,
      'address_not_allowed',
    ]);
    expect(reached).toEqual([PUBLIC, PUBLIC, PUBLIC]);
  });

  test('is resolved once for concurrent requests', async () => {
    answers = () => [v4(PUBLIC)];
    await Promise.all(Array.from({ length: 20 }, () => requestName('many.example')));
    expect(lookups).toBe(1);
    expect(reached).toHaveLength(20);
  });

  // A real resolver answers later. Then nothing catches what Node throws.
  const later = (addresses: LookupAddress[]) => (_host: string, _options: object, done: Callback) =>
    void setTimeout(done, 1, null, addresses);

  test.each([
    ['an answer without an address', later([])],
    ['what is no address', later([{ address: 'nonsense', family: 4 }])],
    [
      'a resolver that throws',
      () => {
        throw Object.assign(new Error('refused'), { code: 'ENOTFOUND' });
      },
    ],
  ])('that leads to %s fails the request only, every time', async (_what, resolve) => {
    const failing = createGuardedHttp({ allow: [], resolve });
    for (const scheme of ['http', 'https', 'http'])
      await expect(get(`${scheme}://empty.example/`, failing)).rejects.toMatchObject({
        name: 'OutboundError',
      });
    await failing.close();
  });

  test('that cannot be resolved is reported as name_not_found', async () => {
    const failing = createGuardedHttp({
      allow: [],
      resolve: (_hostname, _options, callback) =>
        callback(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), []),
    });
    await expect(get('http://nowhere.example/', failing)).rejects.toMatchObject({
      code: 'host_not_found',
      transient: true,
    });
    await failing.close();
  });

  test('that resolves to an internal address is refused for https before the handshake', async () => {
    let connections = 0;
    const tls = createTcpServer((socket) => {
      connections += 1;
      socket.destroy();
    });
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    answers = () => [v4('127.0.0.1')];
    await expect(
      get(`https://hooks.example:${(tls.address() as AddressInfo).port}/`, client),
    ).rejects.toMatchObject({ code: 'address_not_allowed' });
    expect(connections).toBe(0);
    await new Promise((resolve) => tls.close(resolve));
  });
});

describe("Holdfast's own ports", () => {
  const local = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '127.9.9.9',
    '0.0.0.0',
    '[::1]',
    '[::]',
    '[::ffff:127.0.0.1]',
    'localhost',
    'LOCALHOST',
    ...(local === undefined ? [] : [local]),
  ];
  const own = createOwnEndpoints([
    endpointOf('postgres://me:pw@localhost/holdfast'),
    endpointOf('temporal.example:7233'),
    { host: '0.0.0.0', port: 8080 },
  ]);
  const client = createGuardedHttp({ allow: ['0.0.0.0/0', '::/0'], ownEndpoints: own });
  afterAll(() => client.close());

  test.each(hosts)('are refused at %s, whatever is allowed', async (host) => {
    for (const port of [5_432, 8_080])
      await expect(get(`http://${host}:${port}/`, client)).rejects.toMatchObject({
        code: 'address_not_allowed',
      });
    await expect(get(`http://${host}:1/`, client)).rejects.not.toMatchObject({
      code: 'address_not_allowed',
    });
  });

  test('are refused at another machine by its name, and only there', async () => {
    await expect(get('http://Temporal.example.:7233/', client)).rejects.toMatchObject({
      code: 'address_not_allowed',
    });
    expect(own.includes('127.0.0.1', 7_233)).toBe(false);
  });

  test.each(['postgres://me:pw@%2Frun%2Fpg:5999/db', 'postgres:///db?host=/run/pg'])(
    'include a database that is reached through a socket file: %s',
    (url) => {
      const { port = 0 } = endpointOf(url) ?? {};
      expect(createOwnEndpoints([endpointOf(url)]).includes('127.0.0.1', port)).toBe(true);
    },
  );

  test('include those that are known later', async () => {
    own.add({ host: '127.0.0.1', port: 1 });
    await expect(get('http://[::1]:1/', client)).rejects.toMatchObject({
      code: 'address_not_allowed',
    });
  });
});

test('a network is allowed at its ports only', () => {
  const guard = createAddressGuard({ allow: ['127.0.0.0/8:9000-9099', '[::1/128]:9000'] });
  const permitted = (address: string) =>
    [80, 8_999, 9_000, 9_099, 9_100].filter((port) => guard.permits(address, port));
  expect(permitted('127.0.0.1')).toEqual([9_000, 9_099]);
  expect(permitted('::1')).toEqual([9_000]);
  expect(permitted('10.0.0.1')).toEqual([]);
  expect(() => guard.requirePermitted('127.0.0.1', 8_081)).toThrow(
    '127.0.0.1 is not a public address, and the exception for it does not include port 8081',
  );
  expect(() => guard.requirePermitted('localhost', 8_081, ['127.0.0.1'])).toThrow(
    'localhost is not a public address, and the exception for it does not include port 8081',
  );
  expect(() => guard.requirePermitted('10.0.0.1', 9_000)).toThrow(
    '10.0.0.1 is not a public address, and no exception is configured for it',
  );
  expect(() => guard.requirePermitted('127.0.0.1', 9_000)).not.toThrow();
  for (const text of [
    '::1/128:9000',
    '[10.0.0.0/8]:1',
    '10.0.0.0/8:',
    '10.0.0.0/8:9-1',
    '1:2',
    '10/8:1',
  ])
    expect([text, readAllowedNetwork(text)]).toEqual([text, { problem: expect.any(String) }]);
  expect(readAllowedNetwork('[2001:DB8::/32]:1')).toEqual({ network: '[2001:db8::/32]:1-1' });
  expect(readAllowedNetwork('10.1.2.3/8:9')).toEqual({
    problem: 'has host bits set; suggested: 10.0.0.0/8',
  });
});

test('a redirect to an internal address is returned and not followed', async () => {
  let inside = 0;
  const secret = createServer((_req, res) => {
    inside += 1;
    res.end();
  });
  await new Promise<void>((resolve) => secret.listen(0, '127.0.0.1', resolve));
  const target = `http://127.0.0.1:${(secret.address() as AddressInfo).port}/`;
  const open = createServer((_req, res) => res.writeHead(307, { location: target }).end());
  await new Promise<void>((resolve) => open.listen(0, '127.0.0.1', resolve));
  expect(
    (await get(`http://127.0.0.1:${(open.address() as AddressInfo).port}/`, loopbackAllowed))
      .status,
  ).toBe(307);
  expect(inside).toBe(0);
  await Promise.all(
    [secret, open].map((server) => new Promise((resolve) => server.close(resolve))),
  );
});
