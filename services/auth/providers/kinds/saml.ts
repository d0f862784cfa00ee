import { randomBytes } from 'node:crypto';
import type { Profile as SamlProfile, SAML } from '@node-saml/node-saml';
import {
  parseExternalId,
  firstNonEmptyText,
  parseGroups,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import { compareClocks, createStepRunner, runConnectionSteps } from './kind.ts';
import { parseCertificate, type SamlConfig } from './samlConfig.ts';

/** What the response is checked against; encrypted in the pending login. */
export type SamlPending = {
  requestId: string;
  callbackUrl: string;
  audience: string;
  startedAt: string;
};

/** Milliseconds that a request stays valid. */
const REQUEST_MS = 600_000;
const TIMEOUT_MS = 10_000;
const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';

/** SAML 2.0 Web Browser SSO, initiated by the service provider. Assertions must be signed. */
export function createSaml(outbound: ProviderOutbound) {
  /** Client that accepts a response to this request only. */
  async function createClient(
    config: SamlConfig,
    { requestId, callbackUrl, audience, startedAt }: SamlPending,
  ): Promise<SAML> {
    // Loaded on first use: it is large, and most processes never use SAML.
    const library = await import('@node-saml/node-saml');
    return new library.SAML({
      entryPoint: config.entryPoint,
      issuer: audience,
      callbackUrl,
      audience,
      idpCert: config.idpCertificates,
      wantAssertionsSigned: true,
      wantAuthnResponseSigned: config.wantResponseSigned,
      acceptedClockSkewMs: config.clockSkewSeconds * 1_000,
      signatureAlgorithm: 'sha256',
      digestAlgorithm: 'sha256',
      ...(config.spPrivateKey !== undefined && { privateKey: config.spPrivateKey }),
      identifierFormat: null,
      disableRequestedAuthnContext: true,
      requestIdExpirationPeriodMs: REQUEST_MS,
      validateInResponseTo: library.ValidateInResponseTo.always,
      generateUniqueId: () => requestId,
      cacheProvider: {
        saveAsync: (key, value) =>
          Promise.resolve({ value: key === requestId ? value : '', createdAt: Date.now() }),
        getAsync: (key) => Promise.resolve(key === requestId ? startedAt : null),
        removeAsync: () => Promise.resolve(null),
      },
    });
  }

  return {
    /** Our entity id, and the audience of assertions. */
    audienceOf: (config: SamlConfig, metadataUrl: string): string =>
      config.spEntityId ?? metadataUrl,

    /** URL to redirect the browser to, and what the response is checked against. */
    async start(
      config: SamlConfig,
      {
        relayState,
        callbackUrl,
        audience,
        now,
      }: { relayState: string; callbackUrl: string; audience: string; now: Date },
    ): Promise<{ url: string; pending: SamlPending }> {
      const pending = {
        requestId: `_${randomBytes(16).toString('hex')}`,
        callbackUrl,
        audience,
        startedAt: now.toISOString(),
      };
      const url = await (
        await createClient(config, pending)
      ).getAuthorizeUrlAsync(relayState, undefined, {});
      return { url, pending };
    },

    /** Verifies a response and returns the profile. Error: `SignInRefused`. */
    async finish(config: SamlConfig, pending: SamlPending, samlResponse: string): Promise<Profile> {
      try {
        // SAML messages contain no DTD; one would only serve attacks on the XML parser.
        if (/<!(DOCTYPE|ENTITY)/i.test(Buffer.from(samlResponse, 'base64').toString('utf8')))
          throw new Error('it has a document type');
        const { profile } = await (
          await createClient(config, pending)
        ).validatePostResponseAsync({ SAMLResponse: samlResponse });
        if (!profile) throw new Error('no assertion');
        return readAssertion(config, pending, profile);
      } catch (error) {
        throw new SignInRefused(
          error instanceof Error ? error.message.slice(0, 300) : 'not a valid response',
        );
      }
    },

    /** Service provider metadata (XML). */
    async metadata(
      { spPrivateKey: _, ...config }: SamlConfig,
      { callbackUrl, audience }: { callbackUrl: string; audience: string },
    ): Promise<string> {
      const client = await createClient(config, {
        requestId: '_',
        callbackUrl,
        audience,
        startedAt: '',
      });
      return client.generateServiceProviderMetadata(null, null);
    },

    /** Groups from sample attributes. */
    groupsFromClaims: (config: SamlConfig, claims: Readonly<Record<string, unknown>>): string[] =>
      parseGroups(claims[config.groupsAttribute]),

    /**
     * Tests the certificates, the connection, the metadata (if a URL is configured) and the clock.
     */
    async test(config: SamlConfig): Promise<{ steps: TestStep[] }> {
      const { steps, step } = createStepRunner();
      await step('certificates', () => {
        const expiryDates = config.idpCertificates.map(expiryOf);
        if (expiryDates.every((end) => end.getTime() < Date.now()))
          throw new Error('Every certificate has expired.');
        return Promise.resolve({
          message: `Valid until ${expiryDates.map((end) => end.toISOString().slice(0, 10)).join(', ')}.`,
        });
      });
      const http = outbound.httpFor(config);
      await runConnectionSteps(step, config.entryPoint, outbound.guardFor(config), TIMEOUT_MS);
      const date = await step('answer', async () => {
        const response = await http.request({
          url: config.entryPoint,
          method: 'GET',
          headers: {},
          timeoutMs: TIMEOUT_MS,
        });
        return { message: `It answers ${response.status}.`, value: response.headers.date };
      });
      const { metadataUrl } = config;
      if (metadataUrl === undefined) {
        steps.push({
          name: 'metadata',
          status: 'skipped',
          message: 'metadataUrl is not set.',
          durationMs: 0,
        });
      } else {
        await step('metadata', async () => {
          const response = await http.request({
            url: metadataUrl,
            method: 'GET',
            headers: {},
            timeoutMs: TIMEOUT_MS,
          });
          if (!matchesMetadata(response.body, config))
            throw new Error(
              'The URL returns no metadata of this provider with one of the certificates.',
            );
          return { message: `It names ${config.idpEntityId} and one of the certificates.` };
        });
      }
      await step('clock', () => Promise.resolve(compareClocks(date, config.clockSkewSeconds)));
      return { steps };
    },
  };
}

const expiryOf = (text: string): Date => new Date(parseCertificate(text).validTo);

/**
 * True if the document is the metadata of this provider. The test reports nothing else about it:
 * otherwise it could be used to read pages of the private network.
 */
function matchesMetadata(body: string, config: SamlConfig): boolean {
  const entityId = /<(?:\w+:)?EntityDescriptor\b[^>]*\bentityID="([^"]*)"/.exec(body)?.[1];
  const compactBody = body.replaceAll(/\s/g, '');
  return (
    entityId === config.idpEntityId &&
    config.idpCertificates.some((pem) =>
      compactBody.includes(parseCertificate(pem).raw.toString('base64')),
    )
  );
}

type XmlNode = { _?: string; $?: Record<string, string>; [name: string]: unknown };

const onlyChild = (node: XmlNode | undefined, name: string): XmlNode | undefined => {
  const found = node?.[name];
  return Array.isArray(found) && found.length === 1 ? (found[0] as XmlNode) : undefined;
};

/**
 * Reads the signed assertion and checks what the profile requires of bearer assertions (SAML 2.0
 * Profiles, 4.1.4.2). node-saml does not check the issuer, the recipient and a missing
 * InResponseTo.
 */
function readAssertion(config: SamlConfig, pending: SamlPending, profile: SamlProfile): Profile {
  const assertion = (profile.getAssertion?.() as { Assertion?: XmlNode } | undefined)?.Assertion;
  const issuer = onlyChild(assertion, 'Issuer')?._;
  if (issuer !== config.idpEntityId) throw new Error('the issuer is another one');
  const confirmation = onlyChild(onlyChild(assertion, 'Subject'), 'SubjectConfirmation');
  const data = onlyChild(confirmation, 'SubjectConfirmationData')?.$;
  if (confirmation?.$?.Method !== BEARER)
    throw new Error('it is not confirmed as a bearer assertion');
  if (data?.Recipient !== pending.callbackUrl) throw new Error('the recipient is another one');
  if (data.InResponseTo !== pending.requestId) throw new Error('it answers another request');
  if (data.NotOnOrAfter === undefined) throw new Error('it has no NotOnOrAfter');
  if (!onlyChild(onlyChild(assertion, 'Conditions'), 'AudienceRestriction'))
    throw new Error('it has no audience');
  const externalId = parseExternalId(onlyChild(onlyChild(assertion, 'Subject'), 'NameID')?._);
  const attributes = (profile.attributes ?? {}) as Record<string, unknown>;
  const attribute = (name: string | undefined) =>
    name === undefined ? undefined : [attributes[name]].flat()[0];
  const username = firstNonEmptyText(attribute(config.usernameAttribute)) ?? externalId;
  return {
    externalId,
    username,
    displayName: firstNonEmptyText(attribute(config.displayNameAttribute)) ?? username,
    email: firstNonEmptyText(attribute(config.emailAttribute)) ?? null,
    groups: parseGroups(attributes[config.groupsAttribute]),
  };
}
