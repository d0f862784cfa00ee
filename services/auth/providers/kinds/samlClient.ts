import type { SAML } from '@node-saml/node-saml';
import { parseCertificate, parsePrivateKey } from './certificates.ts';
import type { SamlConfig } from './samlConfig.ts';

/** What the response is checked against; encrypted in the pending login. */
export type SamlPending = {
  requestId: string;
  callbackUrl: string;
  audience: string;
  startedAt: string;
};

/** Milliseconds that a request stays valid. */
const REQUEST_MS = 600_000;

/** Client of the library that accepts a response to this request only. */
export async function createSamlClient(
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
    // The library reads fewer forms than a configuration may have.
    idpCert: config.idpCertificates.map((text) => parseCertificate(text).toString()),
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: config.wantResponseSigned,
    acceptedClockSkewMs: config.clockSkewSeconds * 1_000,
    signatureAlgorithm: 'sha256',
    digestAlgorithm: 'sha256',
    ...(config.spPrivateKey !== undefined && {
      privateKey: parsePrivateKey(config.spPrivateKey).export({ type: 'pkcs8', format: 'pem' }),
    }),
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
