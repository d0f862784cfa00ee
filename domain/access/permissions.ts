/** All permissions. A permission is `area:verb`; the contract fixes the names. */
export const PERMISSIONS = [
  'rbac:read',
  'rbac:write',
  'auth:read',
  'auth:write',
  'user:read',
  'user:write',
  'backup:read',
  'backup:write',
  'backup:restore',
  'schedule:read',
  'schedule:write',
  'job:read',
  'job:write',
  'job:cancel',
  'job:impersonate',
  'jobtype:read',
  'jobtype:write',
  'workflow:read',
  'workflow:write',
  'workflow:approve',
  'event:read',
  'webhook:read',
  'webhook:write',
  'webhook:delete',
  'inventory:read',
  'inventory:write',
  'audit:read',
  'audit:archive',
  'hold:read',
  'hold:write',
  'hold:release',
  'metrics:read',
  'secret:read',
  'secret:write',
] as const;

export type Permission = (typeof PERMISSIONS)[number];

/** True for a permission that only allows reading. */
export const isRead = (permission: Permission): boolean => permission.endsWith(':read');

/** Each of these permissions allows reading grants and roles. */
export const RBAC_READERS = ['rbac:read', 'rbac:write'] as const;
