import { randomBytes, X509Certificate } from 'node:crypto';
import type { Profile as SamlProfile, SAML } from '@node-saml/node-saml';
import { Type, type Static } from 'typebox';
import {
  externalIdFrom,
  firstText,
  groupsFrom,
  SignInRefused,
  type Profile,
  type TestStep,
} from '../../../../domain/auth/providers.ts';
import type { ProviderOutbound } from '../../../../platform/providerOutbound.ts';
import { compareClocks, createSteps, reachSteps, type Kind } from './kind.ts';

const AttributeName = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 255, description }));

const SamlConfig = Type.Object(
  {
    entryPoint: Type.String({
      pattern: '^https?://[^\\s#]+$',
      maxLength: 2_048,
      description: 'Single sign-on URL of the provider (HTTP-Redirect).',
    }),
    idpEntityId: Type.String({
      minLength: 1,
      maxLength: 1_024,
      description: 'Issuer of its assertions.',
    }),
    idpCertificates: Type.Array(Type.String({ minLength: 1, maxLength: 16_384 }), {
      minItems: 1,
      maxItems: 5,
      description: 'PEM of the certificates that may sign; two while one is replaced.',
    }),
    spEntityId: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 1_024,
        description: 'Our name at the provider and the audience; the metadata URL unless set.',
      }),
    ),
    spPrivateKey: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 16_384,
        description: 'Secret. PEM; with it requests are signed.',
      }),
    ),
    metadataUrl: Type.Optional(
      Type.String({
        pattern: '^https?://[^\\s#]+$',
        maxLength: 2_048,
        description: 'Metadata of the provider; read by the test only.',
      }),
    ),
    wantResponseSigned: Type.Boolean({
      default: false,
      description: 'The response must be signed beside the assertion.',
    }),
    clockSkewSeconds: Type.Integer({ minimum: 0, maximum: 300, default: 30 }),
    usernameAttribute: AttributeName('Shown as the user name; the NameID unless set.'),
    displayNameAttribute: AttributeName('Shown as the name.'),
    emailAttribute: AttributeName('E-mail address.'),
    groupsAttribute: Type.String({
      minLength: 1,
      maxLength: 255,
      default: 'groups',
      description: 'An attribute with the groups.',
    }),
    allowPrivateNetwork: Type.Boolean({
      default: false,
      description:
        'entryPoint and metadataUrl, which the test asks, are at private or loopback addresses.',
    }),
  },
  { additionalProperties: false, title: 'SamlConfig' },
);
export type SamlConfig = Static<typeof SamlConfig>;

export const samlKind: Kind = {
  kind: 'saml',
  config: SamlConfig,
  secrets: ['spPrivateKey'],
  destinations: ['entryPoint', 'idpEntityId'],
  faults: ({ idpCertificates }) =>
    (Array.isArray(idpCertificates) ? idpCertificates : []).flatMap((pem, i) =>
      isCertificate(String(pem))
        ? []
        : [
            {
              pointer: `/idpCertificates/${i}`,
              code: 'certificate',
              message: 'is not a certificate in PEM',
            },
          ],
    ),
};

/** What must come back; sealed until then. */
export type SamlPending = {
  requestId: string;
  callbackUrl: string;
  audience: string;
  startedAt: string;
};

/** How long a sign-in may take. */
const REQUEST_MS = 600_000;
const TIMEOUT_MS = 10_000;
const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';

/** Signs people in with SAML 2.0 Web Browser SSO, started by us; assertions must be signed. */
export function createSaml(outbound: ProviderOutbound) {
  /** Only the request that this sign-in began with is known. */
  async function samlOf(
    config: SamlConfig,
    { requestId, callbackUrl, audience, startedAt }: SamlPending,
  ): Promise<SAML> {
    // Loaded when it is needed: it is large, and most processes never sign anybody in with SAML.
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
    /** Our name at the provider. */
    audienceOf: (config: SamlConfig, metadataUrl: string): string =>
      config.spEntityId ?? metadataUrl,

    /** Where the browser goes, and what must come back. */
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
        await samlOf(config, pending)
      ).getAuthorizeUrlAsync(relayState, undefined, {});
      return { url, pending };
    },

    /** Checks a response and everything in it. Error: `SignInRefused`. */
    async finish(config: SamlConfig, pending: SamlPending, samlResponse: string): Promise<Profile> {
      try {
        // No SAML message has a DTD, and what one could make of the rest is not worth knowing.
        if (/<!(DOCTYPE|ENTITY)/i.test(Buffer.from(samlResponse, 'base64').toString('utf8')))
          throw new Error('it has a document type');
        const { profile } = await (
          await samlOf(config, pending)
        ).validatePostResponseAsync({ SAMLResponse: samlResponse });
        if (!profile) throw new Error('no assertion');
        return readAssertion(config, pending, profile);
      } catch (error) {
        throw new SignInRefused(
          error instanceof Error ? error.message.slice(0, 300) : 'not a valid response',
        );
      }
    },

    /** Metadata of this side, to be given to the provider. */
    async metadata(
      { spPrivateKey: _, ...config }: SamlConfig,
      { callbackUrl, audience }: { callbackUrl: string; audience: string },
    ): Promise<string> {
      const ours = await samlOf(config, { requestId: '_', callbackUrl, audience, startedAt: '' });
      return ours.generateServiceProviderMetadata(null, null);
    },

    /** The groups that sample attributes would give. */
    groupsIn: (config: SamlConfig, claims: Readonly<Record<string, unknown>>): string[] =>
      groupsFrom(claims[config.groupsAttribute]),

    /** Looks at the certificates, reaches the provider and, where a URL is set, reads its metadata. */
    async test(config: SamlConfig): Promise<{ steps: TestStep[] }> {
      const { steps, step } = createSteps();
      await step('certificates', () => {
        const ends = config.idpCertificates.map(endOf);
        if (ends.every((end) => end.getTime() < Date.now()))
          throw new Error('Every certificate has expired.');
        return Promise.resolve({
          message: `Valid until ${ends.map((end) => end.toISOString().slice(0, 10)).join(', ')}.`,
        });
      });
      const http = outbound.httpFor(config);
      await reachSteps(step, config.entryPoint, outbound.guardFor(config), TIMEOUT_MS);
      const clock = await step('answer', async () => {
        const answer = await http.request({
          url: config.entryPoint,
          method: 'GET',
          headers: {},
          timeoutMs: TIMEOUT_MS,
        });
        return { message: `It answers ${answer.status}.`, value: answer.headers.date };
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
          const answer = await http.request({
            url: metadataUrl,
            method: 'GET',
            headers: {},
            timeoutMs: TIMEOUT_MS,
          });
          if (!describes(answer.body, config))
            throw new Error('There is no metadata of this provider with one of the certificates.');
          return { message: `It names ${config.idpEntityId} and one of the certificates.` };
        });
      }
      await step('clock', () => Promise.resolve(compareClocks(clock, config.clockSkewSeconds)));
      return { steps };
    },
  };
}

/** PEM, or the bare base64 of metadata. Throws for anything else. */
function certificate(text: string): X509Certificate {
  const pem = text.includes('-----BEGIN')
    ? text
    : `-----BEGIN CERTIFICATE-----\n${text.replaceAll(/\s/g, '')}\n-----END CERTIFICATE-----\n`;
  return new X509Certificate(pem);
}

function isCertificate(text: string): boolean {
  try {
    return certificate(text).raw.length > 0;
  } catch {
    return false;
  }
}

const endOf = (text: string): Date => new Date(certificate(text).validTo);

/**
 * True when the text is the metadata of this provider. What it says otherwise is not told: somebody could ask for any
 * page inside.
 */
function describes(body: string, config: SamlConfig): boolean {
  const entityId = /<(?:\w+:)?EntityDescriptor\b[^>]*\bentityID="([^"]*)"/.exec(body)?.[1];
  const flat = body.replaceAll(/\s/g, '');
  return (
    entityId === config.idpEntityId &&
    config.idpCertificates.some((pem) => flat.includes(certificate(pem).raw.toString('base64')))
  );
}

type Node = { _?: string; $?: Record<string, string>; [name: string]: unknown };

const only = (node: Node | undefined, name: string): Node | undefined => {
  const found = node?.[name];
  return Array.isArray(found) && found.length === 1 ? (found[0] as Node) : undefined;
};

/**
 * Reads the signed part and demands what the profile demands of a bearer assertion (SAML 2.0 Profiles, 4.1.4.2): the
 * library leaves the issuer, the recipient and a missing InResponseTo to us.
 */
function readAssertion(config: SamlConfig, pending: SamlPending, profile: SamlProfile): Profile {
  const assertion = (profile.getAssertion?.() as { Assertion?: Node } | undefined)?.Assertion;
  const issuer = only(assertion, 'Issuer')?._;
  if (issuer !== config.idpEntityId) throw new Error('the issuer is another one');
  const confirmation = only(only(assertion, 'Subject'), 'SubjectConfirmation');
  const data = only(confirmation, 'SubjectConfirmationData')?.$;
  if (confirmation?.$?.Method !== BEARER)
    throw new Error('it is not confirmed as a bearer assertion');
  if (data?.Recipient !== pending.callbackUrl) throw new Error('the recipient is another one');
  if (data.InResponseTo !== pending.requestId) throw new Error('it answers another request');
  if (data.NotOnOrAfter === undefined) throw new Error('it has no end');
  if (!only(only(assertion, 'Conditions'), 'AudienceRestriction'))
    throw new Error('it has no audience');
  const externalId = externalIdFrom(only(only(assertion, 'Subject'), 'NameID')?._);
  const attributes = (profile.attributes ?? {}) as Record<string, unknown>;
  const attribute = (name: string | undefined) =>
    name === undefined ? undefined : [attributes[name]].flat()[0];
  const username = firstText(attribute(config.usernameAttribute)) ?? externalId;
  return {
    externalId,
    username,
    displayName: firstText(attribute(config.displayNameAttribute)) ?? username,
    email: firstText(attribute(config.emailAttribute)) ?? null,
    groups: groupsFrom(attributes[config.groupsAttribute]),
  };
}
