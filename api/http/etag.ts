import { createHash } from 'node:crypto';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import type { ResponseHeaders } from './response.ts';

/**
 * Returns the strong entity tag (RFC 9110, 8.8.3) of a record. `revision` distinguishes
 * representations that change without a new version of the record, such as a log or progress.
 */
export const etagOf = (version: number, revision?: number): string =>
  revision === undefined ? `"${version}"` : `"${version}.${revision}"`;

/** Returns the strong entity tag of a text without a version. */
export const etagOfText = (text: string): string =>
  `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`;

/**
 * Adds a digest of what a response contains beside the record to its entity tag, if it has one: it
 * changes without a new version of the record.
 */
export function withContent(headers: ResponseHeaders, content: unknown): ResponseHeaders {
  const { etag } = headers;
  if (typeof etag !== 'string') return headers;
  const digest = createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
  return { ...headers, etag: etag.replace(/"$/, `-${digest}"`) };
}

/**
 * Returns the version that `If-Match` requires; undefined if the header is missing or `*`.
 * Errors: `invalid_request`; `version_conflict` for a tag that this service did not create.
 */
export function expectedVersion(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tag = ifMatch.trim();
  if (!/^(W\/)?"[^"]*"(\s*,\s*(W\/)?"[^"]*")*$/.test(tag)) {
    throw invalidField('header', '/If-Match', 'format', 'must be an entity tag in double quotes');
  }
  const match = /^"(\d{1,9})(\.\d+)?(-[0-9a-f]{16})?"$/.exec(tag);
  if (!match)
    throw new AppError('version_conflict', 'If-Match does not name a version of this record.');
  return Number(match[1]);
}
