import { Type } from 'typebox';
import { invalidField } from '../../domain/shared/errors.ts';
import { MAX_SEARCH_BYTES } from '../../domain/views/views.ts';
import type { OwnView, Views } from '../../services/views/views.ts';
import { expectedVersion } from '../http/etag.ts';
import { flagField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { created, noContent, ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { Id } from '../http/schemas.ts';
import { ViewChange, ViewRecord, ViewRequest } from './schemas.ts';

const tag = 'Views';

const OneView = Type.Object({ id: Id('viw') }, { additionalProperties: false });

const VIEWS = defineList({
  name: 'views',
  id: 'viw',
  item: ViewRecord,
  title: 'ViewList',
  fields: {
    list: textField(),
    name: textField({ sort: true }),
    shared: flagField(),
    createdAt: timeField(),
  },
});

const view = ({ createdAt, updatedAt, owner, ...fields }: OwnView): ViewRecord => ({
  id: fields.id,
  tenantId: fields.tenantId,
  list: fields.list,
  name: fields.name,
  search: fields.search,
  shared: fields.shared,
  isOwn: fields.isOwn,
  isDefault: fields.isDefault,
  createdBy: fields.createdBy,
  createdAt: createdAt.toISOString(),
  updatedAt: updatedAt.toISOString(),
  version: fields.version,
});

const response = (record: OwnView) => ok(view(record));
const createdResponse = (record: OwnView) => created(`/api/views/${record.id}`, view(record));

/** Error: `invalid_request`. */
function checkSize(search: object | undefined): void {
  if (search !== undefined && Buffer.byteLength(JSON.stringify(search)) > MAX_SEARCH_BYTES)
    throw invalidField('body', '/search', 'size', `must not exceed ${MAX_SEARCH_BYTES} bytes`);
}

const OWN = 'it is about views of the caller, and those that are shared with the caller';

/** Named views of the lists of the console. */
export const viewRoutes = (views: Views): Route[] => [
  route({
    method: 'GET',
    path: '/api/views',
    operationId: 'listViews',
    tag,
    signedIn: OWN,
    summary: 'List your views of lists, and those that are shared in the tenant',
    description: 'Views of lists that you may not see in the tenant are left out.',
    query: VIEWS.query,
    responses: { 200: VIEWS.schema },
    handle: ({ caller, query }) =>
      VIEWS.respond(query, (request) => views.list(caller, request), view),
  }),
  route({
    method: 'POST',
    path: '/api/views',
    operationId: 'createView',
    tag,
    signedIn: OWN,
    permissionCheckedInHandler: true,
    summary: 'Save a view of a list',
    description:
      'Sharing it needs the permission to write what the list shows, in the whole tenant: `inventory:write` for ' +
      'lists of the inventory.',
    body: ViewRequest,
    example: {
      list: '/inventory/prefixes',
      name: 'Nearly full',
      search: { status: 'active', sort: 'cidr' },
      shared: false,
    },
    responses: { 201: ViewRecord },
    replayResponse: async (caller, id) => createdResponse(await views.read(caller, id)),
    handle: async ({ caller, body }) => {
      checkSize(body.search);
      return createdResponse(await views.create(caller, body));
    },
  }),
  route({
    method: 'GET',
    path: '/api/views/{id}',
    operationId: 'getView',
    tag,
    signedIn: OWN,
    summary: 'Get a view',
    params: OneView,
    responses: { 200: ViewRecord },
    handle: async ({ caller, params }) => response(await views.read(caller, params.id)),
  }),
  route({
    method: 'PUT',
    path: '/api/views/{id}',
    operationId: 'updateView',
    tag,
    signedIn: OWN,
    permissionCheckedInHandler: true,
    summary: 'Update, rename, share or hide a view',
    description:
      'Fields that are not in the request stay as they are. `search` is replaced as a whole.',
    params: OneView,
    body: ViewChange,
    example: { name: 'Full' },
    responses: { 200: ViewRecord },
    headers: ['If-Match'],
    volatile: ['isDefault', 'isOwn'],
    current: async ({ caller, params }) => view(await views.read(caller, params.id)),
    handle: async ({ caller, params, body, ifMatch }) => {
      checkSize(body.search);
      return response(await views.update(caller, params.id, body, expectedVersion(ifMatch)));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/views/{id}',
    operationId: 'deleteView',
    tag,
    signedIn: OWN,
    permissionCheckedInHandler: true,
    summary: 'Delete a view',
    params: OneView,
    responses: { 204: null },
    headers: ['If-Match'],
    handle: async ({ caller, params, ifMatch }) => {
      await views.remove(caller, params.id, expectedVersion(ifMatch));
      return noContent();
    },
  }),
  route({
    method: 'POST',
    path: '/api/views/{id}/default',
    operationId: 'setDefaultView',
    tag,
    signedIn: OWN,
    summary: 'Open the list with a view, for yourself',
    params: OneView,
    responses: { 200: ViewRecord },
    handle: async ({ caller, params }) => response(await views.setDefault(caller, params.id, true)),
  }),
  route({
    method: 'DELETE',
    path: '/api/views/{id}/default',
    operationId: 'clearDefaultView',
    tag,
    signedIn: OWN,
    summary: 'Stop opening the list with a view',
    params: OneView,
    responses: { 200: ViewRecord },
    handle: async ({ caller, params }) =>
      response(await views.setDefault(caller, params.id, false)),
  }),
];
