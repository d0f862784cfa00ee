import { inflateRawSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { readConfig } from '../../../platform/config.ts';
import { createVault } from '../../../platform/vault.ts';
import { hashToken } from '../../../services/auth/hashToken.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import {
  createBrowser,
  failureOf,
  type Browser,
  type BrowserResponse,
} from '../../support/browser.ts';
import { admin } from '../../support/users.ts';
import { GROUPS, IDP, startSamlPeer } from '../../support/samlPeer.ts';
import type { ProviderRecord, TestReport } from '../../../api/auth/providerRoutes.ts';
import { selfSigned } from '../../support/certificate.ts';
import { expectInvalid } from '../../support/problem.ts';
import { signedResponse } from '../../support/samlResponse.ts';

let app: TestApp;
let peer: Awaited<ReturnType<typeof startSamlPeer>>;
let providerId: string;
const CALLBACK = '/api/auth/saml/callback';

beforeAll(async () => {
  app = await startApp({ HOLDFAST_ROLE: 'api', HOLDFAST_OUTBOUND_ALLOW: '' }, { idle: true });
  peer = await startSamlPeer(app.client.base + CALLBACK);
  providerId = (await createProvider('Main')).body.id;
});
afterAll(() => Promise.all([app.stop(), peer.stop()]));
const ADA = 'ada@example.net';
beforeEach(() => {
  peer.user = { ...peer.user, id: ADA, groups: ['net-admins', 'everybody'] };
});
afterEach(() => {
  peer.options = {};
});

const createProvider = (name: string, change: object = {}) =>
  admin(app).post<ProviderRecord>('/api/auth/providers', {
    kind: 'saml',
    name,
    config: {
      entryPoint: peer.entryPoint,
      idpEntityId: IDP,
      idpCertificates: [peer.cert],
      groupsAttribute: GROUPS,
      displayNameAttribute: 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name',
      emailAttribute: 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress',
      ...change,
    },
  });
const start = (browser: Browser, body: object = {}) =>
  browser.post(`${app.client.base}/api/auth/login/saml/start`, { providerId, ...body });

/** Starts a login. Returns the provider's page, whose form posts the response. */
async function loginForm(browser: Browser, body: object = {}): Promise<BrowserResponse> {
  const started = JSON.parse((await start(browser, body)).text);
  const seen = await browser.follow(started.redirectUrl);
  return seen.at(-1) as BrowserResponse;
}
const samlResponseOf = (form: BrowserResponse) =>
  Buffer.from(
    /name="SAMLResponse"[^>]*value="([^"]+)"/
      .exec(form.text)?.[1]
      ?.replaceAll(/&#x?[0-9a-f]+;/gi, (e) =>
        String.fromCharCode(
          e.startsWith('&#x') ? Number.parseInt(e.slice(3), 16) : Number(e.slice(2, -1)),
        ),
      ) ?? '',
    'base64',
  ).toString('utf8');
const toBase64 = (xml: string) => Buffer.from(xml).toString('base64');

/** Submits the form and follows the redirects to the end. */
async function finish(
  browser: Browser,
  form: BrowserResponse,
  change: Record<string, string> = {},
): Promise<BrowserResponse> {
  const posted = await browser.submit(form, change);
  const location = posted.headers.get('location');
  if (posted.status !== 303 || location === null) return posted;
  const seen = await browser.follow(new URL(location, app.client.base).href, {
    from: form.url,
    stop: (url) => !url.includes('/saml/finish'),
  });
  return seen.find((each) => each.url.includes('/saml/finish')) ?? posted;
}
const isSignedIn = (browser: Browser) =>
  browser.cookie(app.client.base, 'holdfast_refresh') !== undefined;
const signedInUser = async (browser: Browser) =>
  JSON.parse((await browser.post(`${app.client.base}/api/auth/refresh`, {})).text).user;

async function expectRefused(browser: Browser, seen: BrowserResponse, reason?: RegExp) {
  expect([failureOf(seen)?.error, isSignedIn(browser)]).toEqual(['login_failed', false]);
  if (!reason) return;
  const entry = await app.deps
    .db('audit_entries')
    .where({ action: 'login.failed' })
    .orderBy('id', 'desc')
    .first();
  expect(entry.after.reason).toMatch(reason);
}

describe('a sign-in', () => {
  test('sends a request and creates a session from the response', async () => {
    const browser = createBrowser();
    const started = JSON.parse((await start(browser, { returnTo: '/devices' })).text);
    const url = new URL(started.redirectUrl);
    const request = inflateRawSync(
      Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64'),
    ).toString();
    expect(request).toContain(`AssertionConsumerServiceURL="${app.client.base}${CALLBACK}"`);
    expect(request).toContain(`/api/auth/saml/metadata/${providerId}`);
    const form = (await browser.follow(started.redirectUrl)).at(-1) as BrowserResponse;
    const done = await finish(browser, form);
    expect([done.status, done.headers.get('location')]).toEqual([303, '/devices']);
    expect(await signedInUser(browser)).toMatchObject({
      username: ADA,
      displayName: 'Ada L.',
      email: ADA,
      groups: ['everybody', 'net-admins'],
      providerId,
    });
  });

  test('works with a second certificate, a signed response and signed requests', async () => {
    const made = await createProvider('Signed', {
      idpCertificates: [peer.untrusted.cert, peer.cert],
      wantResponseSigned: true,
      spPrivateKey: peer.untrusted.key,
      spEntityId: 'urn:holdfast:test',
    });
    expect(made.body.config).toMatchObject({ spPrivateKey: '********' });
    peer.options = { signResponse: true };
    const browser = createBrowser();
    const started = JSON.parse((await start(browser, { providerId: made.body.id })).text);
    expect(new URL(started.redirectUrl).searchParams.get('Signature')).not.toBeNull();
    const done = await finish(
      browser,
      (await browser.follow(started.redirectUrl)).at(-1) as BrowserResponse,
    );
    expect([done.status, failureOf(done)]).toEqual([303, undefined]);
    peer.options = {};
    const other = createBrowser();
    await expectRefused(
      other,
      await finish(other, await loginForm(other, { providerId: made.body.id })),
      /signature/i,
    );
  });

  test('creates a session that ends with that of the provider', async () => {
    const { key, cert } = await selfSigned('own');
    const { body: provider } = await createProvider('Own key', { idpCertificates: [cert] });
    const browser = createBrowser();
    const form = await loginForm(browser, { providerId: provider.id });
    const endsAt = new Date(Date.now() + 3_600_000);
    const done = await finish(browser, form, {
      SAMLResponse: signedResponse({
        key,
        issuer: IDP,
        audience: `${app.client.base}/api/auth/saml/metadata/${provider.id}`,
        callbackUrl: app.client.base + CALLBACK,
        requestId: / InResponseTo="([^"]+)"/.exec(samlResponseOf(form))?.[1] ?? '',
        nameId: 'ends-soon',
        statements: `<AuthnStatement SessionNotOnOrAfter="${endsAt.toISOString()}"></AuthnStatement>`,
      }),
    });
    expect([done.status, failureOf(done)]).toEqual([303, undefined]);
    const users = app.deps.db('users').where({ external_id: 'ends-soon' }).select('id');
    expect(await app.deps.db('sessions').whereIn('user_id', users).first()).toMatchObject({
      absolute_expires_at: endsAt,
      idle_expires_at: endsAt,
    });
  });

  test('publishes its metadata', async () => {
    const answer = await app.client
      .as({ token: null })
      .get(`/api/auth/saml/metadata/${providerId}`);
    expect(answer.status).toBe(200);
    expect(String(answer.body)).toContain(`Location="${app.client.base}${CALLBACK}"`);
    const signing = await createProvider('With a key', { spPrivateKey: peer.untrusted.key });
    await app.client
      .as({ token: null })
      .get(`/api/auth/saml/metadata/${signing.body.id}`)
      .expect(200);
    await admin(app).delete(`/api/auth/providers/${signing.body.id}`);
    await app.client
      .as({ token: null })
      .get(`/api/auth/saml/metadata/idp_${'0'.repeat(26)}`)
      .expect(404);
  });
});

describe('a response is rejected', () => {
  const wrong: [string, Record<string, unknown>, RegExp][] = [
    ['when the audience is another one', { audience: 'urn:other' }, /audience/i],
    ['when the recipient is another one', { recipient: 'https://other.example/acs' }, /recipient/],
    ['when there is no recipient', { recipient: undefined }, /recipient/],
    ['when the issuer is another one', { issuer: 'urn:evil' }, /issuer/],
    ['when it answers another request', { inResponseTo: '_other' }, /InResponseTo/],
    ['when the assertion is not signed', { signAssertion: false }, /signature/i],
    [
      'when only the response is signed',
      { signAssertion: false, signResponse: true },
      /signature/i,
    ],
    [
      'when the NameID is transient',
      { nameIdentifierFormat: 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient' },
      /transient/,
    ],
    ['when it has expired', { lifetimeInSeconds: -120 }, /expired|subject confirmation/i],
  ];
  test.each(wrong)('%s', async (_what, options, reason) => {
    peer.options = options;
    const browser = createBrowser();
    await expectRefused(browser, await finish(browser, await loginForm(browser)), reason);
  });

  test('when another key signed it', async () => {
    peer.options = { cert: peer.untrusted.cert, key: peer.untrusted.key };
    const browser = createBrowser();
    await expectRefused(browser, await finish(browser, await loginForm(browser)), /signature/i);
  });

  const ASSERTION = /<saml:Assertion.*<\/saml:Assertion>/s;
  const assertionOf = (xml: string) => ASSERTION.exec(xml)?.[0] ?? '';
  /** An unsigned assertion about another person, with another id. */
  const forged = (xml: string) =>
    assertionOf(xml)
      .replace(/<Signature.*<\/Signature>/s, '')
      .replaceAll(ADA, 'root@example.net')
      .replace(/ID="[^"]+"/, 'ID="_forged"');

  const mangled: [string, (xml: string) => string][] = [
    ['another name', (xml) => xml.replaceAll(ADA, 'root@example.net')],
    ['another group', (xml) => xml.replace('everybody', 'root-admins')],
    ['no signature', (xml) => xml.replace(/<Signature.*<\/Signature>/s, '')],
    [
      'a forged assertion before the signed one',
      (xml) => xml.replace(ASSERTION, (good) => forged(xml) + good),
    ],
    [
      'a forged assertion behind the signed one',
      (xml) => xml.replace(ASSERTION, (good) => good + forged(xml)),
    ],
    [
      'the signed assertion wrapped into a forged one',
      (xml) =>
        xml.replace(ASSERTION, (good) =>
          forged(xml).replace('</saml:Assertion>', `${good}</saml:Assertion>`),
        ),
    ],
    [
      'the signed assertion in an extension, a forged one instead',
      (xml) =>
        xml.replace(
          ASSERTION,
          (good) => `<samlp:Extensions>${good}</samlp:Extensions>${forged(xml)}`,
        ),
    ],
    [
      'the signature moved to a forged assertion around',
      (xml) => {
        const good = assertionOf(xml);
        const signature = /<Signature.*<\/Signature>/s.exec(good)?.[0] ?? '';
        const inner = good.replace(signature, '');
        const outer = forged(xml).replace(
          '<saml:Subject>',
          `${signature.replace('</Signature>', `<Object>${inner}</Object></Signature>`)}<saml:Subject>`,
        );
        return xml.replace(ASSERTION, () => outer);
      },
    ],
    [
      'a response in a response',
      (xml) =>
        xml
          .replace(/(<samlp:Response[^>]*>)/, (open: string) => `${open}<samlp:Response>`)
          .replace('</samlp:Response>', '</samlp:Response></samlp:Response>'),
    ],
    [
      'an external entity',
      (xml) =>
        `<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>${xml.replace(/<\?xml[^>]*\?>/, '')}`,
    ],
    ['no XML', () => 'not xml at all'],
    [
      'nothing inside',
      () => '<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol"/>',
    ],
  ];
  test.each(mangled)('with %s', async (_what, mangle) => {
    const browser = createBrowser();
    const form = await loginForm(browser);
    const xml = samlResponseOf(form);
    expect(assertionOf(xml)).toContain(ADA);
    expect(mangle(xml)).not.toBe(xml);
    await expectRefused(
      browser,
      await finish(browser, form, { SAMLResponse: toBase64(mangle(xml)) }),
    );
  });

  test('with a comment in the name, unless the whole name is used', async () => {
    peer.user = { ...peer.user, id: 'root@example.net.evil.example' };
    const browser = createBrowser();
    const form = await loginForm(browser);
    const split = samlResponseOf(form).replace(
      '>root@example.net.evil.example<',
      '>root@example.net<!-- -->.evil.example<',
    );
    expect(split).toContain('<!-- -->');
    const done = await finish(browser, form, { SAMLResponse: toBase64(split) });
    if (!failureOf(done))
      expect((await signedInUser(browser)).username).toBe('root@example.net.evil.example');
    else await expectRefused(browser, done);
    expect(await app.deps.db('users').where({ external_id: 'root@example.net' })).toEqual([]);
  });

  test('when it is replayed, by the same browser or another one', async () => {
    const browser = createBrowser();
    const form = await loginForm(browser);
    expect(failureOf(await finish(browser, form))).toBeUndefined();
    browser.forget(app.client.base, 'holdfast_refresh');
    await expectRefused(browser, await finish(browser, form));
    const thief = createBrowser();
    const own = await loginForm(thief);
    await expectRefused(
      thief,
      await finish(thief, own, { SAMLResponse: toBase64(samlResponseOf(form)) }),
      /InResponseTo/,
    );
  });

  test('when it is sent concurrently for one login: one is accepted', async () => {
    const browser = createBrowser();
    const form = await loginForm(browser);
    const answers = await Promise.all(Array.from({ length: 6 }, () => browser.submit(form)));
    expect(answers.filter((answer) => !failureOf(answer))).toHaveLength(1);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 303));
  });

  test('when the login is completed concurrently: one request succeeds', async () => {
    const browser = createBrowser();
    const posted = await browser.submit(await loginForm(browser));
    const url = new URL(posted.headers.get('location') ?? '', app.client.base).href;
    const answers = await Promise.all(Array.from({ length: 5 }, () => browser.send(url)));
    expect(answers.filter((answer) => !failureOf(answer))).toHaveLength(1);
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 303));
  });

  test('in another browser than the one that started the login (login CSRF)', async () => {
    const attacker = createBrowser();
    const form = await loginForm(attacker);
    const victim = createBrowser();
    await start(victim);
    await expectRefused(victim, await finish(victim, form), /this browser/);
  });

  test('by the browser that started the login, when another one posted the response', async () => {
    // The attacker starts a login and sends the address of the provider to the victim.
    const attacker = createBrowser();
    const finishUrl = (state: string, ticket = '') =>
      `${app.client.base}/api/auth/saml/finish?${new URLSearchParams({ state, ...(ticket && { ticket }) }).toString()}`;
    const started = async () => {
      const { redirectUrl } = JSON.parse((await start(attacker)).text);
      const victim = createBrowser();
      const form = (await victim.follow(redirectUrl)).at(-1) as BrowserResponse;
      return { victim, form, state: new URL(redirectUrl).searchParams.get('RelayState') ?? '' };
    };
    for (const ticket of ['', 'hfc_made-up']) {
      const { victim, form, state } = await started();
      const posted = await victim.submit(form);
      expect([posted.status, failureOf(posted)]).toEqual([303, undefined]);
      await expectRefused(attacker, await attacker.send(finishUrl(state, ticket)), /this browser/);
      // The refusal has ended the login, also for who has the ticket.
      const location = new URL(posted.headers.get('location') ?? '', app.client.base).href;
      await expectRefused(attacker, await attacker.send(location), /this browser/);
    }
    // So has the refusal of the victim's browser, which has no cookie of this login.
    const { victim, form } = await started();
    const posted = await victim.submit(form);
    const location = new URL(posted.headers.get('location') ?? '', app.client.base).href;
    await expectRefused(victim, await victim.send(location), /this browser/);
    await expectRefused(attacker, await attacker.send(location), /this browser/);
  });

  test('unless a process of 0.2.0 has received it: it sends no ticket', async () => {
    const browser = createBrowser();
    const posted = await browser.submit(await loginForm(browser));
    const location = new URL(posted.headers.get('location') ?? '', app.client.base);
    const state = location.searchParams.get('state') ?? '';
    const vault = createVault(readConfig(app.env).masterKeys);
    const logins = app.deps.db('logins').where({ state_hash: hashToken(state) });
    const { id, sealed_profile: sealed } = await logins.clone().first('id', 'sealed_profile');
    const context = `login:${id}:sealed_profile`;
    const { profile } = JSON.parse(vault.open(sealed, context)) as { profile: object };
    await logins.update({ sealed_profile: vault.seal(JSON.stringify(profile), context) });
    location.searchParams.delete('ticket');
    const finished = await browser.send(location.href);
    expect([finished.status, failureOf(finished)]).toEqual([303, undefined]);
  });

  test('after five failed responses, and when it is too large', async () => {
    const browser = createBrowser();
    const form = await loginForm(browser);
    const bad = toBase64(samlResponseOf(form).replaceAll(ADA, 'root@example.net'));
    for (let i = 0; i < 5; i++)
      await expectRefused(browser, await finish(browser, form, { SAMLResponse: bad }));
    await expectRefused(browser, await finish(browser, form), /this browser/);
    const large = await browser.submit(form, { SAMLResponse: 'A'.repeat(200_001) });
    expect(failureOf(large)?.error).toBe('invalid_request');
  });

  test('when no login was started', async () => {
    const browser = createBrowser();
    const form = await loginForm(browser);
    await expectRefused(
      browser,
      await finish(browser, form, { RelayState: 'hfs_made-up' }),
      /this browser/,
    );
    const posted = await browser.submit(form, { RelayState: '' });
    expect(failureOf(posted)?.error).toBe('invalid_request');
  });

  test('when only the response, not the assertion, contains InResponseTo', async () => {
    peer.options = { audience: `${app.client.base}/api/auth/saml/metadata/${providerId}` };
    const browser = createBrowser();
    const url = new URL(JSON.parse((await start(browser)).text).redirectUrl);
    const request = inflateRawSync(
      Buffer.from(url.searchParams.get('SAMLRequest') ?? '', 'base64'),
    ).toString();
    const id = / ID="([^"]+)"/.exec(request)?.[1] ?? '';
    // A response that the provider initiated; only the unsigned part is changed to name our
    // request.
    const form = await browser.send(
      `${peer.entryPoint}?RelayState=${url.searchParams.get('RelayState')}`,
    );
    const dressed = samlResponseOf(form).replace(
      '<samlp:Response ',
      `<samlp:Response InResponseTo="${id}" `,
    );
    expect(assertionOf(dressed)).not.toContain('InResponseTo');
    await expectRefused(
      browser,
      await finish(browser, form, { SAMLResponse: toBase64(dressed) }),
      /another request/,
    );
  });
});

test('the test of a provider checks certificates, metadata and clock', async () => {
  const run = async (change: object) => {
    const made = await createProvider(`Test ${JSON.stringify(change).slice(0, 200)}`, change);
    return (
      await admin(app).post<TestReport>(`/api/auth/providers/${made.body.id}/test`, {
        sampleClaims: { [GROUPS]: ['a'] },
      })
    ).body;
  };
  const names = ({ steps }: TestReport) => steps.map((step) => `${step.name} ${step.status}`);
  expect(names(await run({}))).toEqual([
    'certificates passed',
    'resolve failed',
    'connect skipped',
    'answer skipped',
    'metadata skipped',
    'clock skipped',
  ]);
  const inside = { allowPrivateNetwork: true };
  expect(names(await run(inside))).toEqual([
    'certificates passed',
    'resolve passed',
    'connect passed',
    'answer passed',
    'metadata skipped',
    'clock passed',
  ]);
  const full = await run({ ...inside, metadataUrl: peer.metadataUrl });
  expect([full.ok, names(full)[4], full.groups]).toEqual([true, 'metadata passed', ['a']]);
  const strange = [
    { idpCertificates: [peer.untrusted.cert] },
    { idpEntityId: 'urn:other' },
    { metadataUrl: peer.entryPoint },
  ];
  const answers = await Promise.all(
    strange.map((change) => run({ ...inside, metadataUrl: peer.metadataUrl, ...change })),
  );
  // The messages do not reveal the content of internal pages.
  expect(
    new Set(answers.map((body) => body.steps.find((step) => step.name === 'metadata')?.message))
      .size,
  ).toBe(1);
  expect(answers.every((body) => !body.ok)).toBe(true);
  await expectInvalid(
    createProvider('Bad', { idpCertificates: [peer.cert, 'no certificate'] }),
    '/config/idpCertificates/1',
  );
});
