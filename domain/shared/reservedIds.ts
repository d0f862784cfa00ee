/**
 * In the API or the console, a fixed path is at the position of an id, such as `/api/retention/preview` beside
 * `/api/retention/{tenantId}`. A test derives the words from the routes.
 */
export const FIXED_PATHS = ['export', 'new', 'preview'] as const;

/** In filters: without a value. */
const WITHOUT_VALUE = 'none';

/** What no new record has as an id that people choose. */
export const RESERVED_IDS = [...FIXED_PATHS, WITHOUT_VALUE] as const;

/** The start of a pattern that refuses them. */
export const NOT_RESERVED = `(?!(?:${RESERVED_IDS.join('|')})$)`;

/** The end of a rule in words. */
export const NOT_RESERVED_RULE = `not one of ${RESERVED_IDS.join(', ')}`;
