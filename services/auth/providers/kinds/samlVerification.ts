import type { Profile as SamlProfile } from '@node-saml/node-saml';
import {
  parseExternalId,
  firstNonEmptyText,
  parseGroups,
  type Profile,
} from '../../../../domain/auth/providers.ts';
import { createSamlClient, type SamlPending } from './samlClient.ts';
import type { SamlConfig } from './samlConfig.ts';

export type SamlVerification = { config: SamlConfig; pending: SamlPending; samlResponse: string };

export type SamlOutcome = { profile: Profile } | { refused: string };

const BEARER = 'urn:oasis:names:tc:SAML:2.0:cm:bearer';
const TRANSIENT = 'urn:oasis:names:tc:SAML:2.0:nameid-format:transient';

/** Verifies a response. Executed in a thread: parsing and signatures of XML are expensive. */
export default async function verifySamlResponse({
  config,
  pending,
  samlResponse,
}: SamlVerification): Promise<SamlOutcome> {
  try {
    const client = await createSamlClient(config, pending);
    const { profile } = await client.validatePostResponseAsync({ SAMLResponse: samlResponse });
    if (!profile) throw new Error('no assertion');
    return { profile: readAssertion(config, pending, profile) };
  } catch (error) {
    return { refused: error instanceof Error ? error.message : 'not a valid response' };
  }
}

type XmlNode = { _?: string; $?: Record<string, string>; [name: string]: unknown };

const children = (node: XmlNode | undefined, name: string): XmlNode[] => {
  const found = node?.[name];
  return Array.isArray(found) ? (found as XmlNode[]) : [];
};

const onlyChild = (node: XmlNode | undefined, name: string): XmlNode | undefined => {
  const found = children(node, name);
  return found.length === 1 ? found[0] : undefined;
};

/** The id of the person at the provider. A transient one is another one at each sign-in. */
function readNameId(assertion: XmlNode | undefined): string {
  const nameId = onlyChild(onlyChild(assertion, 'Subject'), 'NameID');
  if (nameId?.$?.Format === TRANSIENT)
    throw new Error('the NameID is transient, so it identifies nobody; a persistent one is needed');
  return parseExternalId(nameId?._);
}

/** The first end of a session that the provider names (SAML 2.0 Core, 2.7.2), unless it has passed. */
function readSessionEnd(assertion: XmlNode | undefined) {
  const times = children(assertion, 'AuthnStatement')
    .map(({ $: statement }) => statement?.SessionNotOnOrAfter)
    .filter((text) => text !== undefined)
    .map((text) => new Date(text).getTime());
  if (times.length === 0) return {};
  const end = Math.min(...times);
  // Without a tolerance for clocks: the session that it allows would have ended, and the next login be the same.
  if (!(end > Date.now())) throw new Error('the session at the provider has ended');
  return { sessionEndsAt: new Date(end).toISOString() };
}

/**
 * The values of an attribute: providers send several values in one element, or several elements with
 * one name, of which node-saml returns the last.
 */
const attributeValues = (assertion: XmlNode | undefined, name: string): (string | undefined)[] =>
  children(assertion, 'AttributeStatement')
    .flatMap((statement) => children(statement, 'Attribute'))
    .filter(({ $: attribute }) => attribute?.Name === name)
    .flatMap((attribute) => children(attribute, 'AttributeValue'))
    .map(({ _: text }) => text);

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
  const externalId = readNameId(assertion);
  const attribute = (name: string | undefined) =>
    name === undefined ? undefined : attributeValues(assertion, name)[0];
  const username = firstNonEmptyText(attribute(config.usernameAttribute)) ?? externalId;
  return {
    externalId,
    username,
    displayName: firstNonEmptyText(attribute(config.displayNameAttribute)) ?? username,
    email: firstNonEmptyText(attribute(config.emailAttribute)) ?? null,
    groups: parseGroups(attributeValues(assertion, config.groupsAttribute)),
    ...readSessionEnd(assertion),
  };
}
