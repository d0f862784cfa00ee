import { createHash, createSign } from 'node:crypto';

const ASSERTION = 'urn:oasis:names:tc:SAML:2.0:assertion';
const DSIG = 'http://www.w3.org/2000/09/xmldsig#';
const C14N = 'http://www.w3.org/2001/10/xml-exc-c14n#';

export type SignedResponse = {
  key: string;
  issuer: string;
  audience: string;
  callbackUrl: string;
  requestId: string;
  nameId: string;
  nameIdFormat?: string;
  /** `AttributeStatement` and `AuthnStatement` elements, in canonical form. */
  statements?: string;
};

/**
 * Signs an assertion that is written in its canonical form (no empty-element tags, sorted attributes),
 * so that it needs no canonicalization.
 */
function sign(assertion: string, key: string): string {
  const digest = createHash('sha256').update(assertion).digest('base64');
  const algorithm = (name: string, uri: string) => `<${name} Algorithm="${uri}"></${name}>`;
  const info =
    algorithm('CanonicalizationMethod', C14N) +
    algorithm('SignatureMethod', 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256') +
    `<Reference URI="#_a"><Transforms>${algorithm('Transform', `${DSIG}enveloped-signature`)}` +
    `${algorithm('Transform', C14N)}</Transforms>` +
    algorithm('DigestMethod', 'http://www.w3.org/2001/04/xmlenc#sha256') +
    `<DigestValue>${digest}</DigestValue></Reference>`;
  const value = createSign('sha256')
    .update(`<SignedInfo xmlns="${DSIG}">${info}</SignedInfo>`)
    .sign(key, 'base64');
  const signature =
    `<Signature xmlns="${DSIG}"><SignedInfo>${info}</SignedInfo>` +
    `<SignatureValue>${value}</SignatureValue></Signature>`;
  return assertion.replace('</Issuer>', `</Issuer>${signature}`);
}

/** A response with one signed assertion, in base64. For what the real provider of tests cannot send. */
export function signedResponse({ key, statements = '', ...of }: SignedResponse): string {
  const now = new Date().toISOString();
  const soon = new Date(Date.now() + 60_000).toISOString();
  const format = of.nameIdFormat === undefined ? '' : ` Format="${of.nameIdFormat}"`;
  const assertion =
    `<Assertion xmlns="${ASSERTION}" ID="_a" IssueInstant="${now}" Version="2.0">` +
    `<Issuer>${of.issuer}</Issuer><Subject><NameID${format}>${of.nameId}</NameID>` +
    '<SubjectConfirmation Method="urn:oasis:names:tc:SAML:2.0:cm:bearer">' +
    `<SubjectConfirmationData InResponseTo="${of.requestId}" NotOnOrAfter="${soon}"` +
    ` Recipient="${of.callbackUrl}"></SubjectConfirmationData></SubjectConfirmation></Subject>` +
    `<Conditions NotBefore="${now}" NotOnOrAfter="${soon}"><AudienceRestriction>` +
    `<Audience>${of.audience}</Audience></AudienceRestriction></Conditions>${statements}</Assertion>`;
  const response =
    `<p:Response xmlns:p="urn:oasis:names:tc:SAML:2.0:protocol" ID="_r" InResponseTo="${of.requestId}"` +
    ` IssueInstant="${now}" Version="2.0">${sign(assertion, key)}</p:Response>`;
  return Buffer.from(response).toString('base64');
}
