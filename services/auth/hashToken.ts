import { hash } from 'node:crypto';

/** SHA-256: enough for something that cannot be guessed. */
export const hashToken = (token: string): Buffer => hash('sha256', token, 'buffer');
