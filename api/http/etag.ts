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

const TAG = /(?:W\/)?"[^"]*"/;
const TAGS = new RegExp(`^${TAG.source}(?:\\s*,\\s*${TAG.source})*$`);
const OWN_TAG = /^"(\d{1,9})(?:\.\d+)?(?:-[0-9a-f]{16})?"$/;

/**
 * Returns the version that `If-Match` requires; undefined if the header is missing or `*`. Of several tags
 * (RFC 9110, 13.1.1), those that this service did not create, and weak ones, match nothing; the others must name one
 * version, such as those of a record with and without `include`. Errors: `invalid_request`; `version_conflict` if no
 * tag can match.
 */
export function expectedVersion(ifMatch: string | undefined): number | undefined {
  const text = ifMatch?.trim();
  if (text === undefined || text === '*') return undefined;
  if (!TAGS.test(text))
    throw invalidField('header', '/If-Match', 'format', 'must be an entity tag in double quotes');
  const tags = text.match(new RegExp(TAG, 'g')) ?? [];
  const [version, ...others] = new Set(tags.flatMap((tag) => OWN_TAG.exec(tag)?.[1] ?? []));
  if (version === undefined)
    throw new AppError('version_conflict', 'If-Match does not name a version of this record.');
  if (others.length > 0)
    throw invalidField('header', '/If-Match', 'versions', 'must name one version of the record');
  return Number(version);
}
