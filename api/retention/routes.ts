import { Type } from 'typebox';
import { TENANT_ID } from '../../domain/access/tenantId.ts';
import { RBAC_READERS } from '../../domain/access/permissions.ts';
import type { RetentionPreviews } from '../../services/retention/preview.ts';
import type { RetentionSettings, TenantRetention } from '../../services/retention/settings.ts';
import { closed, TenantId } from '../http/schemas.ts';
import { expectedVersion } from '../http/etag.ts';
import { listResponse, listSchema, pageQuery } from '../http/pagination.ts';
import { noContent, ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { PreviewRecord, PreviewRequest, RetentionChange, RetentionRecord } from './schemas.ts';

const tag = 'Retention';

const OneTenant = Type.Object({ tenantId: TenantId() }, closed);

const view = (retention: TenantRetention): RetentionRecord => ({
  ...retention,
  jobTypes: { ...retention.jobTypes },
});

type Deps = { retentionSettings: RetentionSettings; retentionPreviews: RetentionPreviews };

/** How long the records of tenants are kept. */
export function retentionRoutes({ retentionSettings, retentionPreviews }: Deps): Route[] {
  const response = (found: TenantRetention) => ok(view(found));
  return [
    route({
      method: 'GET',
      path: '/api/retention',
      operationId: 'listRetention',
      tag,
      permission: RBAC_READERS,
      summary: 'List how long records are kept, by tenant',
      query: Type.Object(pageQuery, closed),
      responses: { 200: listSchema(RetentionRecord, 'RetentionList') },
      handle: ({ caller, query }) =>
        listResponse(
          'retention',
          new RegExp(TENANT_ID),
          query,
          (page) => retentionSettings.list(caller, page),
          view,
        ),
    }),
    route({
      method: 'GET',
      path: '/api/retention/{tenantId}',
      operationId: 'getRetention',
      tag,
      permission: RBAC_READERS,
      summary: 'Get how long records of a tenant are kept',
      params: OneTenant,
      responses: { 200: RetentionRecord },
      handle: async ({ caller, params }) =>
        response(await retentionSettings.read(caller, params.tenantId)),
    }),
    route({
      method: 'PUT',
      path: '/api/retention/{tenantId}',
      operationId: 'updateRetention',
      tag,
      permission: 'rbac:write',
      summary: 'Update how long records of a tenant are kept',
      description:
        'Needs the permission at the tenant, and `audit:archive` to change `auditArchive`. The next purge deletes what is kept no longer; `POST /api/retention/preview` counts it.',
      params: OneTenant,
      body: RetentionChange,
      example: {
        days: { events: 30, scheduleRuns: null, deliveries: 'default' },
        jobTypes: { 'core.echo': { jobLogs: 7 } },
      },
      responses: { 200: RetentionRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        view(await retentionSettings.read(caller, params.tenantId)),
      passUnchanged: ['days', 'overridden'],
      handle: async ({ caller, params, body, ifMatch }) =>
        response(
          await retentionSettings.update(caller, params.tenantId, body, expectedVersion(ifMatch)),
        ),
    }),
    route({
      method: 'DELETE',
      path: '/api/retention/{tenantId}',
      operationId: 'resetRetention',
      tag,
      permission: 'rbac:write',
      summary: 'Return to the default periods',
      description: 'Needs the permission at the tenant.',
      params: OneTenant,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await retentionSettings.update(caller, params.tenantId, null, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    previewRoute(retentionPreviews),
  ];
}

const previewRoute = (previews: RetentionPreviews): Route =>
  route({
    method: 'POST',
    path: '/api/retention/preview',
    operationId: 'previewRetention',
    tag,
    permission: RBAC_READERS,
    allowsReadOnly: true,
    summary: 'Count what a purge would delete now, by kind and month',
    description:
      'Nothing is deleted. With `days` and `jobTypes`, the periods are those that the tenant would have after such a change. Counting ends after a time limit: a kind without a total was not counted.',
    body: PreviewRequest,
    example: { tenantId: 'platform', days: { jobLogs: 30 } },
    expensiveRead: { hasOwnSlots: true },
    responses: { 200: PreviewRecord },
    problems: [404],
    handle: async ({ caller, body: { tenantId = caller.tenantId, ...change }, signal }) => {
      const { at, kinds } = await previews.preview(caller, tenantId, change, signal);
      const record: PreviewRecord = { tenantId, at: at.toISOString(), kinds };
      return ok(record);
    },
  });
