import { createServer, type Server } from 'node:http';
import type { LookupAddress } from 'node:dns';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createGuardedHttp } from '../../../platform/guardedHttp.ts';

const guarded = createGuardedHttp({ allow: [] });
const local = createGuardedHttp({ allow: ['127.0.0.0/8'] });
afterAll(() => Promise.all([guarded.close(), local.close()]));

const get = (url: string, client = guarded, timeoutMs = 3_000) =>
  client.request({ url, method: 'GET', headers: {}, timeoutMs });

describe('addresses inside', () => {
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

  test('a name that resolves to one is refused at the connection', async () => {
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
])('the header %s is not sent: the receiver may believe it from us', async (name) => {
  await expect(
    guarded.request({
      url: 'http://1.1.1.1/',
      method: 'GET',
      headers: { [name]: 'x' },
      timeoutMs: 1_000,
    }),
  ).rejects.toMatchObject({ code: 'url_not_allowed' });
});

test("a cloud's metadata address is refused even where its network is allowed", async () => {
  const inside = createGuardedHttp({ allow: ['fc00::/7', '100.64.0.0/10'] });
  for (const url of ['http://[fd00:ec2::254]/', 'http://100.100.100.200/'])
    await expect(get(url, inside)).rejects.toMatchObject({ code: 'address_not_allowed' });
  await inside.close();
});

test.each([
  'ftp://1.1.1.1/',
  'file:///etc/passwd',
  'http://user@1.1.1.1/',
  'http://user:pw@1.1.1.1/',
  'nonsense',
])('%s is no URL to send to', async (url) => {
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

  test('inside an exception is reached', async () => {
    expect(await get(`${base}/`, local)).toMatchObject({
      status: 200,
      body: 'fine',
      truncated: false,
    });
  });

  test('a redirect is an answer, not a way, and its cookies are left out', async () => {
    const answer = await get(`${base}/redirect`, local);
    expect(answer.status).toBe(302);
    expect(answer.headers).not.toHaveProperty('set-cookie');
  });

  test('Retry-After is read', async () => {
    expect(await get(`${base}/busy`, local)).toMatchObject({ status: 503, retryAfterMs: 7_000 });
  });

  test('a large answer is cut', async () => {
    const answer = await get(`${base}/large`, local);
    expect([answer.body.length, answer.truncated]).toEqual([65_536, true]);
  });

  test('a slow drip ends at the limit of the whole exchange', async () => {
    const began = performance.now();
    await expect(get(`${base}/drip`, local, 400)).rejects.toMatchObject({
      code: 'timed_out',
      transient: true,
    });
    expect(performance.now() - began).toBeLessThan(1_500);
  });

  test('what is not HTTP and what does not listen are told apart', async () => {
    await expect(get(`${base}/broken`, local)).rejects.toMatchObject({ code: 'bad_answer' });
    await expect(get('http://127.0.0.1:1/', local)).rejects.toMatchObject({
      code: 'connect_failed',
    });
  });

  test.each(['Host', 'content-length', 'Transfer-Encoding'])(
    'the header %s cannot be set',
    async (name) => {
      const sent = local.request({
        url: `${base}/`,
        method: 'GET',
        headers: { [name]: '1' },
        timeoutMs: 1_000,
      });
      await expect(sent).rejects.toMatchObject({ code: 'url_not_allowed' });
    },
  );
});

/**
 * Names that resolve as each test says. Addresses of 127/8 all lead to this machine; with 127.0.0.2 allowed and
 * nothing else, it stands for a public address and the others for addresses inside.
 */
describe('a name', () => {
  const PUBLIC = '127.0.0.2';
  const v4 = (address: string): LookupAddress => ({ address, family: 4 });
  let answers: (nth: number) => LookupAddress[];
  let looked = 0;
  let reached: string[] = [];
  let server: Server;
  let port: number;
  const client = createGuardedHttp({
    allow: [`${PUBLIC}/32`],
    resolve: (_hostname, _options, callback) =>
      setTimeout(() => callback(null, answers(++looked)), 5),
  });

  beforeAll(async () => {
    server = createServer((req, res) => {
      reached.push(req.socket.localAddress ?? '');
      res.writeHead(200, { connection: 'close' }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
    await new Promise((resolve) => server.close(resolve));
    // On every address, so that a connection to a wrong one would succeed.
    server.listen(port, '0.0.0.0');
    await new Promise((resolve) => server.once('listening', resolve));
  });
  beforeEach(() => {
    looked = 0;
    reached = [];
  });
  afterAll(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  const ask = (name = 'hooks.example') => get(`http://${name}:${port}/`, client);

  test('that resolves to a permitted address is reached there', async () => {
    answers = () => [v4(PUBLIC)];
    expect(await ask()).toMatchObject({ status: 200 });
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
      await expect(ask()).rejects.toMatchObject({ code: 'address_not_allowed' });
      expect(reached).toEqual([]);
    },
  );

  test('that is bound anew between two looks is only ever reached where it was checked', async () => {
    answers = (nth) => (nth % 2 === 1 ? [v4(PUBLIC)] : [v4('127.0.0.1')]);
    const outcomes = [];
    for (let n = 0; n < 6; n++)
      outcomes.push(
        await ask().then(
          ({ status }) => status,
          (error: unknown) => (error as { code: string }).code,
        ),
      );
    // One look for each connection: what it gave is what is connected to.
    expect(looked).toBe(6);
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

  test('that is looked up for many at once is looked up once', async () => {
    answers = () => [v4(PUBLIC)];
    await Promise.all(Array.from({ length: 20 }, () => ask('many.example')));
    expect(looked).toBe(1);
    expect(reached).toHaveLength(20);
  });

  test('whose look-up fails is told so', async () => {
    const failing = createGuardedHttp({
      allow: [],
      resolve: (_hostname, _options, callback) =>
        callback(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), []),
    });
    await expect(get('http://nowhere.example/', failing)).rejects.toMatchObject({
      code: 'name_not_found',
      transient: true,
    });
    await failing.close();
  });

  test('that leads to an address inside is refused for https as well, before the handshake', async () => {
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

test('a redirect to an address inside is an answer like any other', async () => {
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
    (await get(`http://127.0.0.1:${(open.address() as AddressInfo).port}/`, local)).status,
  ).toBe(307);
  expect(inside).toBe(0);
  await Promise.all(
    [secret, open].map((server) => new Promise((resolve) => server.close(resolve))),
  );
});
