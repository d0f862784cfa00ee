import { Type, type Static } from 'typebox';
import { TENANT_ID } from '../../domain/access/tenantId.ts';
import { RBAC_READERS } from '../../domain/access/permissions.ts';
import { MAX_QUOTA, QUOTAS, QUOTA_NAMES, type QuotaName } from '../../domain/access/quotas.ts';
import type { Quotas, TenantQuotas } from '../../services/access/quotas.ts';
import { expectedVersion } from '../http/etag.ts';
import { listResponse, listSchema, pageQuery } from '../http/pagination.ts';
import { noContent, ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Nullable, TenantId } from '../http/schemas.ts';

const tag = 'Quotas';

const Count = (name: QuotaName) =>
  Type.Integer({
    minimum: 0,
    maximum: MAX_QUOTA,
    description: `Number of ${QUOTAS[name].counts}.`,
  });

const Counts = (title: string, description: string) =>
  Type.Object(
    Object.fromEntries(QUOTA_NAMES.map((name) => [name, Count(name)])) as Record<
      QuotaName,
      ReturnType<typeof Count>
    >,
    { title, description, ...closed },
  );

const Overridden = Type.Array(Type.Enum([...QUOTA_NAMES], { title: 'QuotaName' }), {
  description:
    'The limits that the platform has set for this tenant; others are defaults. In a PUT with it, limits with their present value stay what they are; without it, all that `limits` names are set.',
  readOnly: true,
});

const QuotaRecord = Type.Object(
  {
    tenantId: TenantId(),
    limits: Counts('QuotaLimits', 'What the tenant may own.'),
    overridden: Overridden,
    used: Counts('QuotaUse', 'What the tenant owns now.'),
    version: Type.Integer({ description: 'Number of changes of the limits.' }),
  },
  { title: 'Quotas', ...closed },
);
type QuotaRecord = Static<typeof QuotaRecord>;

const NewLimit = (name: QuotaName) => Type.Optional(Nullable(Count(name)));

const QuotaChange = Type.Object(
  {
    limits: Type.Optional(
      Type.Object(
        Object.fromEntries(QUOTA_NAMES.map((name) => [name, NewLimit(name)])) as Record<
          QuotaName,
          ReturnType<typeof NewLimit>
        >,
        {
          title: 'QuotaLimitsChange',
          description: 'Limits that are not in the request stay; null returns to the default.',
          ...closed,
        },
      ),
    ),
    overridden: Type.Optional(Overridden),
  },
  { title: 'QuotaChange', ...closed },
);

const OneTenant = Type.Object({ tenantId: TenantId() }, closed);

const view = (quotas: TenantQuotas): QuotaRecord => quotas;

/** Quotas of tenants. */
export function quotaRoutes(quotas: Quotas): Route[] {
  const response = (found: TenantQuotas) => ok(view(found));
  return [
    route({
      method: 'GET',
      path: '/api/quotas',
      operationId: 'listQuotas',
      tag,
      permission: RBAC_READERS,
      summary: 'List what tenants may own and own now, by tenant',
      query: Type.Object(pageQuery, closed),
      responses: { 200: listSchema(QuotaRecord, 'QuotaList') },
      handle: ({ caller, query }) =>
        listResponse(
          'quotas',
          new RegExp(TENANT_ID),
          query,
          (page) => quotas.list(caller, page),
          view,
        ),
    }),
    route({
      method: 'GET',
      path: '/api/quotas/{tenantId}',
      operationId: 'getQuotas',
      tag,
      permission: RBAC_READERS,
      summary: 'Get what a tenant may own and owns now',
      params: OneTenant,
      responses: { 200: QuotaRecord },
      handle: async ({ caller, params }) => response(await quotas.read(caller, params.tenantId)),
    }),
    route({
      method: 'PUT',
      path: '/api/quotas/{tenantId}',
      operationId: 'updateQuotas',
      tag,
      permission: 'rbac:write',
      summary: 'Update limits of what a tenant may own',
      description:
        'Needs the permission at the platform. What the tenant owns beyond a new limit stays; it adds nothing until it owns less.',
      params: OneTenant,
      body: QuotaChange,
      example: { limits: { schedules: 50, inventoryRecords: 100_000 } },
      responses: { 200: QuotaRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) => view(await quotas.read(caller, params.tenantId)),
      volatile: ['used'],
      passUnchanged: ['limits', 'overridden'],
      handle: async ({ caller, params, body, ifMatch }) =>
        response(await quotas.update(caller, params.tenantId, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: '/api/quotas/{tenantId}',
      operationId: 'resetQuotas',
      tag,
      permission: 'rbac:write',
      summary: 'Return to the default limits',
      description: 'Needs the permission at the platform.',
      params: OneTenant,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await quotas.update(caller, params.tenantId, null, expectedVersion(ifMatch));
        return noContent();
      },
    }),
  ];
}
