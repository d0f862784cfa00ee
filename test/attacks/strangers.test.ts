import { request, type ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allRoutes } from '../../api/app.ts';
import type { Route, StrangerLimits } from '../../api/http/route.ts';
import { startApp, type TestApp } from '../support/app.ts';
import type { ProblemBody } from '../support/client.ts';
import { openEventStream } from '../support/eventStream.ts';
import { eventually } from '../support/eventually.ts';
import { sendBytes, sendRaw, type RawAnswer } from '../support/rawHttp.ts';
import { createToken } from '../support/tokens.ts';
import { createUser, type TestUser } from '../support/users.ts';

const BUDGET = 45;

let app: TestApp;
let user: TestUser;
let queries = 0;
beforeAll(async () => {
  const env = {
    HOLDFAST_STRANGER_BUDGET: String(BUDGET),
    HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.1/32',
  };
  app = await startApp(env, { idle: true });
  user = await createUser(app, 'viewer');
  // What is counted are the queries of requests, not those of the probes.
  await app.deps.readiness.stop();
  app.deps.db.on('query', () => (queries += 1));
});
afterAll(() => app.stop());

let addresses = 0;
/** An address that no other test has used, as a gateway states it. */
const newAddress = () => `203.0.113.${++addresses}`;
const through = (address: string) => ({ 'x-forwarded-for': address });

const PUBLIC = (): (Route & { strangers: StrangerLimits })[] =>
  allRoutes(app.deps, 'test').flatMap((route) => (route.public === undefined ? [] : [route]));
const urlOf = ({ path }: Route) =>
  app.client.base +
  path.replace('{file}', 'swagger-ui.css').replace('{id}', `idp_${'0'.repeat(26)}`);

/** Sends `count` requests of one address, one after another, and returns their statuses. */
async function flood(count: number, send: () => Promise<{ status: number }>): Promise<number[]> {
  const statuses = [];
  for (let n = 0; n < count; n++) statuses.push((await send()).status);
  return statuses;
}

const FURTHER = 4;

/** Sends requests until one is 429, and checks that further ones cost PostgreSQL nothing. */
async function expectLimited(send: () => Promise<RawAnswer>, cost: number): Promise<void> {
  const allowed = Math.floor(BUDGET / cost);
  expect(await flood(allowed, send)).not.toContain(429);
  // The budget refills while the test runs.
  await eventually(send, ({ status }) => status === 429);
  const costs: number[] = [];
  for (let n = 0; n < FURTHER; n++) {
    const sent = await eventually(
      async () => {
        const before = queries;
        const answer = await send();
        return { answer, queries: queries - before };
      },
      ({ answer }) => answer.status === 429,
    );
    costs.push(sent.queries);
    expect(JSON.parse(sent.answer.text)).toMatchObject({ code: 'too_many_requests' });
    expect(Number(sent.answer.headers['retry-after'])).toBeGreaterThan(0);
  }
  // Others may ask PostgreSQL at the same time, such as an open stream.
  expect(Math.min(...costs)).toBe(0);
}

describe('a public route', () => {
  test('declares the largest body and the cost of a request', () => {
    const routes = PUBLIC();
    expect(routes.length).toBeGreaterThan(10);
    for (const { operationId, strangers, body } of routes) {
      expect([operationId, strangers.cost >= 1]).toEqual([operationId, true]);
      const largest = operationId === 'receiveSamlResponse' ? 262_144 : body ? 8_192 : 0;
      expect([operationId, strangers.bodyBytes <= Math.max(largest, 8_192)]).toEqual([
        operationId,
        true,
      ]);
    }
  });

  test('that may wait for an identity provider does not share slots with others', () => {
    const withSlots = (slots: string) =>
      PUBLIC()
        .filter(({ strangers }) => strangers.slots === slots)
        .map(({ operationId }) => operationId)
        .sort();
    expect(withSlots('provider')).toEqual([
      'completeOidcLogin',
      'completeOidcLoginOfProvider',
      'loginLdap',
      'startOidcLogin',
    ]);
    expect(withSlots('session')).toEqual(['endCurrentSession', 'refreshSession']);
  });

  test('serves an address until its budget is used up, and others still', async () => {
    for (const route of PUBLIC()) {
      const address = newAddress();
      const isForm = route.bodyType === 'form';
      const headers = {
        ...through(address),
        'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
      };
      const body = route.body
        ? isForm
          ? 'SAMLResponse=PHg%2BPC94Pg%3D%3D&RelayState=x'
          : '{}'
        : '';
      const send = () => sendRaw(urlOf(route), { method: route.method, headers, body });
      await expectLimited(send, route.strangers.cost);
      const other = { ...headers, ...through(newAddress()) };
      expect(
        (await sendRaw(urlOf(route), { method: route.method, headers: other, body })).status,
      ).not.toBe(429);
    }
  });

  test('refuses a larger body before it is parsed, announced or not', async () => {
    for (const route of PUBLIC()) {
      const type =
        route.bodyType === 'form' ? 'application/x-www-form-urlencoded' : 'application/json';
      // A route without a body reads none.
      for (const chunked of route.body ? [false, true] : [false]) {
        const before = queries;
        const answer = await sendRaw(urlOf(route), {
          method: route.method,
          headers: { ...through(newAddress()), 'content-type': type },
          // Neither JSON nor a form: parsing it would be another error.
          body: '{"%zz'.padEnd(route.strangers.bodyBytes + 1, '['),
          chunked,
        });
        expect([route.operationId, answer.status]).toEqual([route.operationId, 413]);
        expect(queries).toBe(before);
      }
    }
  });

  test('reads little more than 1 MiB of a body that it has refused', async () => {
    let client: Socket | undefined;
    const body = Buffer.alloc(65_536, 'a');
    const { answer } = await sendBytes(app.client.base, (socket) => {
      client = socket;
      socket.write(
        'POST /api/auth/login/local HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n' +
          'content-length: 1000000000\r\n\r\n',
      );
      // Goes on until the server closes the connection.
      const more = () => {
        while (!socket.destroyed && socket.write(body));
      };
      socket.on('drain', more);
      more();
    });
    expect(answer).toContain('413 Payload Too Large');
    // The rest was on its way.
    expect(client?.bytesWritten).toBeLessThan(100_000_000);
  });

  test('handles 20 requests of one address concurrently, and others of another address', async () => {
    const slow: ClientRequest[] = [];
    const statuses: number[] = [];
    const open = (address: string) => {
      const sent = request(`${app.client.base}/api/auth/refresh`, {
        method: 'POST',
        agent: false,
        headers: { ...through(address), 'content-type': 'application/json', 'content-length': 2 },
      });
      sent.on('error', () => undefined);
      sent.once('response', (response) => {
        statuses.push(response.statusCode ?? 0);
        response.resume();
      });
      sent.flushHeaders();
      slow.push(sent);
    };
    const address = newAddress();
    for (let n = 0; n < 21; n++) open(address);
    await eventually(
      () => statuses,
      (seen) => seen.includes(429),
    );
    expect(statuses).toEqual([429]);
    const headers = { ...through(newAddress()), 'content-type': 'application/json' };
    const send = () =>
      sendRaw(`${app.client.base}/api/auth/refresh`, { method: 'POST', headers, body: '{}' });
    expect((await send()).status).toBe(401);
    // Whatever holds the slots of one group, the others have theirs.
    const providers = await sendRaw(`${app.client.base}/api/auth/providers/enabled`, {
      headers: through(address),
    });
    expect(providers.status).toBe(200);
    for (const sent of slow) sent.end('{}');
    await eventually(
      () => statuses,
      ({ length }) => length === 21,
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(20);
  });

  test('reads its query once, and refuses one of many parameters', async () => {
    const send = (count: number) =>
      sendRaw(`${app.client.base}/api/auth/providers/enabled?${'a&'.repeat(count)}`, {
        headers: through(newAddress()),
      });
    expect(JSON.parse((await send(500)).text)).toMatchObject({ errors: [{ pointer: '/a' }] });
    const startedAt = performance.now();
    for (let n = 0; n < 10; n++) {
      const { status, text } = await send(7_500);
      expect([status, JSON.parse(text)]).toMatchObject([400, { errors: [{ code: 'parameters' }] }]);
    }
    // Each takes about a second if all parameters are read for each of them.
    expect(performance.now() - startedAt).toBeLessThan(3_000);
  });

  test('holds no slot for a client that has left in the middle of its body', async () => {
    const headers = { ...through(newAddress()), 'content-type': 'application/json' };
    const start = gzipSync('{"refreshToken": "x"}').subarray(0, 10);
    for (let n = 0; n < 20; n++) {
      const sent = request(`${app.client.base}/api/auth/refresh`, {
        method: 'POST',
        agent: false,
        headers: { ...headers, 'content-encoding': 'gzip', 'content-length': 100 },
      });
      sent.on('error', () => undefined);
      await new Promise<void>((resolve) => sent.write(start, () => resolve()));
      sent.destroy();
    }
    const send = () =>
      sendRaw(`${app.client.base}/api/auth/refresh`, { method: 'POST', headers, body: '{}' });
    const { text } = await eventually(send, ({ status }) => status !== 429);
    expect(JSON.parse(text)).toMatchObject({ code: 'session_invalid' });
  });
});

describe('a request without a valid identity', () => {
  const jobs = (headers: Record<string, string>, from?: string) =>
    sendRaw(`${app.client.base}/api/jobs`, { headers, ...(from !== undefined && { from }) });

  test.each([
    ['no identity', {}],
    ['an invented token', { authorization: `Bearer hfa_${'x'.repeat(43)}` }],
    ['no token at all', { authorization: 'Basic YTpi' }],
  ])('with %s is counted by address', async (_what, headers) => {
    const address = newAddress();
    await expectLimited(() => jobs({ ...headers, ...through(address) }), 1);
  });

  test('counts the body only after the identity is known', async () => {
    const answer = await sendRaw(`${app.client.base}/api/jobs`, {
      method: 'POST',
      headers: { ...through(newAddress()), 'content-type': 'application/json' },
      body: '['.repeat(900_000),
    });
    expect(answer.status).toBe(401);
  });

  test('from an address that is no gateway is audited within the budget only', async () => {
    const identity = { 'x-service-actor-id': 'root', 'x-service-role-ids': 'platform-admin' };
    let forged = 0;
    // Neither the identity nor the address in its headers is believed.
    const send = () => jobs({ ...identity, ...through(`198.51.100.${++forged}`) }, '127.0.0.2');
    await expectLimited(send, 1);
  });

  test('shares the budget of its IPv6 network', async () => {
    const headers = (address: string) => through(`2001:db8:7:${address}`);
    let host = 0;
    await expectLimited(() => jobs(headers(`1::${(++host).toString(16)}`)), 1);
    expect((await jobs(headers('2::1'))).status).toBe(401);
  });

  test('does not hold up users and gateways at the same address', async () => {
    const address = newAddress();
    const mine = { authorization: `Bearer ${user.accessToken}`, ...through(address) };
    expect((await jobs(mine)).status).toBe(200);
    await expectLimited(() => jobs({ authorization: 'Bearer hfa_wrong', ...through(address) }), 1);
    expect(await flood(5, () => jobs(mine))).toEqual([200, 200, 200, 200, 200]);
    const gateway = {
      'x-service-actor-id': 'alice',
      'x-service-role-ids': 'operator',
      ...through(address),
    };
    expect(new Set(await flood(BUDGET + 10, () => jobs(gateway)))).toEqual(new Set([200]));
  });

  test('is a stranger again when the session has ended', async () => {
    const other = await createUser(app, 'viewer');
    const address = newAddress();
    const mine = { authorization: `Bearer ${other.accessToken}`, ...through(address) };
    expect((await jobs(mine)).status).toBe(200);
    await sendRaw(`${app.client.base}/api/auth/logout`, { method: 'POST', headers: mine });
    const answer = await jobs(mine);
    expect((JSON.parse(answer.text) as ProblemBody).code).toBe('session_invalid');
    const later = { ...mine, ...through(newAddress()) };
    await expectLimited(() => jobs(later), 1);
  });

  test('does not keep a stream with a revoked token by using up the budget', async () => {
    const owner = await createUser(app, 'viewer');
    const { id, client, text } = await createToken(app, owner);
    const address = newAddress();
    const stream = await openEventStream(client, '/api/events?follow', through(address));
    expect(stream.status).toBe(200);
    let isEnded = false;
    void stream.ended.then(() => (isEnded = true));
    await expectLimited(() => jobs({ authorization: 'Bearer hfa_wrong', ...through(address) }), 1);
    await owner.client.delete(`/api/auth/tokens/${id}`).expect(204);
    // Each counts, since all begin before the first is refused: nothing is left for some time.
    const revoked = { authorization: `Bearer ${text}`, ...through(address) };
    await Promise.all(Array.from({ length: 20 }, () => jobs(revoked)));
    await eventually(
      () => isEnded,
      (done) => done,
      { withinMs: 5_000 },
    );
    expect(stream.data('error')).toEqual([expect.objectContaining({ code: 'token_invalid' })]);
  });
});
