import { generateKeyPair, decodeJwt } from 'jose';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { startApp, type TestApp } from '../../support/app.ts';
import {
  createBrowser,
  failureOf,
  type Browser,
  type BrowserResponse,
} from '../../support/browser.ts';
import { eventually } from '../../support/eventually.ts';
import { startOidcPeer } from '../../support/oidcPeer.ts';
import { respondWith, startSink } from '../../support/sink.ts';
import { admin, seedTenant, type Page } from '../../support/users.ts';
import type { ProviderRecord, TestReport } from '../../../api/auth/providerRoutes.ts';
import type { CurrentSession } from '../../../api/auth/schemas.ts';
import type { PermissionSummary } from '../../../api/access/routes.ts';
import type { AuditEntryRecord } from '../../../api/audit/routes.ts';
import type { SsoStartResponse } from '../../../api/auth/ssoRoutes.ts';
import { expectInvalid, expectProblem } from '../../support/problem.ts';

let app: TestApp;
let peer: Awaited<ReturnType<typeof startOidcPeer>>;
let providerId: string;
const CALLBACK = '/api/auth/oidc/callback';
const JSON_TYPE = { 'content-type': 'application/json' };

beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_OUTBOUND_ALLOW: '' }, { idle: true });
  peer = await startOidcPeer([app.client.base + CALLBACK]);
  providerId = (await createProvider('Main')).body.id;
  await seedTenant(app, 'red');
});
afterAll(() => Promise.all([app.stop(), peer.stop()]));
beforeEach(() => {
  peer.claims = {
    sub: 'ada-1',
    preferred_username: 'ada',
    name: 'Ada L.',
    email: 'ada@example.net',
    groups: ['net-admins', 'everybody'],
  };
});
afterEach(() => {
  peer.tamper = undefined;
});

const createProvider = (name: string, change: object = {}) =>
  admin(app).post<ProviderRecord>('/api/auth/providers', {
    kind: 'oidc',
    name,
    config: {
      issuer: peer.issuer,
      clientId: 'holdfast',
      clientSecret: 'holdfast-secret-of-the-client',
      scopes: ['openid', 'profile', 'email', 'groups'],
      allowPrivateNetwork: true,
      allowHttp: true,
      ...change,
    },
  });
const start = (browser: Browser, body: object = {}) =>
  browser.post(`${app.client.base}/api/auth/login/oidc/start`, { providerId, ...body });
const isCallback = (url: string) => url.startsWith(app.client.base + CALLBACK);

/** Signs in at the provider. Returns the callback URL, which is not followed. */
async function signInAtProvider(browser: Browser, body: object = {}): Promise<URL> {
  const started = await start(browser, body);
  const seen = await browser.follow(JSON.parse(started.text).redirectUrl, { stop: isCallback });
  return new URL(seen.at(-1)?.url ?? '');
}
const openCallback = (browser: Browser, url: URL | string) =>
  browser.send(String(url), { from: peer.issuer });
const isSignedIn = (browser: Browser) =>
  browser.cookie(app.client.base, 'holdfast_refresh') !== undefined;

function expectRefused(browser: Browser, seen: BrowserResponse) {
  expect([failureOf(seen)?.error, isSignedIn(browser)]).toEqual(['login_failed', false]);
}

describe('a sign-in', () => {
  test('uses PKCE, state and nonce, and sets the session cookie', async () => {
    const browser = createBrowser();
    const started = await start(browser, { returnTo: '/somewhere?x=1#part' });
    expect(started.headers.get('set-cookie')).toMatch(
      /^holdfast_login=hfb_[^;]+; Max-Age=600; Path=\/api\/auth; HttpOnly; SameSite=Lax$/,
    );
    const url = new URL(JSON.parse(started.text).redirectUrl);
    expect(url.origin).toBe(peer.issuer);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: 'code',
      client_id: 'holdfast',
      code_challenge_method: 'S256',
      redirect_uri: app.client.base + CALLBACK,
      state: expect.stringMatching(/^hfs_.{43}$/),
      nonce: expect.any(String),
      code_challenge: expect.any(String),
    });
    const seen = await browser.follow(url.href, {
      stop: (at) => at.startsWith(`${app.client.base}/somewhere`),
    });
    expect(seen.at(-1)?.url).toBe(`${app.client.base}/somewhere?x=1#part`);
    const back = seen.at(-2);
    expect([back?.status, back?.headers.get('location')]).toEqual([303, '/somewhere?x=1#part']);
    expect(back?.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^holdfast_refresh=hfr_.*HttpOnly; SameSite=Strict$/),
      expect.stringContaining('holdfast_login=; Max-Age=0'),
    ]);
    const { accessToken } = JSON.parse(
      (await browser.post(`${app.client.base}/api/auth/refresh`, {})).text,
    );
    const session = await app.client
      .as({ token: accessToken })
      .get<CurrentSession>('/api/auth/session');
    expect(session.body.user).toMatchObject({
      username: 'ada',
      displayName: 'Ada L.',
      email: 'ada@example.net',
      groups: ['everybody', 'net-admins'],
      providerId,
    });
  });

  test('ends on a plain page that shows who is signed in by default', async () => {
    const browser = createBrowser();
    const seen = await browser.follow(JSON.parse((await start(browser)).text).redirectUrl);
    expect(seen.at(-1)).toMatchObject({
      url: `${app.client.base}/api/auth/signed-in`,
      status: 200,
      text: expect.stringContaining('signed-in.js'),
    });
    const script = await browser.send(`${app.client.base}/api/auth/signed-in.js`);
    expect(script.headers.get('content-type')).toContain('javascript');
  });

  test('finds the user by sub, not by names or e-mail address', async () => {
    const signIn = async () => {
      const browser = createBrowser();
      await openCallback(browser, await signInAtProvider(browser));
      return JSON.parse((await browser.post(`${app.client.base}/api/auth/refresh`, {})).text).user;
    };
    const first = await signIn();
    peer.claims = {
      ...peer.claims,
      preferred_username: 'ada.lovelace',
      email: 'new@example.net',
      groups: 'single',
    };
    const second = await signIn();
    expect(second).toMatchObject({ id: first.id, username: 'ada.lovelace', groups: ['single'] });
    peer.claims = { ...peer.claims, sub: 'mallory-1' };
    expect((await signIn()).id).not.toBe(first.id);
    const twice = await Promise.all(
      [1, 2, 3].map(async () => {
        peer.claims = { ...peer.claims, sub: 'new-person' };
        return signIn();
      }),
    );
    expect(new Set(twice.map((user) => user.id)).size).toBe(1);
  });

  test('with claims that the database cannot store: names without them, no login with such an id', async () => {
    const [nul, half] = ['\0', '\ud800'];
    const signIn = async () => {
      const browser = createBrowser();
      return { browser, answer: await openCallback(browser, await signInAtProvider(browser)) };
    };
    peer.claims = {
      ...peer.claims,
      preferred_username: `a${nul}da`,
      name: `${half}Ada\u001b[2J${nul}`,
      email: nul,
      groups: ['net-admins', `net${nul}-admins`, half],
    };
    const { browser } = await signIn();
    const { text } = await browser.post(`${app.client.base}/api/auth/refresh`, {});
    expect(JSON.parse(text).user).toMatchObject({
      username: 'a da',
      displayName: 'Ada [2J',
      email: null,
      groups: ['net-admins'],
    });
    peer.claims = { ...peer.claims, sub: `ada${nul}` };
    const { browser: other, answer } = await signIn();
    expectRefused(other, answer);
    const [entry] = (
      await admin(app).get<Page<AuditEntryRecord>>('/api/audit?action=login.failed&limit=1')
    ).body.items;
    expect(entry?.after).toMatchObject({ reason: 'the id of the person has control characters' });
  });

  test('grants the roles that are mapped to the groups', async () => {
    await admin(app).post('/api/rbac/provider-mappings', {
      providerId,
      externalGroup: 'net-admins',
      roleId: 'operator',
      tenantId: 'red',
    });
    const browser = createBrowser();
    await openCallback(browser, await signInAtProvider(browser));
    const { accessToken } = JSON.parse(
      (await browser.post(`${app.client.base}/api/auth/refresh`, {})).text,
    );
    const { body } = await app.client
      .as({ token: accessToken })
      .get<PermissionSummary>('/api/rbac/summary');
    expect(body.permissions['job:write']?.tenantIds).toEqual(['red']);
  });
});

test('logins wait for a busy provider; one that cannot is not used, and can be completed later', async () => {
  const browsers = Array.from({ length: 16 }, () => createBrowser());
  const urls: URL[] = [];
  for (const browser of browsers) urls.push(await signInAtProvider(browser));
  const { promise: answer, resolve: release } = Promise.withResolvers<undefined>();
  peer.tamper = async (tokens) => {
    await answer;
    return tokens;
  };
  const refused: number[] = [];
  const callback = async (n: number) => {
    const seen = await openCallback(browsers[n] as Browser, urls[n] as URL);
    if (failureOf(seen)?.error === 'too_many_requests') refused.push(n);
  };
  const open = browsers.map((_, n) => callback(n));
  await eventually(
    () => refused.length,
    (count) => count > 0,
  );
  // Who starts a login asks a known provider nothing.
  expect((await start(createBrowser())).status).toBe(200);
  release(undefined);
  await Promise.all(open);
  expect(refused).toHaveLength(1);
  for (const n of refused) await openCallback(browsers[n] as Browser, urls[n] as URL);
  expect(browsers.filter((browser) => !isSignedIn(browser))).toEqual([]);
});

describe('the callback is rejected', () => {
  test('when the code is replayed', async () => {
    const browser = createBrowser();
    const url = await signInAtProvider(browser);
    const copy = await openCallback(browser, url);
    expect([copy.status, failureOf(copy)]).toEqual([303, undefined]);
    browser.forget(app.client.base, 'holdfast_refresh');
    expectRefused(browser, await openCallback(browser, url));
  });

  test('in another browser than the one that started the login', async () => {
    const [mine, theirs] = [createBrowser(), createBrowser()];
    const url = await signInAtProvider(mine);
    await start(theirs);
    expectRefused(theirs, await openCallback(theirs, url));
    // The code may be that of the owner of the other browser: nobody redeems it.
    expectRefused(mine, await openCallback(mine, url));
    expectRefused(
      createBrowser(),
      await openCallback(createBrowser(), await signInAtProvider(mine)),
    );
  });

  test('when the states of two sign-ins are swapped', async () => {
    const [one, two] = [createBrowser(), createBrowser()];
    const [first, second] = [await signInAtProvider(one), await signInAtProvider(two)];
    const swapped = new URL(first);
    swapped.searchParams.set('state', second.searchParams.get('state') ?? '');
    expectRefused(one, await openCallback(one, swapped));
    // The attacker's code in the victim's own login: PKCE and nonce do not match.
    const injected = new URL(first);
    injected.searchParams.set('code', second.searchParams.get('code') ?? '');
    expectRefused(one, await openCallback(one, injected));
  });

  test.each([
    ['no state', (url: URL) => url.searchParams.delete('state')],
    ['an empty state', (url: URL) => url.searchParams.set('state', '')],
    ['a made-up state', (url: URL) => url.searchParams.set('state', 'hfs_made-up')],
    ['a made-up code', (url: URL) => url.searchParams.set('code', 'made-up')],
    ['another issuer', (url: URL) => url.searchParams.set('iss', 'https://evil.example')],
    [
      'an error of the provider',
      (url: URL) => {
        url.searchParams.delete('code');
        url.searchParams.set('error', 'access_denied');
      },
    ],
  ])('with %s', async (_what, change) => {
    const browser = createBrowser();
    const url = await signInAtProvider(browser);
    change(url);
    expectRefused(browser, await openCallback(browser, url));
  });

  test('at the callback of another provider, so that no provider receives the code of another one', async () => {
    const second = (await createProvider('Another')).body;
    expect(second.config).toMatchObject({ ownCallback: true });
    const started = await start(createBrowser(), { providerId: second.id });
    expect(new URL(JSON.parse(started.text).redirectUrl).searchParams.get('redirect_uri')).toBe(
      `${app.client.base}${CALLBACK}/${second.id}`,
    );
    const browser = createBrowser();
    const url = await signInAtProvider(browser);
    url.pathname = `${CALLBACK}/${second.id}`;
    expectRefused(browser, await openCallback(browser, url));
    await expectInvalid(
      admin(app).put<ProviderRecord>(`/api/auth/providers/${second.id}`, {
        config: { ownCallback: false },
      }),
      '/config/ownCallback',
    );
    await admin(app).delete(`/api/auth/providers/${second.id}`);
  });

  test('after it has expired', async () => {
    const browser = createBrowser();
    const url = await signInAtProvider(browser);
    await app.deps.db('logins').update({ expires_at: new Date(Date.now() - 1) });
    expectRefused(browser, await openCallback(browser, url));
  });

  test('only for a reason: a token that was signed again without changes is accepted', async () => {
    peer.tamper = async (t) => ({ ...t, id_token: await peer.resign(t.id_token, {}) });
    const browser = createBrowser();
    const seen = await openCallback(browser, await signInAtProvider(browser));
    expect([seen.status, failureOf(seen)]).toEqual([303, undefined]);
  });

  test.each<
    [string, (tokens: Record<string, unknown>) => Promise<Record<string, unknown>>, RegExp]
  >([
    [
      'the nonce is another one',
      async (t) => ({ ...t, id_token: await peer.resign(t.id_token, { nonce: 'other' }) }),
      /nonce/,
    ],
    [
      'the nonce is missing',
      async (t) => ({ ...t, id_token: await peer.resign(t.id_token, { nonce: undefined }) }),
      /nonce/,
    ],
    [
      'the audience is another client',
      async (t) => ({ ...t, id_token: await peer.resign(t.id_token, { aud: 'other' }) }),
      /aud/,
    ],
    [
      'the audience is a list with strangers and no azp',
      async (t) => ({
        ...t,
        id_token: await peer.resign(t.id_token, { aud: ['holdfast', 'other'] }),
      }),
      /untrusted audiences/,
    ],
    [
      'the issuer is another one',
      async (t) => ({
        ...t,
        id_token: await peer.resign(t.id_token, { iss: 'https://evil.example' }),
      }),
      /iss/,
    ],
    [
      'it has expired',
      async (t) => ({
        ...t,
        id_token: await peer.resign(t.id_token, { exp: Math.floor(Date.now() / 1_000) - 3_600 }),
      }),
      /exp|timestamp/,
    ],
    [
      'it is from the future',
      async (t) => ({
        ...t,
        id_token: await peer.resign(t.id_token, { nbf: Math.floor(Date.now() / 1_000) + 3_600 }),
      }),
      /nbf|timestamp/,
    ],
    [
      'the sub is not the one of UserInfo',
      async (t) => ({ ...t, id_token: await peer.resign(t.id_token, { sub: 'victim' }) }),
      /sub/,
    ],
    [
      'another key signed it',
      async (t) => ({
        ...t,
        id_token: await peer.resign(
          t.id_token,
          {},
          { alg: 'RS256', kid: 'peer' },
          (await generateKeyPair('RS256')).privateKey,
        ),
      }),
      /signature/i,
    ],
    [
      'it is signed with alg none',
      (t) => Promise.resolve({ ...t, id_token: unsigned(t.id_token, 'none') }),
      /alg|unsupported/i,
    ],
    [
      'it is signed with alg None',
      (t) => Promise.resolve({ ...t, id_token: unsigned(t.id_token, 'None') }),
      /alg|unsupported/i,
    ],
    [
      'it has no signature',
      (t) =>
        Promise.resolve({
          ...t,
          id_token: `${String(t.id_token).split('.').slice(0, 2).join('.')}.`,
        }),
      /signature/i,
    ],
    ['it is missing', ({ id_token, ...t }) => Promise.resolve(t), /id_token|ID Token/i],
  ])('when %s in the ID token', async (_what, tamper, reason) => {
    peer.tamper = tamper;
    const browser = createBrowser();
    expectRefused(browser, await openCallback(browser, await signInAtProvider(browser)));
    const entry = await app.deps
      .db('audit_entries')
      .where({ action: 'login.failed' })
      .orderBy('id', 'desc')
      .first();
    expect(entry.after.reason).toMatch(reason);
  });

  test('and the browser is led back to where the login says, with code and request', async () => {
    peer.tamper = ({ id_token, ...t }) => Promise.resolve(t);
    const browser = createBrowser();
    const failureTo = '/sign-in?returnTo=%2Fdevices&error=x#form';
    const url = await signInAtProvider(browser, { failureTo });
    const seen = await openCallback(browser, url);
    const requestId = seen.headers.get('x-request-id');
    expect(seen.headers.get('location')).toBe(
      `/sign-in?returnTo=%2Fdevices&error=login_failed&requestId=${requestId}#form`,
    );
    expect([seen.headers.get('cache-control'), seen.text]).toEqual(['no-store', '']);
    // The login is used: it is not known any more, and the page is the default one.
    const again = await openCallback(browser, url);
    expect(failureOf(again)).toMatchObject({ path: '/api/auth/signed-in', error: 'login_failed' });
    const page = new URL(again.headers.get('location') ?? '', app.client.base);
    expect((await browser.send(page.href)).status).toBe(200);
    page.searchParams.set('error', 'Call +1 555');
    expect((await browser.send(page.href)).status).toBe(400);
  });

  test('the response is JSON on request; only the audit log contains the reason', async () => {
    peer.tamper = async (t) => ({
      ...t,
      id_token: await peer.resign(t.id_token, { nonce: 'other' }),
    });
    const browser = createBrowser();
    const url = await signInAtProvider(browser);
    const { text } = await browser.send(url.href, { headers: { accept: 'application/json' } });
    const problem = JSON.parse(text);
    expect(problem).toMatchObject({ code: 'login_failed', detail: 'Signing in failed.' });
    const { body } = await admin(app).get<Page<AuditEntryRecord>>(
      `/api/audit?requestId=${problem.requestId}`,
    );
    expect(body.items[0]).toMatchObject({
      action: 'login.failed',
      outcome: 'denied',
      after: { providerId, reason: expect.stringContaining('nonce') },
    });
    expect(JSON.stringify(body)).not.toContain(url.searchParams.get('code'));
  });
});

function unsigned(idToken: unknown, alg: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg, typ: 'JWT' })}.${part(decodeJwt(String(idToken)))}.`;
}

describe('the start', () => {
  test.each([
    'https://evil.example/',
    '//evil.example',
    '/\\evil.example',
    '\\\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    'relative',
    '/\n/evil.example',
    '',
    '/.//evil.example/x',
    '/a/..//evil.example',
    '/%2e//evil.example',
  ])('rejects the return address %j', async (path) => {
    for (const name of ['returnTo', 'failureTo']) {
      const answer = await start(createBrowser(), { [name]: path });
      expect([answer.status, JSON.parse(answer.text).errors[0].pointer]).toEqual([400, `/${name}`]);
    }
  });

  test('uses the configured origin, not the Host header', async () => {
    const answer = await app.client
      .as({ token: null })
      .post<SsoStartResponse>(
        '/api/auth/login/oidc/start',
        { providerId },
        { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
      );
    expect(new URL(answer.body.redirectUrl).searchParams.get('redirect_uri')).toBe(
      app.client.base + CALLBACK,
    );
  });

  test('requires the provider id if there are several providers', async () => {
    const other = await createProvider('Second');
    await expectInvalid(
      app.client.as({ token: null }).post<SsoStartResponse>('/api/auth/login/oidc/start', {}),
      '/providerId',
    );
    await admin(app).delete(`/api/auth/providers/${other.body.id}`);
    await app.client.as({ token: null }).post('/api/auth/login/oidc/start', {}).expect(200);
    await app.client.as({ token: null }).post('/api/auth/login/saml/start', {}).expect(400);
  });

  test('requires https unless http is allowed', async () => {
    await expectInvalid(createProvider('Plain', { allowHttp: false }), '/config/issuer');
  });

  test.each<[string, object]>([
    ['a private address is not allowed', { allowPrivateNetwork: false }],
    ['the issuer in the document is another one', { issuer: 'swapped' }],
  ])('is 502 when %s', async (_what, change) => {
    const issuer = peer.issuer.replace('127.0.0.1', 'localhost');
    const made = await createProvider(
      `Broken ${Object.keys(change)[0]}`,
      'issuer' in change ? { issuer } : change,
    );
    await expectProblem(
      app.client
        .as({ token: null })
        .post('/api/auth/login/oidc/start', { providerId: made.body.id }),
      502,
      'provider_unavailable',
    );
    await admin(app).delete(`/api/auth/providers/${made.body.id}`);
  });
});

describe('the test of a provider', () => {
  const run = (id: string, body: object = {}) =>
    admin(app).post<TestReport>(`/api/auth/providers/${id}/test`, body);

  test('reports its steps and previews roles of sample claims, also nested ones', async () => {
    const { body } = await run(providerId, { sampleClaims: { groups: ['net-admins'] } });
    expect(body.steps.map((step) => `${step.name} ${step.status}`)).toEqual([
      'resolve passed',
      'connect passed',
      'answer passed',
      'discovery passed',
      'keys passed',
      'clock passed',
    ]);
    expect([body.ok, body.roles.map((role) => role.roleId)]).toEqual([true, ['operator']]);
    const nested = await createProvider('Nested', { groupsClaim: 'realm_access.roles' });
    expect(
      (await run(nested.body.id, { sampleClaims: { realm_access: { roles: ['a', 'b'] } } })).body
        .groups,
    ).toEqual(['a', 'b']);
    await admin(app).delete(`/api/auth/providers/${nested.body.id}`);
  });

  test('stops at the first failure', async () => {
    const made = await createProvider('Missing', { issuer: 'http://127.0.0.1:1' });
    const { body } = await run(made.body.id);
    expect([body.ok, body.steps.map((step) => step.status)]).toEqual([
      false,
      ['passed', 'failed', 'skipped', 'skipped', 'skipped', 'skipped'],
    ]);
    await admin(app).delete(`/api/auth/providers/${made.body.id}`);
  });

  test('quotes no page that is named as the keys', async () => {
    const sink = await startSink();
    const issuer = sink.url('');
    const page = { issuer, jwks_uri: sink.url('/page') };
    sink.respond(
      '/.well-known/openid-configuration',
      respondWith(200, JSON_TYPE, JSON.stringify(page)),
    );
    const made = await createProvider('Page', { issuer });
    for (const [text, message] of [
      ['root:x:0:0', 'The document is not JSON.'],
      ['null', 'The document contains no keys.'],
    ] as const) {
      sink.respond('/page', respondWith(200, JSON_TYPE, text));
      const { body } = await run(made.body.id);
      expect(body.steps.find(({ name }) => name === 'keys')).toMatchObject({ message });
    }
    await admin(app).delete(`/api/auth/providers/${made.body.id}`);
    await sink.stop();
  });
});
