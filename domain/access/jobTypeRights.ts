import { coversJobType } from './jobTypePatterns.ts';
import { covers, scopeOf, type Grant, type ResourceScope, type Rights } from './scope.ts';
import type { TypeAccess } from '../runners/definition.ts';
import { allowsJobType } from './tokenScope.ts';

/** What decides about a job type, besides permissions. */
export type GuardedType = { name: string; access: TypeAccess };

/** True when a grant covers a resource scope. A caller may have thousands of grants. */
const isAt = ({ level, targetId }: Grant, { tenantId, siteId, deviceId }: ResourceScope): boolean =>
  level === 'platform' ||
  (level === 'tenant' && targetId === tenantId) ||
  (level === 'site' && targetId === siteId) ||
  (level === 'device' && targetId === deviceId);

/** The patterns of job types that the roles of a caller have at a resource scope. */
const jobTypesAt = ({ grants }: Rights, resourceScope: ResourceScope): string[] => [
  ...new Set(
    grants
      .filter((grant) => grant.role.jobTypes.length > 0 && isAt(grant, resourceScope))
      .flatMap(({ role }) => role.jobTypes),
  ),
];

/**
 * True when rights name a job type, or each type of a pattern, at a resource scope: a role there
 * names it and, through this or another grant, `job:write` is held there. Neither is worth anything
 * alone, and who has one of them cannot hand it on as if they had both.
 */
export const namesJobType = (
  rights: Rights,
  nameOrPattern: string,
  resourceScope: ResourceScope,
): boolean =>
  covers(scopeOf(rights, 'job:write'), resourceScope) &&
  jobTypesAt(rights, resourceScope).some((pattern) => coversJobType(pattern, nameOrPattern));

/** The check of `mayUseJobType` for many types at one resource scope. */
export function jobTypeCheck(
  rights: Rights,
  resourceScope: ResourceScope,
): (type: GuardedType) => boolean {
  let patterns: string[] | undefined;
  /** Jobs of open types, which are most, do not read the grants. */
  const isNamed = (name: string) => {
    patterns ??= covers(scopeOf(rights, 'job:write'), resourceScope)
      ? jobTypesAt(rights, resourceScope)
      : [];
    return patterns.some((pattern) => coversJobType(pattern, name));
  };
  return ({ name, access }) => allowsJobType(rights, name) && (access === 'open' || isNamed(name));
}

/**
 * True when neither an API token nor the access of the type excludes jobs of it. The permissions that
 * such a job needs are another question.
 */
export const mayUseJobType = (
  rights: Rights,
  type: GuardedType,
  resourceScope: ResourceScope,
): boolean => jobTypeCheck(rights, resourceScope)(type);
