import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';

const isPem = (text: string): boolean => text.includes('-----BEGIN');

/** What `parse` returns; undefined if it throws. */
function parsed<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}

/** Parses a certificate in PEM, or in base64 without header as in metadata. Throws if invalid. */
export function parseCertificate(text: string): X509Certificate {
  const pem = isPem(text)
    ? text
    : `-----BEGIN CERTIFICATE-----\n${text.replaceAll(/\s/g, '')}\n-----END CERTIFICATE-----\n`;
  return new X509Certificate(pem);
}

export const isCertificate = (text: string): boolean =>
  parsed(() => parseCertificate(text)) !== undefined;

const CERTIFICATE_BLOCK =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g;

/** True for one or several certificates in PEM, as TLS reads those of authorities: it ignores anything else. */
export function isCertificateBundle(text: string): boolean {
  const found = text.match(CERTIFICATE_BLOCK) ?? [];
  return found.length > 0 && found.every(isCertificate);
}

/** Parses a private key in PEM, or in base64 without header (PKCS #8). Throws if invalid or encrypted. */
export const parsePrivateKey = (text: string): KeyObject =>
  isPem(text)
    ? createPrivateKey(text)
    : createPrivateKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'pkcs8' });

/** True for a private key of RSA, the algorithm that signed requests name. */
export const isRsaKey = (text: string): boolean =>
  parsed(() => parsePrivateKey(text))?.asymmetricKeyType === 'rsa';
