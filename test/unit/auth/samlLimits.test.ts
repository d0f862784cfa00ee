import { afterAll, beforeEach, expect, test } from '@jest/globals';
import { createProviderOutbound } from '../../../platform/providerOutbound.ts';
import { ThreadLimitExceeded } from '../../../platform/threadPool.ts';
import { createSaml, createSamlThreads } from '../../../services/auth/providers/kinds/saml.ts';
import type { SamlConfig } from '../../../services/auth/providers/kinds/samlConfig.ts';
import type { SamlOutcome } from '../../../services/auth/providers/kinds/samlVerification.ts';
import { selfSigned } from '../../support/certificate.ts';

const outbound = createProviderOutbound([]);
const threads = createSamlThreads();
afterAll(() => Promise.all([outbound.close(), threads.close()]));

let verified = 0;
let outcome: () => Promise<SamlOutcome>;
beforeEach(() => {
  verified = 0;
  outcome = () => Promise.resolve({ refused: 'the signature is wrong' });
});
const saml = createSaml(outbound, {
  run() {
    verified += 1;
    return outcome();
  },
});

const { cert } = await selfSigned('idp');
const config = { idpCertificates: [cert], wantResponseSigned: false, clockSkewSeconds: 30 };
const pending = {
  requestId: '_1',
  callbackUrl: 'https://sp.example/acs',
  audience: 'sp',
  startedAt: new Date().toISOString(),
};
const response = (inner: string) =>
  `<?xml version="1.0"?><p:Response xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" ID="_r" InResponseTo="_1">${inner}</p:Response>`;
const finish = (xml: string, by = saml) =>
  by.finish(config as unknown as SamlConfig, pending, Buffer.from(xml).toString('base64'));

test.each([
  ['20,000 empty elements', response('<x/>'.repeat(20_000)), /1500 elements/],
  [
    '2,000 elements with namespaces',
    response('<x xmlns:a="u" a:b="c"/>'.repeat(2_000)),
    /elements/,
  ],
  [
    '6,000 namespaces',
    response(`<x ${Array.from({ length: 6_000 }, (_, i) => `xmlns:n${i}="u"`).join(' ')}/>`),
    /5000 attributes/,
  ],
  ['1,000 elements in one another', response('<x>'.repeat(1_000) + '</x>'.repeat(1_000)), /deeper/],
  ['a long text', response('x'.repeat(150_000)), /longer/],
  [
    'entities',
    `<!DOCTYPE x [<!ENTITY a "${'x'.repeat(1_000)}">]>${response('&a;')}`,
    /more than elements/,
  ],
  ['elements in a comment', response(`<!--${'<x/>'.repeat(2_000)}-->`), /more than elements/],
])('a response with %s is refused before it is parsed', async (_what, xml, reason) => {
  await expect(finish(xml)).rejects.toThrow(reason);
  expect(verified).toBe(0);
});

test('a response with 1,000 groups is verified', async () => {
  const group = '<v xmlns:xs="x" xmlns:xsi="y" xsi:type="xs:string">a group of ordinary length</v>';
  await expect(finish(response(group.repeat(1_000)))).rejects.toThrow('the signature is wrong');
  expect(verified).toBe(1);
});

test('a response that a busy machine does not verify in time is no refused sign-in', async () => {
  outcome = () => Promise.reject(new ThreadLimitExceeded());
  await expect(finish(response('<x/>'))).rejects.toMatchObject({ code: 'server_busy' });
});

test('the most expensive response is refused by a thread', async () => {
  const real = createSaml(outbound, threads);
  await expect(finish(response('<x/>'.repeat(1_400)), real)).rejects.toThrow(
    /assertion|signature/i,
  );
});
