/** Replaces secrets in responses. A client that sends it back in an update keeps the secret. */
export const MASK = '********';
