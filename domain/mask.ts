/** What a secret looks like to everybody; sent back in a change, it keeps the secret. */
export const MASK = '********';
