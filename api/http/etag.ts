import { hash } from 'node:crypto';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import type { HttpResponse } from './response.ts';

/** True for a body that is one record: it has a version, which `If-Match` can require. */
const isRecord = (body: unknown): body is { version: number } =>
  typeof body === 'object' && body !== null && 'version' in body && Number.isInteger(body.version);

/**
 * Returns the strong entity tag (RFC 9110, 8.8.3) of a response with one record: the version, which
 * `If-Match` reads, and a digest of the text that is sent, since much of it changes without a new
 * version. Undefined for other responses. A digest of a secret is nothing that may be logged.
 */
export function etagOfRecord(
  { body, containsSecret, taggedAs }: Pick<HttpResponse, 'body' | 'containsSecret' | 'taggedAs'>,
  text: string,
): string | undefined {
  if (!isRecord(body)) return undefined;
  if (containsSecret) return `"${body.version}"`;
  const tagged = taggedAs === undefined ? text : JSON.stringify(taggedAs);
  return `"${body.version}-${hash('sha256', tagged, 'hex').slice(0, 16)}"`;
}

/** Returns the strong entity tag of a text without a version. */
export const etagOfText = (text: string): string =>
  `"${hash('sha256', text, 'base64url').slice(0, 22)}"`;

const TAG = /(?:W\/)?"[^"]*"/;
const TAGS = new RegExp(`^${TAG.source}(?:\\s*,\\s*${TAG.source})*$`);
/**
 * A tag of ours, also as a proxy changes it that compresses: nginx makes it weak, Apache adds the encoding.
 * until 0.4: remove `.` and the number, which versions before 0.3.0 added to some tags.
 */
const OWN_TAG = /^(?:W\/)?"(\d{1,9})(?:\.\d+)?(?:-[0-9a-f]{16})?(?:-(?:br|gzip))?"$/;

/**
 * Returns the version that `If-Match` requires; undefined if the header is missing or `*`. In a list of tags
 * (RFC 9110, 13.1.1), those that this service did not create match nothing; the others must name one version, such as
 * those of a record with and without `include`. Only the version counts, so that a weak tag names it as well (ADR 79).
 * Errors: `invalid_request`; `version_conflict` if no tag can match.
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
