import { AppError, invalidField } from '../../domain/shared/errors.ts';

/**
 * The strong entity tag (RFC 9110, 8.8.3) of a record. `part` is added where the representation has parts that
 * change without a new version, such as a log or progress.
 */
export const etagOf = (version: number, part?: number): string =>
  part === undefined ? `"${version}"` : `"${version}.${part}"`;

/**
 * The version that `If-Match` asks for: undefined when there is no such header or it is `*`.
 * Errors: `invalid_request`; `version_stale` for tags that are no tags of ours, which match nothing.
 */
export function expectedVersion(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  const tag = ifMatch.trim();
  if (!/^(W\/)?"[^"]*"(\s*,\s*(W\/)?"[^"]*")*$/.test(tag)) {
    throw invalidField('header', '/If-Match', 'format', 'must be an entity tag in double quotes');
  }
  const found = /^"(\d{1,9})(\.\d+)?"$/.exec(tag);
  if (!found) throw new AppError('version_stale', 'If-Match names no version of this record.');
  return Number(found[1]);
}
