import { createHash } from 'node:crypto';

/** SHA-256: enough for something that cannot be guessed. */
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest();
