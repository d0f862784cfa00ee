import { coversJobType } from '../access/jobTypePatterns.ts';
import { jobTypeCheck, mayUseJobType } from '../access/jobTypeRights.ts';
import { allowsJobType } from '../access/tokenScope.ts';
import { covers, isEmpty, scopeOf, type ResourceScope, type Rights } from '../access/scope.ts';
import { permissionsToCreate, permissionsToRun, type JobType } from './jobType.ts';

/** The check of `mayCreateJob` for many types at one resource scope. */
export function jobCreationCheck(
  rights: Rights,
  resourceScope: ResourceScope,
): (type: JobType) => boolean {
  const mayUse = jobTypeCheck(rights, resourceScope);
  return (type) =>
    mayUse(type) &&
    permissionsToCreate(type).every((permission) =>
      covers(scopeOf(rights, permission), resourceScope),
    );
}

/**
 * The check of whether a caller may create jobs of a type at a tenant; of a type with targets, whether
 * each right that such a job needs is held anywhere.
 */
export function jobOfferCheck(rights: Rights, tenantId: string): (type: JobType) => boolean {
  const mayCreate = jobCreationCheck(rights, { tenantId });
  const isNamed = ({ name }: JobType) =>
    rights.grants.some(({ role }) => role.jobTypes.some((each) => coversJobType(each, name)));
  return (type) =>
    type.targets === 'none'
      ? mayCreate(type)
      : allowsJobType(rights, type.name) &&
        (type.access === 'open' || isNamed(type)) &&
        permissionsToCreate(type).every((permission) => !isEmpty(scopeOf(rights, permission)));
}

/** True when rights suffice to create a job of a type at a resource scope. */
export const mayCreateJob = (
  rights: Rights,
  type: JobType,
  resourceScope: ResourceScope,
): boolean => jobCreationCheck(rights, resourceScope)(type);

/** True when rights suffice to run a job, as far as its type leaves that to its caller's rights. */
export const mayRunJob = (rights: Rights, type: JobType, resourceScope: ResourceScope): boolean =>
  mayUseJobType(rights, type, resourceScope) &&
  (type.authorizesItself ||
    permissionsToRun(type).every((permission) =>
      covers(scopeOf(rights, permission), resourceScope),
    ));
