/**
 * What no new record has as an id that people choose: in the API or the console, a fixed path is at the position of
 * the id, such as `/api/retention/preview` beside `/api/retention/{tenantId}`. A test derives the words from the routes.
 */
export const RESERVED_IDS = ['export', 'new', 'preview'] as const;

/** The start of a pattern that refuses them. */
export const NOT_RESERVED = `(?!(?:${RESERVED_IDS.join('|')})$)`;

/** The end of a rule in words. */
export const NOT_RESERVED_RULE = `not one of ${RESERVED_IDS.join(', ')}`;
