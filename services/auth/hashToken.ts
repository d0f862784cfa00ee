import { createHash, randomBytes } from 'node:crypto';

/** The prefixes let scanners for leaked secrets recognise a token. */
const PREFIXES = {
  access: 'hfa_',
  refresh: 'hfr_',
  state: 'hfs_',
  browser: 'hfb_',
  ticket: 'hfc_',
} as const;

/** 256 random bits, base64url. Only its hash is kept. */
export function newToken(kind: keyof typeof PREFIXES): { token: string; hash: Buffer } {
  const token = PREFIXES[kind] + randomBytes(32).toString('base64url');
  return { token, hash: hashToken(token) };
}

/** SHA-256: enough for something that cannot be guessed. */
export const hashToken = (token: string): Buffer => createHash('sha256').update(token).digest();
