import { Type, type Static } from 'typebox';
import { PermissionName } from '../access/schemas.ts';
import { Id, Nullable, Reference, Timestamp } from '../http/schemas.ts';

export const UserRecord = Type.Object(
  {
    id: Id('usr'),
    username: Type.String({ description: 'Name to sign in with.' }),
    displayName: Type.String({ description: 'Name for display.' }),
    email: Nullable(Type.String({ description: 'E-mail address.' })),
    providerId: Reference('providers', '`local`, or the id of the identity provider.'),
    tenantId: Reference('tenants', 'Tenant that the user belongs to.'),
    enabled: Type.Boolean({ description: 'Disabled users cannot sign in.' }),
    mustChangePassword: Type.Boolean({
      description:
        'The password must be changed before anything else: a one-time password, valid for 72 hours after it was set.',
    }),
    passwordExpiresAt: Type.Union([Timestamp, Type.Null()], {
      description: 'Until when the one-time password is valid; null when there is none.',
    }),
    groups: Type.Array(Type.String(), {
      description: 'Groups at the identity provider, as of the last login.',
    }),
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
      Type.String({
        description:
          'Generated one-time password, valid for 72 hours; returned only in this response.',
      }),
    ),
  },
  { title: 'UserWithPassword', additionalProperties: false },
);
export type UserWithPassword = Static<typeof UserWithPassword>;

export const SessionRecord = Type.Object(
  {
    id: Id('ses'),
    tenantId: Reference('tenants', 'Tenant that new records of this session belong to.'),
    current: Type.Boolean({ description: 'Whether the request was made with this session.' }),
    address: Nullable(Type.String({ description: 'Client address at the login.' })),
    userAgent: Nullable(Type.String({ description: 'User-Agent header at the login.' })),
    createdAt: Timestamp,
    refreshedAt: Type.String({ format: 'date-time', description: 'Time of the last refresh.' }),
    idleExpiresAt: Type.String({
      format: 'date-time',
      description: 'When the session ends without a refresh.',
    }),
    absoluteExpiresAt: Type.String({
      format: 'date-time',
      description: 'When the session ends at the latest.',
    }),
  },
  { title: 'Session', additionalProperties: false },
);
export type SessionRecord = Static<typeof SessionRecord>;

export const CurrentSession = Type.Object(
  {
    ...SessionRecord.properties,
    user: UserRecord,
    permissions: Type.Array(PermissionName, {
      description: 'Permissions held in at least one scope.',
    }),
  },
  { title: 'CurrentSession', additionalProperties: false },
);
export type CurrentSession = Static<typeof CurrentSession>;

export const TokenResponse = Type.Object(
  {
    accessToken: Type.String({ description: 'For `Authorization: Bearer`.' }),
    refreshToken: Nullable(Type.String({ description: 'null if it was set as a cookie.' })),
    tokenType: Type.Literal('Bearer'),
    expiresIn: Type.Integer({ description: 'Seconds until the access token expires.' }),
    refreshExpiresIn: Type.Integer({
      description: 'Seconds until the session ends, unless it is refreshed before.',
    }),
    user: UserRecord,
  },
  { title: 'Tokens', additionalProperties: false },
);
export type TokenResponse = Static<typeof TokenResponse>;
