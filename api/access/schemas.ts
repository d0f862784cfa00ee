import { Type, type Static } from 'typebox';
import { PERMISSIONS } from '../../domain/access/permissions.ts';
import { JOB_TYPE_PATTERN } from '../../domain/access/jobTypePatterns.ts';
import { LEVELS } from '../../domain/access/scope.ts';
import { MAX_JOB_TYPE_NAME } from '../../domain/jobs/jobTypeNames.ts';
import {
  accountIn,
  Actor,
  Id,
  Name,
  Nullable,
  ProviderId,
  Reference,
  referenceTo,
  TenantId,
  Timestamp,
} from '../http/schemas.ts';

/** A permission by its name. */
export const PermissionName = Type.Enum([...PERMISSIONS], { title: 'Permission' });

/** A pattern of job types. */
export const JobTypePattern = Type.String({
  pattern: JOB_TYPE_PATTERN,
  maxLength: MAX_JOB_TYPE_NAME,
  'x-rule': 'must be the name of a job type such as core.echo, an area such as inventory.*, or *',
});

/** Id of a role: built-in, chosen at creation, or generated (`rol_…`). */
export const RoleId = Type.String({
  title: 'RoleId',
  pattern: '^[a-z][a-z0-9_-]{1,62}$',
  'x-rule':
    'must be the id of a role: 2 to 63 of a to z, 0 to 9, hyphens and underscores, a letter first',
  examples: ['operator'],
});

export const RoleRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String({ description: 'Name for display.' }),
    builtIn: Type.Boolean({ description: 'Built-in roles cannot be changed or deleted.' }),
    permissions: Type.Array(PermissionName),
    jobTypes: Type.Array(Type.String(), {
      description: 'Patterns of the job types with the access `granted` that the role names.',
    }),
    version: Nullable(
      Type.Integer({ description: 'Number of changes plus one; null for a built-in role.' }),
    ),
  },
  { title: 'Role', additionalProperties: false },
);
export type RoleRecord = Static<typeof RoleRecord>;

const scopeFields = {
  level: Type.Enum([...LEVELS], {
    title: 'ScopeLevel',
    description: 'Level of the scope that the grant covers.',
  }),
  tenantId: Reference('tenants', 'Tenant of the scope; `platform` covers everything.'),
  siteId: Nullable(Reference('sites', 'Site of the scope.')),
  deviceId: Nullable(Reference('devices', 'Device of the scope.')),
};

export const AssignmentRecord = Type.Object(
  {
    id: Id('asg'),
    userId: accountIn(Id('usr')),
    roleId: Reference('roles'),
    ...scopeFields,
    createdBy: Actor('Id of the actor.'),
    createdAt: Timestamp,
  },
  { title: 'Assignment', additionalProperties: false },
);
export type AssignmentRecord = Static<typeof AssignmentRecord>;

export const MappingRecord = Type.Object(
  {
    id: Id('map'),
    providerId: referenceTo('providers', ProviderId),
    externalGroup: Type.String({ description: 'Name of the group at the provider.' }),
    roleId: Reference('roles'),
    ...scopeFields,
    createdBy: Actor('Id of the actor.'),
    createdAt: Timestamp,
  },
  { title: 'ProviderMapping', additionalProperties: false },
);
export type MappingRecord = Static<typeof MappingRecord>;

/** A resource scope in a request. The narrowest id counts; without one it is the platform. */
export const scopeRequest = {
  tenantId: Type.Optional(TenantId('Tenant; `platform`, the default, covers everything.')),
  siteId: Type.Optional(Name({ description: 'Site; covers less than its tenant.' })),
  deviceId: Type.Optional(Name({ description: 'Device; covers less than its site.' })),
};
