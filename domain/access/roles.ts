import { isRead, PERMISSIONS, type Permission } from './permissions.ts';

/**
 * A named set of permissions, built-in or custom. `jobTypes`: patterns of the job types with the access
 * `granted` that its holders may use; types with the access `open` need none.
 */
export type Role = {
  id: string;
  name: string;
  permissions: ReadonlySet<Permission>;
  jobTypes: readonly string[];
};

const areaOf = (permission: Permission) => permission.slice(0, permission.indexOf(':'));

/** All permissions except the named ones and those of the named areas. */
const allExcept = (
  ...denied: readonly (Permission | 'rbac' | 'auth' | 'user' | 'audit' | 'hold' | 'secret')[]
) => {
  const names = new Set<string>(denied);
  return PERMISSIONS.filter(
    (permission) => !names.has(permission) && !names.has(areaOf(permission)),
  );
};

const role = (
  id: string,
  name: string,
  permissions: readonly Permission[],
  jobTypes: readonly string[] = [],
): Role => ({ id, name, permissions: new Set(permissions), jobTypes });

/** Areas whose records viewers cannot read. */
const NOT_FOR_VIEWERS = new Set([
  'rbac',
  'auth',
  'user',
  'audit',
  'hold',
  'backup',
  'metrics',
  'jobtype',
  'secret',
]);

/** Roles of every installation, by id. Custom roles are rows of the table `roles`. */
export const BUILT_IN_ROLES: ReadonlyMap<string, Role> = new Map(
  [
    role('platform-admin', 'Platform administrator', PERMISSIONS, ['*']),
    role(
      'operator',
      'Operator',
      allExcept(
        'rbac',
        'auth',
        'user',
        'audit',
        'hold',
        'secret',
        'jobtype:write',
        'backup:restore',
        'workflow:approve',
        'job:impersonate',
      ),
    ),
    role('approver', 'Approver', [...viewerReads(), 'workflow:approve']),
    role('auditor', 'Auditor', PERMISSIONS.filter(isRead)),
    role('viewer', 'Viewer', viewerReads()),
  ].map((each) => [each.id, each]),
);

function viewerReads(): Permission[] {
  return PERMISSIONS.filter(
    (permission) => isRead(permission) && !NOT_FOR_VIEWERS.has(areaOf(permission)),
  );
}
