/**
 * The id of a tenant wherever one is named. Gateways name tenants by ids of their own, so this is wider
 * than what a new record of a tenant may have (`newSlug`): each of those must be accepted here.
 */
export const TENANT_ID = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$';

/** Most characters of the id of a tenant. */
export const MAX_TENANT_ID = 64;

export const TENANT_ID_RULE = `must be the id of a tenant: 1 to ${MAX_TENANT_ID} letters, digits, dots, hyphens and underscores, a letter or digit first`;
