import { Type, type Static } from 'typebox';
import { PERMISSIONS } from '../../domain/access/permissions.ts';
import { TOKEN_KINDS } from '../../domain/auth/tokenText.ts';
import {
  MAX_JOB_TYPES,
  MAX_NETWORKS,
  MAX_OVERLAP_SECONDS,
  MAX_RESOURCE_SCOPES,
  MAX_TOKEN_POOLS,
  TOKEN_STATUSES,
} from '../../domain/auth/tokens.ts';
import { JobTypePattern, PermissionName, scopeRequest } from '../access/schemas.ts';
import { POOL_NAME } from '../../domain/runners/definition.ts';
import {
  accountIn,
  Actor,
  closed,
  Id,
  NewName,
  Nullable,
  Reference,
  TenantId,
  Timestamp,
} from '../http/schemas.ts';

const Network = Type.String({ minLength: 1, maxLength: 64, examples: ['10.20.0.0/16'] });

const expiresAt = Type.String({
  format: 'date-time',
  examples: ['2027-02-01T00:00:00.000Z'],
});

/** What a token may do at most; a missing field and null are no limit. */
const limits = {
  permissions: Type.Optional(
    Nullable(
      Type.Array(PermissionName, {
        minItems: 1,
        maxItems: PERMISSIONS.length,
        description: 'Permissions that the token has, if its owner has them. Null: all.',
      }),
    ),
  ),
  resourceScopes: Type.Optional(
    Nullable(
      Type.Array(
        // An empty one would be no limit for the tenant `platform`.
        Type.Object(scopeRequest, {
          title: 'TokenResourceScopeRequest',
          ...closed,
          minProperties: 1,
        }),
        {
          minItems: 1,
          maxItems: MAX_RESOURCE_SCOPES,
          description:
            'Tenants, sites and devices where the token works. Null: wherever its owner does.',
        },
      ),
    ),
  ),
  jobTypes: Type.Optional(
    Nullable(
      Type.Array(JobTypePattern, {
        minItems: 1,
        maxItems: MAX_JOB_TYPES,
        description: 'Types of the jobs that the token creates. Null: all.',
      }),
    ),
  ),
  allowedNetworks: Type.Optional(
    Nullable(
      Type.Array(Network, {
        minItems: 1,
        maxItems: MAX_NETWORKS,
        description: 'CIDRs of the clients that may use the token. Null: all.',
      }),
    ),
  ),
  requestsPerMinute: Type.Optional(
    Nullable(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          'Requests a minute that each process accepts. Null: `HOLDFAST_TOKEN_REQUESTS_PER_MINUTE`, which is also the most.',
      }),
    ),
  ),
  readOnly: Type.Optional(
    Type.Boolean({ description: 'Only permissions that read, and only requests that read.' }),
  ),
};

export const TokenRequest = Type.Object(
  {
    name: NewName({ description: 'What uses the token.' }),
    ...limits,
    tenantId: Type.Optional(
      TenantId(
        'Tenant of requests without `X-Service-Tenant-Id`. By default that of `resourceScopes`, else as for a session.',
      ),
    ),
    expiresAt: Type.Optional(
      Type.String({
        ...expiresAt,
        description: 'By default in 90 days; at most `HOLDFAST_TOKEN_MAX_DAYS` ahead.',
      }),
    ),
  },
  { title: 'TokenRequest', ...closed },
);

/** A token of a service account can be one of runners. */
export const ServiceTokenRequest = Type.Object(
  {
    ...TokenRequest.properties,
    pools: Type.Optional(
      Type.Array(Type.String({ pattern: POOL_NAME, 'x-rule': 'must be the name of a pool' }), {
        minItems: 1,
        maxItems: MAX_TOKEN_POOLS,
        description:
          'Makes a token of runners: it takes jobs of these pools, and can do nothing else. Needs `jobtype:write` at the platform.',
      }),
    ),
  },
  { title: 'ServiceTokenRequest', ...closed },
);

export const TokenChange = Type.Object(
  {
    name: Type.Optional(NewName()),
    ...limits,
    expiresAt: Type.Optional(
      Type.String({ ...expiresAt, description: 'Not later than at present.' }),
    ),
  },
  { title: 'TokenChange', ...closed },
);

export const RotationRequest = Type.Object(
  {
    overlapSeconds: Type.Integer({
      minimum: 0,
      maximum: MAX_OVERLAP_SECONDS,
      default: 0,
      description: 'How long the present secret stays valid beside the new one.',
    }),
  },
  { title: 'TokenRotation', ...closed },
);

const LocatedScope = Type.Object(
  {
    tenantId: Reference('tenants'),
    siteId: Nullable(Reference('sites')),
    deviceId: Nullable(Reference('devices')),
  },
  { title: 'TokenResourceScope', ...closed },
);

export const TokenRecord = Type.Object(
  {
    id: Id('tok'),
    kind: Type.Enum([...TOKEN_KINDS], { title: 'TokenKind' }),
    userId: accountIn(
      Type.String({ description: 'The user or service account that it belongs to.' }),
    ),
    tenantId: Reference('tenants', 'Tenant of its owner.'),
    name: Type.String(),
    status: Type.Enum([...TOKEN_STATUSES], {
      title: 'TokenStatus',
      description: '`disabled`: it was neither used nor rotated for 90 days.',
    }),
    permissions: Nullable(Type.Array(PermissionName)),
    resourceScopes: Nullable(Type.Array(LocatedScope)),
    jobTypes: Nullable(Type.Array(Type.String())),
    pools: Nullable(
      Type.Array(Type.String(), {
        description: 'The pools of a token of runners; null for others.',
      }),
    ),
    readOnly: Type.Boolean(),
    allowedNetworks: Nullable(Type.Array(Type.String())),
    requestsPerMinute: Nullable(Type.Integer()),
    requestTenantId: Reference('tenants', 'Tenant of requests without `X-Service-Tenant-Id`.'),
    expiresAt: Timestamp,
    rotatedAt: Nullable(Timestamp),
    previousValidUntil: Nullable(
      Type.String({
        format: 'date-time',
        description: 'Until when the secret before the last rotation is valid.',
      }),
    ),
    lastUsedAt: Nullable(
      Type.String({ format: 'date-time', description: 'To the minute, a few seconds later.' }),
    ),
    lastUsedAddress: Nullable(Type.String()),
    disabledAt: Nullable(Timestamp),
    revokedAt: Nullable(Timestamp),
    revokedBy: Nullable(Actor()),
    createdBy: Actor(),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'Token', ...closed },
);
export type TokenRecord = Static<typeof TokenRecord>;

export const TokenWithSecret = Type.Object(
  {
    ...TokenRecord.properties,
    token: Nullable(
      Type.String({
        description:
          'The token, for `Authorization: Bearer`; only in this response, null in a repeated one.',
      }),
    ),
  },
  { title: 'TokenWithSecret', ...closed },
);
export type TokenWithSecret = Static<typeof TokenWithSecret>;

export const CurrentToken = Type.Object(
  {
    ...TokenRecord.properties,
    heldPermissions: Type.Array(PermissionName, {
      description: 'Permissions that the token has in at least one scope now.',
    }),
  },
  { title: 'CurrentToken', ...closed },
);
export type CurrentToken = Static<typeof CurrentToken>;

export const ServiceAccountRecord = Type.Object(
  {
    id: Id('usr'),
    name: Type.String({ description: 'Unique in the tenant, case-insensitive.' }),
    displayName: Type.String({ description: 'Name for display.' }),
    ownerId: Nullable(
      accountIn(Type.String({ description: 'The user who is responsible for the account.' })),
    ),
    tenantId: Reference('tenants', 'Tenant that the account belongs to.'),
    enabled: Type.Boolean({ description: 'The tokens of a disabled account are refused.' }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'ServiceAccount', ...closed },
);
export type ServiceAccountRecord = Static<typeof ServiceAccountRecord>;
