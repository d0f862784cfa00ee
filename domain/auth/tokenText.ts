import { crc32 } from 'node:zlib';

/** Whose token it is: a person's, a service account's, or that of runners, which a service account owns. */
export const TOKEN_KINDS = ['personal', 'service', 'runner'] as const;
export type TokenKind = (typeof TOKEN_KINDS)[number];

const PREFIXES: Readonly<Record<TokenKind, string>> = {
  personal: 'hft_',
  service: 'hfv_',
  runner: 'hfw_',
};

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 62 ^ 43 is more than 2 ^ 256, and 62 ^ 6 more than 2 ^ 32. */
const SECRET_DIGITS = 43;
const CHECKSUM_DIGITS = 6;

const PREFIX = new RegExp(`^(?:${Object.values(PREFIXES).join('|')})`);
const TOKEN = new RegExp(
  `^(?:${Object.values(PREFIXES).join('|')})[0-9A-Za-z]{${SECRET_DIGITS + CHECKSUM_DIGITS}}$`,
);

/** A number in base 62, with leading zeros. */
function base62(value: bigint, digits: number): string {
  let text = '';
  for (let rest = value; text.length < digits; rest /= 62n)
    text = `${DIGITS[Number(rest % 62n)]}${text}`;
  return text;
}

const checksumOf = (text: string): string => base62(BigInt(crc32(text)), CHECKSUM_DIGITS);

/**
 * The text of an API token: a prefix by kind, 256 random bits in base 62, and the CRC-32 of both in
 * base 62, so that scanners for leaked secrets recognise it without asking. `secret` has 32 bytes.
 */
export function tokenText(kind: TokenKind, secret: Buffer): string {
  const text = PREFIXES[kind] + base62(BigInt(`0x${secret.toString('hex')}`), SECRET_DIGITS);
  return text + checksumOf(text);
}

/** True for a text that claims to be an API token, not one of a session. */
export const isTokenText = (text: string): boolean => PREFIX.test(text);

/** True for a text of the right form with the right checksum. */
export const hasValidChecksum = (text: string): boolean =>
  TOKEN.test(text) && text.endsWith(checksumOf(text.slice(0, -CHECKSUM_DIGITS)));
