import { randomBytes } from 'node:crypto';
import { hashToken } from './hashToken.ts';

/** The secrets of sign-ins and sessions. The prefixes let scanners for leaked secrets recognise them. */
const PREFIXES = {
  access: 'hfa_',
  refresh: 'hfr_',
  state: 'hfs_',
  browser: 'hfb_',
  ticket: 'hfc_',
} as const;

/** 256 random bits, base64url. Only its hash is kept. */
export function newLoginSecret(kind: keyof typeof PREFIXES): { token: string; hash: Buffer } {
  const token = PREFIXES[kind] + randomBytes(32).toString('base64url');
  return { token, hash: hashToken(token) };
}
