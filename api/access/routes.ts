import { Type } from 'typebox';
import { PERMISSIONS } from '../../domain/access/permissions.ts';
import type { AccessReport } from '../../services/accessReport.ts';
import type { GrantFilter, Grants } from '../../services/access/grants.ts';
import type { Roles } from '../../services/access/roles.ts';
import { created, noContent, ok } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { listAnswer, listOf, MAX_LIMIT, pageOf, pageQuery } from '../http/pagination.ts';
import { route, type Route } from '../kit/route.ts';
import { assignmentView, mappingView } from './presenter.ts';
import {
  AssignmentRecord,
  MappingRecord,
  PermissionName,
  ProviderId,
  RoleId,
  RoleRecord,
  target,
  TenantId,
} from './schemas.ts';
import { Id, Name, Nullable } from '../http/schemas.ts';

const area = 'RBAC';
const closed = { additionalProperties: false };

const OneAssignment = Type.Object({ id: Id('asg') }, closed);
const OneMapping = Type.Object({ id: Id('map') }, closed);
const OneRole = Type.Object({ id: RoleId }, closed);

const placeFilter = {
  tenantId: Type.Optional(TenantId()),
  siteId: Type.Optional(Name()),
  deviceId: Type.Optional(Name()),
};

const AssignmentQuery = Type.Object(
  { userId: Type.Optional(Id('usr')), roleId: Type.Optional(RoleId), ...placeFilter, ...pageQuery },
  closed,
);
const MappingQuery = Type.Object(
  {
    providerId: Type.Optional(ProviderId),
    externalGroup: Type.Optional(Name()),
    roleId: Type.Optional(RoleId),
    ...placeFilter,
    ...pageQuery,
  },
  closed,
);

const AssignmentRequest = Type.Object(
  { userId: Id('usr'), roleId: RoleId, ...target },
  { title: 'AssignmentRequest', ...closed },
);
const MappingRequest = Type.Object(
  {
    providerId: ProviderId,
    externalGroup: Name({ description: 'As the provider names the group, case included.' }),
    roleId: RoleId,
    ...target,
  },
  { title: 'ProviderMappingRequest', ...closed },
);

const rolePermissions = Type.Array(PermissionName, { minItems: 1, maxItems: PERMISSIONS.length });
const RoleRequest = Type.Object(
  { id: Type.Optional(RoleId), name: Name(), permissions: rolePermissions },
  { title: 'RoleRequest', ...closed },
);
const RoleChange = Type.Object(
  { name: Type.Optional(Name()), permissions: Type.Optional(rolePermissions) },
  { title: 'RoleChange', ...closed },
);

const Held = Type.Object({
  everywhere: Type.Boolean(),
  complete: Type.Boolean({ description: 'false when there are more ids than are named.' }),
  tenantIds: Type.Array(Type.String()),
  siteIds: Type.Array(Type.String()),
  deviceIds: Type.Array(Type.String()),
});
const byPermission = <S extends Parameters<typeof Type.Record>[1]>(schema: S) =>
  Type.Record(Type.String(), schema);
const Summary = Type.Object(
  {
    actorId: Type.String(),
    tenantId: Type.String(),
    can: byPermission(Type.Boolean({ description: 'Held at the tenant where the caller stands.' })),
    permissions: byPermission(Held),
  },
  { title: 'PermissionSummary', ...closed },
);

const Overview = Type.Object(
  {
    roles: Type.Array(RoleRecord),
    permissions: Type.Array(PermissionName),
    assignments: Type.Array(AssignmentRecord),
    mappings: Type.Array(MappingRecord),
    nextCursors: Type.Object(
      { assignments: Nullable(Type.String()), mappings: Nullable(Type.String()) },
      {
        description: 'Where GET /api/rbac/assignments and /api/rbac/provider-mappings go on.',
      },
    ),
  },
  { title: 'RbacOverview', ...closed },
);

const ExplainQuery = Type.Object(
  { userId: Id('usr'), permission: PermissionName, ...placeFilter },
  closed,
);
const ExplainAnswer = Type.Object(
  {
    allowed: Type.Boolean(),
    reason: Type.String(),
    userId: Type.String(),
    permission: PermissionName,
    place: Type.Object({
      tenantId: Type.String(),
      siteId: Nullable(Type.String()),
      deviceId: Nullable(Type.String()),
    }),
    grants: Type.Array(
      Type.Object({
        id: Type.String(),
        kind: Type.Enum(['assignment', 'mapping']),
        roleId: Type.String(),
        level: Type.String(),
        tenantId: Type.String(),
        siteId: Nullable(Type.String()),
        deviceId: Nullable(Type.String()),
      }),
    ),
  },
  { title: 'Explanation', ...closed },
);

type Deps = { grants: Grants; roles: Roles; accessReport: AccessReport };

/** Roles, who has them where, and what that means for somebody. */
export function rbacRoutes({ grants, roles, accessReport }: Deps): Route[] {
  return [
    ...reports({ grants, roles, accessReport }),
    ...assignments(grants),
    ...mappings(grants),
    ...roleRoutes(roles),
  ];
}

function reports({ grants, roles, accessReport }: Deps): Route[] {
  const first = { limit: MAX_LIMIT };
  return [
    route({
      method: 'GET',
      path: '/api/rbac',
      area,
      permission: 'rbac:read',
      summary: 'Roles and permissions in effect, with the newest assignments and mappings',
      answers: { 200: Overview },
      handle: async ({ caller }) => {
        const [allRoles, given, mapped] = await Promise.all([
          roles.list(),
          pageOf(
            'assignments',
            'asg',
            first,
            (page) => grants.list(caller, 'assignment', {}, page),
            assignmentView,
          ),
          pageOf(
            'mappings',
            'map',
            first,
            (page) => grants.list(caller, 'mapping', {}, page),
            mappingView,
          ),
        ]);
        return ok({
          roles: allRoles,
          permissions: PERMISSIONS,
          assignments: given.items,
          mappings: mapped.items,
          nextCursors: { assignments: given.nextCursor, mappings: mapped.nextCursor },
        });
      },
    }),
    route({
      method: 'GET',
      path: '/api/rbac/summary',
      area,
      signedIn: 'everybody may know what they may do',
      anyPassword: true,
      summary: "The caller's own permissions and where they hold",
      answers: { 200: Summary },
      handle: ({ caller }) => {
        const permissions = accessReport.summary(caller);
        const can = Object.fromEntries(
          PERMISSIONS.map((permission) => [permission, accessReport.holdsHere(caller, permission)]),
        );
        return Promise.resolve(
          ok({ actorId: caller.actorId, tenantId: caller.tenantId, can, permissions }),
        );
      },
    }),
    route({
      method: 'GET',
      path: '/api/rbac/explain',
      area,
      permission: 'rbac:read',
      summary: 'Whether a user holds a permission somewhere, and by which grants',
      query: ExplainQuery,
      answers: { 200: ExplainAnswer },
      handle: async ({ caller, query: { userId, permission, ...at } }) => {
        const {
          allowed,
          reason,
          place,
          grants: found,
        } = await accessReport.explain(caller, userId, permission, at);
        return ok({
          allowed,
          reason,
          userId,
          permission,
          place: {
            tenantId: place.tenantId,
            siteId: place.siteId ?? null,
            deviceId: place.deviceId ?? null,
          },
          grants: found,
        });
      },
    }),
  ];
}

function assignments(grants: Grants): Route[] {
  const made = (grant: Parameters<typeof assignmentView>[0]) =>
    created(`/api/rbac/assignments/${grant.id}`, assignmentView(grant));
  return [
    route({
      method: 'GET',
      path: '/api/rbac/assignments',
      area,
      permission: 'rbac:read',
      summary: 'List assignments, newest first',
      query: AssignmentQuery,
      answers: { 200: listOf(AssignmentRecord, 'AssignmentList') },
      handle: ({ caller, query: { limit, cursor, ...filter } }) =>
        listAnswer(
          'assignments',
          'asg',
          { limit, cursor },
          (page) => grants.list(caller, 'assignment', filter as GrantFilter, page),
          assignmentView,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/rbac/assignments',
      area,
      permission: 'rbac:write',
      summary: 'Give a user a role',
      body: AssignmentRequest,
      answers: { 201: AssignmentRecord },
      recover: async (caller, id) => made(await grants.read(caller, 'assignment', id)),
      handle: async ({ caller, body: { userId, roleId, ...at } }) =>
        made(await grants.create(caller, { userId }, roleId, at)),
    }),
    route({
      method: 'GET',
      path: '/api/rbac/assignments/{id}',
      area,
      permission: 'rbac:read',
      summary: 'Read an assignment',
      params: OneAssignment,
      answers: { 200: AssignmentRecord },
      handle: async ({ caller, params }) =>
        ok(assignmentView(await grants.read(caller, 'assignment', params.id))),
    }),
    route({
      method: 'DELETE',
      path: '/api/rbac/assignments/{id}',
      area,
      permission: 'rbac:write',
      summary: 'Take a role from a user',
      params: OneAssignment,
      answers: { 204: null },
      handle: async ({ caller, params }) => {
        await grants.remove(caller, 'assignment', params.id);
        return noContent();
      },
    }),
  ];
}

function mappings(grants: Grants): Route[] {
  const made = (grant: Parameters<typeof mappingView>[0]) =>
    created(`/api/rbac/provider-mappings/${grant.id}`, mappingView(grant));
  return [
    route({
      method: 'GET',
      path: '/api/rbac/provider-mappings',
      area,
      permission: 'rbac:read',
      summary: 'List mappings, newest first',
      query: MappingQuery,
      answers: { 200: listOf(MappingRecord, 'ProviderMappingList') },
      handle: ({ caller, query: { limit, cursor, ...filter } }) =>
        listAnswer(
          'mappings',
          'map',
          { limit, cursor },
          (page) => grants.list(caller, 'mapping', filter as GrantFilter, page),
          mappingView,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/rbac/provider-mappings',
      area,
      permission: 'rbac:write',
      summary: 'Give a role to a group at a provider',
      body: MappingRequest,
      answers: { 201: MappingRecord },
      recover: async (caller, id) => made(await grants.read(caller, 'mapping', id)),
      handle: async ({ caller, body: { providerId, externalGroup, roleId, ...at } }) =>
        made(await grants.create(caller, { providerId, externalGroup }, roleId, at)),
    }),
    route({
      method: 'GET',
      path: '/api/rbac/provider-mappings/{id}',
      area,
      permission: 'rbac:read',
      summary: 'Read a mapping',
      params: OneMapping,
      answers: { 200: MappingRecord },
      handle: async ({ caller, params }) =>
        ok(mappingView(await grants.read(caller, 'mapping', params.id))),
    }),
    route({
      method: 'DELETE',
      path: '/api/rbac/provider-mappings/{id}',
      area,
      permission: 'rbac:write',
      summary: 'Take a role from a group',
      params: OneMapping,
      answers: { 204: null },
      handle: async ({ caller, params }) => {
        await grants.remove(caller, 'mapping', params.id);
        return noContent();
      },
    }),
  ];
}

function roleRoutes(roles: Roles): Route[] {
  const tagged = (role: { version: number | null }) =>
    role.version === null ? {} : { etag: etagOf(role.version) };
  const made = (role: Awaited<ReturnType<Roles['create']>>) =>
    created(`/api/rbac/roles/${role.id}`, role, tagged(role));
  return [
    route({
      method: 'GET',
      path: '/api/rbac/roles',
      area,
      permission: 'rbac:read',
      summary: 'List all roles, built-in ones first',
      answers: { 200: listOf(RoleRecord, 'RoleList') },
      handle: async () => ok({ items: await roles.list(), nextCursor: null }),
    }),
    route({
      method: 'POST',
      path: '/api/rbac/roles',
      area,
      permission: 'rbac:write',
      summary: 'Make a custom role',
      body: RoleRequest,
      answers: { 201: RoleRecord },
      recover: async (_caller, id) => made(await roles.read(id)),
      handle: async ({ caller, body }) => made(await roles.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/rbac/roles/{id}',
      area,
      permission: 'rbac:read',
      summary: 'Read a role',
      params: OneRole,
      answers: { 200: RoleRecord },
      handle: async ({ params }) => {
        const role = await roles.read(params.id);
        return ok(role, tagged(role));
      },
    }),
    route({
      method: 'PUT',
      path: '/api/rbac/roles/{id}',
      area,
      permission: 'rbac:write',
      summary: 'Change a custom role, for everybody who has it',
      params: OneRole,
      body: RoleChange,
      answers: { 200: RoleRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) => {
        const role = await roles.update(caller, params.id, body, expectedVersion(ifMatch));
        return ok(role, tagged(role));
      },
    }),
    route({
      method: 'DELETE',
      path: '/api/rbac/roles/{id}',
      area,
      permission: 'rbac:write',
      summary: 'Delete a custom role that nobody has',
      params: OneRole,
      answers: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await roles.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
  ];
}
