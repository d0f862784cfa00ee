import { Type, type Static } from 'typebox';
import { PERMISSIONS } from '../../domain/access/permissions.ts';
import { LEVELS } from '../../domain/access/scope.ts';
import { Id, Name, Nullable, Timestamp } from '../http/schemas.ts';

export const PermissionName = Type.Enum([...PERMISSIONS]);

/** The id of a tenant: short and readable. */
export const TenantId = (description?: string) =>
  Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$',
    ...(description !== undefined && { description }),
  });

/** The id of a role: built-in, chosen when it was made, or `rol_…`. */
export const RoleId = Type.String({ pattern: '^[a-z][a-z0-9_-]{1,62}$', examples: ['operator'] });

export const ProviderId = Type.String({ pattern: '^(local|idp_[0-9a-z]{26})$' });

export const RoleRecord = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    builtIn: Type.Boolean(),
    permissions: Type.Array(PermissionName),
    version: Nullable(
      Type.Integer({ description: 'null for a built-in role, which never changes.' }),
    ),
  },
  { title: 'Role', additionalProperties: false },
);
export type RoleRecord = Static<typeof RoleRecord>;

const place = {
  level: Type.Enum([...LEVELS], { description: 'How far it reaches.' }),
  tenantId: Type.String(),
  siteId: Nullable(Type.String()),
  deviceId: Nullable(Type.String()),
};

export const AssignmentRecord = Type.Object(
  {
    id: Id('asg'),
    userId: Id('usr'),
    roleId: Type.String(),
    ...place,
    createdBy: Type.String(),
    createdAt: Timestamp,
  },
  { title: 'Assignment', additionalProperties: false },
);
export type AssignmentRecord = Static<typeof AssignmentRecord>;

export const MappingRecord = Type.Object(
  {
    id: Id('map'),
    providerId: ProviderId,
    externalGroup: Type.String(),
    roleId: Type.String(),
    ...place,
    createdBy: Type.String(),
    createdAt: Timestamp,
  },
  { title: 'ProviderMapping', additionalProperties: false },
);
export type MappingRecord = Static<typeof MappingRecord>;

/** Where a role is given; the narrowest counts, none is the platform. */
export const target = {
  tenantId: Type.Optional(TenantId('A tenant; `platform`, like none at all, reaches everything.')),
  siteId: Type.Optional(Name({ description: 'A site: narrower than its tenant.' })),
  deviceId: Type.Optional(Name({ description: 'A device: narrower than its site.' })),
};

export const UserRecord = Type.Object(
  {
    id: Id('usr'),
    username: Type.String(),
    displayName: Type.String(),
    email: Nullable(Type.String()),
    providerId: Type.String(),
    tenantId: Type.String(),
    enabled: Type.Boolean(),
    mustChangePassword: Type.Boolean(),
    groups: Type.Array(Type.String(), { description: 'At the provider, as of the last login.' }),
    lastLoginAt: Nullable(Timestamp),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'User', additionalProperties: false },
);
export type UserRecord = Static<typeof UserRecord>;

export const UserWithPassword = Type.Object(
  {
    ...UserRecord.properties,
    oneTimePassword: Nullable(
      Type.String({ description: 'For the first login; shown this once.' }),
    ),
  },
  { title: 'UserWithPassword', additionalProperties: false },
);

export const SessionRecord = Type.Object(
  {
    id: Id('ses'),
    tenantId: Type.String({ description: 'Where new records of this session stand.' }),
    current: Type.Boolean(),
    address: Nullable(Type.String()),
    userAgent: Nullable(Type.String()),
    createdAt: Timestamp,
    refreshedAt: Timestamp,
    idleExpiresAt: Timestamp,
    absoluteExpiresAt: Timestamp,
  },
  { title: 'Session', additionalProperties: false },
);
export type SessionRecord = Static<typeof SessionRecord>;

export const CurrentSession = Type.Object(
  {
    ...SessionRecord.properties,
    user: UserRecord,
    permissions: Type.Array(PermissionName, { description: 'Held at least somewhere.' }),
  },
  { title: 'CurrentSession', additionalProperties: false },
);

export const TokenAnswer = Type.Object(
  {
    accessToken: Type.String(),
    refreshToken: Nullable(Type.String({ description: 'null when it went into a cookie.' })),
    tokenType: Type.Literal('Bearer'),
    expiresIn: Type.Integer({ description: 'Seconds until the access token expires.' }),
    user: UserRecord,
  },
  { title: 'Tokens', additionalProperties: false },
);
