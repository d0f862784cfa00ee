/** The lists of the area, in the order in which they are shown, with the permissions to read them. */
export const ACCESS_VIEWS = [
  { to: '/access/users', label: 'Users', permissions: ['user:read'] },
  { to: '/access/service-accounts', label: 'Service accounts', permissions: ['user:read'] },
  { to: '/access/tokens', label: 'Tokens', permissions: ['user:read'] },
  { to: '/access/roles', label: 'Roles', permissions: ['rbac:read', 'rbac:write'] },
  { to: '/access/assignments', label: 'Assignments', permissions: ['rbac:read', 'rbac:write'] },
  { to: '/access/mappings', label: 'Group mappings', permissions: ['rbac:read', 'rbac:write'] },
  { to: '/access/providers', label: 'Identity providers', permissions: ['auth:read'] },
  { to: '/access/explain', label: 'Why can …', permissions: ['rbac:read', 'rbac:write'] },
] as const;

export type AccessView = (typeof ACCESS_VIEWS)[number]['to'];

/** What reads grants and roles: each of these permissions. */
export const RBAC_READERS = ['rbac:read', 'rbac:write'] as const;
