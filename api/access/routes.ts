import { Type, type Static } from 'typebox';
import { PERMISSIONS, RBAC_READERS } from '../../domain/access/permissions.ts';
import { MAX_ROLE_JOB_TYPES } from '../../domain/access/jobTypePatterns.ts';
import { LEVELS } from '../../domain/access/scope.ts';
import type { AccessReport } from '../../services/access/report.ts';
import type { Grants } from '../../services/access/grants.ts';
import type { Roles } from '../../services/access/roles.ts';
import { created, noContent, ok } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { listSchema, MAX_LIMIT } from '../http/pagination.ts';
import { route, type Route } from '../http/route.ts';
import { assignmentView, mappingView } from './presenter.ts';
import {
  AssignmentRecord,
  JobTypePattern,
  MappingRecord,
  PermissionName,
  RoleId,
  RoleRecord,
  scopeRequest,
} from './schemas.ts';
import {
  accountIn,
  Actor,
  closed,
  Id,
  Name,
  NewName,
  Nullable,
  ProviderId,
  Reference,
  TenantId,
} from '../http/schemas.ts';

const tag = 'RBAC';

const OneAssignment = Type.Object({ id: Id('asg') }, closed);
const OneMapping = Type.Object({ id: Id('map') }, closed);
const OneRole = Type.Object({ id: RoleId }, closed);

const RecordId = Type.String({
  pattern: '^[a-z]{2,8}_[0-9a-z]{1,64}$',
  'x-rule': 'must be an id such as sit_01jd0cmxk5e5v8kyzwq0q8s3rt',
});
const scopeFilter = {
  tenantId: Type.Optional(TenantId()),
  siteId: Type.Optional(RecordId),
  deviceId: Type.Optional(RecordId),
};

const grantFields = {
  roleId: idField(RoleId),
  tenantId: idField(TenantId()),
  siteId: idField(RecordId, { nullable: true }),
  deviceId: idField(RecordId, { nullable: true }),
  createdAt: timeField(),
};
const ASSIGNMENTS = defineList({
  name: 'assignments',
  id: 'asg',
  item: AssignmentRecord,
  title: 'AssignmentList',
  fields: { userId: idField(Id('usr')), ...grantFields },
});
const MAPPINGS = defineList({
  name: 'mappings',
  id: 'map',
  item: MappingRecord,
  title: 'ProviderMappingList',
  fields: {
    providerId: idField(ProviderId),
    externalGroup: textField({ facet: true }),
    ...grantFields,
  },
});

const AssignmentRequest = Type.Object(
  { userId: Id('usr'), roleId: RoleId, ...scopeRequest },
  { title: 'AssignmentRequest', ...closed },
);
const MappingRequest = Type.Object(
  {
    providerId: ProviderId,
    externalGroup: Name({ description: 'Name of the group at the provider, case-sensitive.' }),
    roleId: RoleId,
    ...scopeRequest,
  },
  { title: 'ProviderMappingRequest', ...closed },
);

const rolePermissions = Type.Array(PermissionName, { minItems: 1, maxItems: PERMISSIONS.length });
const roleJobTypes = Type.Array(JobTypePattern, {
  maxItems: MAX_ROLE_JOB_TYPES,
  description:
    'Patterns of the job types with the access `granted` whose jobs the role allows, together with ' +
    '`job:write` of this or another role at the same scope. Types with the access `open` need none.',
});
const RoleRequest = Type.Object(
  {
    id: Type.Optional(RoleId),
    name: NewName(),
    permissions: rolePermissions,
    jobTypes: Type.Optional(roleJobTypes),
  },
  { title: 'RoleRequest', ...closed },
);
const RoleChange = Type.Object(
  {
    name: Type.Optional(NewName()),
    permissions: Type.Optional(rolePermissions),
    jobTypes: Type.Optional(roleJobTypes),
  },
  { title: 'RoleChange', ...closed },
);

const PermissionScope = Type.Object(
  {
    everywhere: Type.Boolean({ description: 'Held at the platform.' }),
    complete: Type.Boolean({ description: 'false if ids were left out.' }),
    tenantIds: Type.Array(Reference('tenants')),
    siteIds: Type.Array(Reference('sites')),
    deviceIds: Type.Array(Reference('devices')),
  },
  { title: 'PermissionScope' },
);
const HeldRole = Type.Object(
  {
    roleId: Reference('roles'),
    name: Type.String(),
    level: Type.Enum([...LEVELS], { title: 'GrantLevel' }),
    tenantId: Reference('tenants'),
    siteId: Nullable(Reference('sites')),
    deviceId: Nullable(Reference('devices')),
  },
  { title: 'HeldRole', ...closed },
);
const byPermission = <S extends Parameters<typeof Type.Record>[1]>(schema: S) =>
  Type.Record(Type.String(), schema);
const Summary = Type.Object(
  {
    actorId: Actor('Id of the caller.'),
    tenantId: Reference('tenants', 'Tenant of the caller.'),
    can: byPermission(Type.Boolean({ description: "Held at the caller's tenant." })),
    permissions: byPermission(PermissionScope),
    roles: Type.Array(HeldRole, {
      description: 'Roles that the caller holds, and where: the reasons of the permissions.',
    }),
    rolesComplete: Type.Boolean({ description: 'false if roles were left out.' }),
  },
  { title: 'PermissionSummary', ...closed },
);
export type PermissionSummary = Static<typeof Summary>;

const Overview = Type.Object(
  {
    roles: Type.Array(RoleRecord),
    permissions: Type.Array(PermissionName),
    assignments: Type.Array(AssignmentRecord),
    mappings: Type.Array(MappingRecord),
    nextCursors: Type.Object(
      { assignments: Nullable(Type.String()), mappings: Nullable(Type.String()) },
      {
        description: 'Cursors for the next pages of assignments and mappings.',
      },
    ),
  },
  { title: 'RbacOverview', ...closed },
);
export type RbacOverview = Static<typeof Overview>;

const ExplainQuery = Type.Object(
  {
    userId: Id('usr'),
    permission: PermissionName,
    jobType: Type.Optional(
      Name({
        description:
          'With `job:write`: a job type. If its access is `granted`, a role must name it, too.',
      }),
    ),
    ...scopeFilter,
  },
  closed,
);
const ExplainedGrant = Type.Object(
  {
    id: Type.String(),
    kind: Type.Enum(['assignment', 'mapping']),
    roleId: Reference('roles'),
    level: Type.String(),
    tenantId: Reference('tenants'),
    siteId: Nullable(Reference('sites')),
    deviceId: Nullable(Reference('devices')),
  },
  { title: 'ExplainedGrant' },
);
const ExplainResponse = Type.Object(
  {
    allowed: Type.Boolean({ description: 'Whether the user holds the permission there.' }),
    reason: Type.String({ description: 'Explanation for people.' }),
    userId: accountIn(Type.String()),
    permission: PermissionName,
    resourceScope: Type.Object({
      tenantId: Reference('tenants'),
      siteId: Nullable(Reference('sites')),
      deviceId: Nullable(Reference('devices')),
    }),
    grants: Type.Array(ExplainedGrant),
    jobTypeGrants: Type.Optional(
      Type.Array(ExplainedGrant, {
        description: 'With `jobType`: the grants whose roles name it.',
      }),
    ),
  },
  { title: 'Explanation', ...closed },
);
export type Explanation = Static<typeof ExplainResponse>;

type Deps = { grants: Grants; roles: Roles; accessReport: AccessReport };

/** Routes of role-based access control. */
export function rbacRoutes({ grants, roles, accessReport }: Deps): Route[] {
  return [
    ...reportRoutes({ grants, roles, accessReport }),
    ...assignmentRoutes(grants),
    ...mappingRoutes(grants),
    ...roleRoutes(roles),
  ];
}

function reportRoutes({ grants, roles, accessReport }: Deps): Route[] {
  const first = { limit: MAX_LIMIT };
  return [
    route({
      method: 'GET',
      path: '/api/rbac',
      operationId: 'getRbac',
      tag,
      permission: RBAC_READERS,
      summary: 'Get roles, permissions and the newest assignments and mappings',
      responses: { 200: Overview },
      handle: async ({ caller }) => {
        const [allRoles, assigned, mapped] = await Promise.all([
          roles.list(),
          ASSIGNMENTS.page(
            first,
            (request) => grants.list(caller, 'assignment', request),
            assignmentView,
          ),
          MAPPINGS.page(first, (request) => grants.list(caller, 'mapping', request), mappingView),
        ]);
        return ok({
          roles: allRoles,
          permissions: PERMISSIONS,
          assignments: assigned.items,
          mappings: mapped.items,
          nextCursors: { assignments: assigned.nextCursor, mappings: mapped.nextCursor },
        });
      },
    }),
    route({
      method: 'GET',
      path: '/api/rbac/summary',
      operationId: 'getPermissionSummary',
      tag,
      signedIn: 'it returns the permissions of the caller',
      allowsOneTimePassword: true,
      summary: "Get the caller's permissions and where they hold",
      responses: { 200: Summary },
      handle: ({ caller }) => {
        const permissions = accessReport.summary(caller);
        const { roles, complete } = accessReport.heldRoles(caller);
        const can = Object.fromEntries(
          PERMISSIONS.map((permission) => [
            permission,
            accessReport.holdsAtTenant(caller, permission),
          ]),
        );
        return Promise.resolve(
          ok({
            actorId: caller.actorId,
            tenantId: caller.tenantId,
            can,
            permissions,
            roles,
            rolesComplete: complete,
          }),
        );
      },
    }),
    route({
      method: 'GET',
      path: '/api/rbac/explain',
      operationId: 'explainPermission',
      tag,
      permission: RBAC_READERS,
      summary: 'Explain whether and why a user holds a permission',
      query: ExplainQuery,
      expensiveRead: {},
      responses: { 200: ExplainResponse },
      problems: [404],
      handle: async ({ caller, query: { userId, permission, jobType, ...at } }) => {
        const asked = { permission, ...(jobType !== undefined && { jobType }) };
        const {
          allowed,
          reason,
          resourceScope,
          grants: found,
          jobTypeGrants,
        } = await accessReport.explain(caller, userId, asked, at);
        return ok({
          allowed,
          reason,
          userId,
          permission,
          resourceScope: {
            tenantId: resourceScope.tenantId,
            siteId: resourceScope.siteId ?? null,
            deviceId: resourceScope.deviceId ?? null,
          },
          grants: found,
          ...(jobTypeGrants && { jobTypeGrants }),
        });
      },
    }),
  ];
}

function assignmentRoutes(grants: Grants): Route[] {
  const createdResponse = (grant: Parameters<typeof assignmentView>[0]) =>
    created(`/api/rbac/assignments/${grant.id}`, assignmentView(grant));
  return [
    route({
      method: 'GET',
      path: '/api/rbac/assignments',
      operationId: 'listAssignments',
      tag,
      permission: RBAC_READERS,
      summary: 'List role assignments',
      query: ASSIGNMENTS.query,
      responses: { 200: ASSIGNMENTS.schema },
      handle: ({ caller, query }) =>
        ASSIGNMENTS.respond(
          query,
          (request) => grants.list(caller, 'assignment', request),
          assignmentView,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/rbac/assignments',
      operationId: 'createAssignment',
      tag,
      permission: 'rbac:write',
      summary: 'Assign a role to a user',
      description: 'The caller must hold every permission of the role at the same scope.',
      body: AssignmentRequest,
      example: { userId: 'usr_01k8qzj3m5x7c9v1b3n5m7q9w1', roleId: 'operator', tenantId: 'red' },
      responses: { 201: AssignmentRecord },
      replayResponse: async (caller, id) =>
        createdResponse(await grants.read(caller, 'assignment', id)),
      handle: async ({ caller, body: { userId, roleId, ...at } }) =>
        createdResponse(await grants.create(caller, { userId }, roleId, at)),
    }),
    route({
      method: 'GET',
      path: '/api/rbac/assignments/{id}',
      operationId: 'getAssignment',
      tag,
      permission: RBAC_READERS,
      summary: 'Get a role assignment',
      params: OneAssignment,
      responses: { 200: AssignmentRecord },
      handle: async ({ caller, params }) =>
        ok(assignmentView(await grants.read(caller, 'assignment', params.id))),
    }),
    route({
      method: 'DELETE',
      path: '/api/rbac/assignments/{id}',
      operationId: 'deleteAssignment',
      tag,
      permission: 'rbac:write',
      summary: 'Delete a role assignment',
      params: OneAssignment,
      responses: { 204: null },
      handle: async ({ caller, params }) => {
        await grants.remove(caller, 'assignment', params.id);
        return noContent();
      },
    }),
  ];
}

function mappingRoutes(grants: Grants): Route[] {
  const createdResponse = (grant: Parameters<typeof mappingView>[0]) =>
    created(`/api/rbac/provider-mappings/${grant.id}`, mappingView(grant));
  return [
    route({
      method: 'GET',
      path: '/api/rbac/provider-mappings',
      operationId: 'listProviderMappings',
      tag,
      permission: RBAC_READERS,
      summary: 'List provider mappings',
      query: MAPPINGS.query,
      responses: { 200: MAPPINGS.schema },
      handle: ({ caller, query }) =>
        MAPPINGS.respond(query, (request) => grants.list(caller, 'mapping', request), mappingView),
    }),
    route({
      method: 'POST',
      path: '/api/rbac/provider-mappings',
      operationId: 'createProviderMapping',
      tag,
      permission: 'rbac:write',
      summary: 'Map a group of an identity provider to a role',
      description: 'The caller must hold every permission of the role at the same scope.',
      body: MappingRequest,
      example: {
        providerId: 'idp_01k8qzj3m5x7c9v1b3n5m7q9w1',
        externalGroup: 'net-admins',
        roleId: 'operator',
        tenantId: 'red',
      },
      responses: { 201: MappingRecord },
      replayResponse: async (caller, id) =>
        createdResponse(await grants.read(caller, 'mapping', id)),
      handle: async ({ caller, body: { providerId, externalGroup, roleId, ...at } }) =>
        createdResponse(await grants.create(caller, { providerId, externalGroup }, roleId, at)),
    }),
    route({
      method: 'GET',
      path: '/api/rbac/provider-mappings/{id}',
      operationId: 'getProviderMapping',
      tag,
      permission: RBAC_READERS,
      summary: 'Get a provider mapping',
      params: OneMapping,
      responses: { 200: MappingRecord },
      handle: async ({ caller, params }) =>
        ok(mappingView(await grants.read(caller, 'mapping', params.id))),
    }),
    route({
      method: 'DELETE',
      path: '/api/rbac/provider-mappings/{id}',
      operationId: 'deleteProviderMapping',
      tag,
      permission: 'rbac:write',
      summary: 'Delete a provider mapping',
      params: OneMapping,
      responses: { 204: null },
      handle: async ({ caller, params }) => {
        await grants.remove(caller, 'mapping', params.id);
        return noContent();
      },
    }),
  ];
}

function roleRoutes(roles: Roles): Route[] {
  const createdResponse = (role: Awaited<ReturnType<Roles['create']>>) =>
    created(`/api/rbac/roles/${role.id}`, role);
  return [
    route({
      method: 'GET',
      path: '/api/rbac/roles',
      operationId: 'listRoles',
      tag,
      permission: RBAC_READERS,
      summary: 'List roles, built-in roles first',
      responses: { 200: listSchema(RoleRecord, 'RoleList') },
      handle: async () => ok({ items: await roles.list(), nextCursor: null }),
    }),
    route({
      method: 'POST',
      path: '/api/rbac/roles',
      operationId: 'createRole',
      tag,
      permission: 'rbac:write',
      summary: 'Create a custom role',
      description:
        'The caller must hold its permissions at the platform, and may use the job types that it names ' +
        'there.',
      body: RoleRequest,
      example: { id: 'job-runner', name: 'Job runner', permissions: ['job:read', 'job:write'] },
      responses: { 201: RoleRecord },
      replayResponse: async (_caller, id) => createdResponse(await roles.read(id)),
      handle: async ({ caller, body }) => createdResponse(await roles.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/rbac/roles/{id}',
      operationId: 'getRole',
      tag,
      permission: RBAC_READERS,
      summary: 'Get a role',
      params: OneRole,
      responses: { 200: RoleRecord },
      handle: async ({ params }) => ok(await roles.read(params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/rbac/roles/{id}',
      operationId: 'updateRole',
      tag,
      permission: 'rbac:write',
      summary: 'Update a custom role',
      description: 'Takes effect immediately for everyone who has the role.',
      params: OneRole,
      body: RoleChange,
      example: { permissions: ['job:read'] },
      responses: { 200: RoleRecord },
      headers: ['If-Match'],
      current: ({ params }) => roles.read(params.id),
      handle: async ({ caller, params, body, ifMatch }) =>
        ok(await roles.update(caller, params.id, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: '/api/rbac/roles/{id}',
      operationId: 'deleteRole',
      tag,
      permission: 'rbac:write',
      summary: 'Delete a custom role without grants',
      params: OneRole,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await roles.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
  ];
}
