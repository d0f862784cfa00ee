import type { StrangerLimits } from './route.ts';

/** Text that a process has in memory or in a file. */
export const STATIC: StrangerLimits = { bodyBytes: 0, cost: 1 };

/** A few reads or writes in PostgreSQL. A body has a token or a path. */
export const LOOKUP: StrangerLimits = { bodyBytes: 8_192, cost: 2 };

/** The same, for a session that exists. */
export const SESSION: StrangerLimits = { ...LOOKUP, slots: 'session' };

/** A step of a login: a password to verify. The longest password has 6 KiB in JSON. */
export const LOGIN: StrangerLimits = { bodyBytes: 8_192, cost: 5 };

/** A step of a login with a request to an identity provider, which may not answer. */
export const PROVIDER_LOGIN: StrangerLimits = { ...LOGIN, slots: 'provider' };

/** A large document, which is sent in full. */
export const DOCUMENT: StrangerLimits = { bodyBytes: 0, cost: 5 };

/** A SAML response of 200,000 characters in a form, in which `+`, `/` and `=` are escaped. */
export const SAML_RESPONSE: StrangerLimits = { bodyBytes: 262_144, cost: 20 };
