/** What the API shows instead of a stored secret; sent back, it keeps the secret. */
export const MASK = '********';
