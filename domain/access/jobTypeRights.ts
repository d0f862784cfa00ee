import { coversJobType } from './jobTypePatterns.ts';
import { contains, covers, scopeOf, type ResourceScope, type Rights } from './scope.ts';
import type { TypeAccess } from '../runners/definition.ts';
import { allowsJobType, scopeOfGrant } from './tokenScope.ts';

/** What decides about a job type, besides permissions. */
export type GuardedType = { name: string; access: TypeAccess };

/** The patterns of job types that the roles of a caller have at a resource scope. */
export const jobTypesAt = ({ grants }: Rights, resourceScope: ResourceScope): string[] => [
  ...new Set(
    grants
      .filter(({ role }) => role.jobTypes.length > 0)
      .filter((grant) => contains(scopeOfGrant(grant), resourceScope))
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
  const patterns = covers(scopeOf(rights, 'job:write'), resourceScope)
    ? jobTypesAt(rights, resourceScope)
    : [];
  return ({ name, access }) =>
    allowsJobType(rights, name) &&
    (access === 'open' || patterns.some((pattern) => coversJobType(pattern, name)));
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
