import { Type } from 'typebox';
import { SecretName, type SecretData } from '../../domain/secrets/secrets.ts';
import type { Secrets } from '../../services/secrets/secrets.ts';
import { expectedVersion } from '../http/etag.ts';
import { idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { created, noContent, ok } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { Id, TenantId } from '../http/schemas.ts';
import { SecretChange, SecretRecord, SecretRequest } from './schemas.ts';

const tag = 'Secrets';

const OneSecret = Type.Object({ id: Id('sec') }, { additionalProperties: false });

const SECRETS = defineList({
  name: 'secrets',
  id: 'sec',
  item: SecretRecord,
  title: 'SecretList',
  fields: {
    tenantId: idField(TenantId()),
    name: textField({ schema: SecretName(), sort: true }),
    createdBy: textField({ facet: true }),
    createdAt: timeField(),
  },
});

const view = (secret: SecretData): SecretRecord => ({
  id: secret.id,
  tenantId: secret.tenantId,
  name: secret.name,
  description: secret.description,
  pools: [...secret.pools],
  valueSetAt: secret.valueSetAt.toISOString(),
  createdBy: secret.createdBy,
  createdAt: secret.createdAt.toISOString(),
  updatedAt: secret.updatedAt.toISOString(),
  version: secret.version,
});

const response = (secret: SecretData) => ok(view(secret));
const createdResponse = (secret: SecretData) => created(`/api/secrets/${secret.id}`, view(secret));

/** Named secrets. No route returns a value. */
export function secretRoutes(secrets: Secrets): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/secrets',
      operationId: 'listSecrets',
      tag,
      permission: 'secret:read',
      summary: 'List named secrets, without their values',
      query: SECRETS.query,
      responses: { 200: SECRETS.schema },
      handle: ({ caller, query }) =>
        SECRETS.respond(query, (request) => secrets.list(caller, request), view),
    }),
    route({
      method: 'POST',
      path: '/api/secrets',
      operationId: 'createSecret',
      tag,
      permission: 'secret:write',
      summary: 'Create a named secret',
      description:
        'It belongs to the tenant of the request. Attempts of remote jobs whose type asks for it get the ' +
        'value, on runners of its pools.',
      body: SecretRequest,
      secretBody: true,
      example: {
        name: 'port-audit',
        value: 'the token of the inventory',
        description: 'Reads ports',
        pools: ['ams'],
      },
      responses: { 201: SecretRecord },
      replayResponse: async (caller, id) =>
        createdResponse(await secrets.read(caller, id, 'secret:write')),
      handle: async ({ caller, body }) => createdResponse(await secrets.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/secrets/{id}',
      operationId: 'getSecret',
      tag,
      permission: 'secret:read',
      summary: 'Get a named secret, without its value',
      params: OneSecret,
      responses: { 200: SecretRecord },
      handle: async ({ caller, params }) => response(await secrets.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/secrets/{id}',
      operationId: 'updateSecret',
      tag,
      permission: 'secret:write',
      summary: 'Update a named secret, or replace its value',
      description: 'Fields that are not in the request stay as they are, the value too.',
      params: OneSecret,
      body: SecretChange,
      secretBody: true,
      example: { value: 'the next token of the inventory' },
      responses: { 200: SecretRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        view(await secrets.read(caller, params.id, 'secret:write')),
      handle: async ({ caller, params, body, ifMatch }) =>
        response(await secrets.update(caller, params.id, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: '/api/secrets/{id}',
      operationId: 'deleteSecret',
      tag,
      permission: 'secret:write',
      summary: 'Delete a named secret and its value',
      params: OneSecret,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await secrets.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
  ];
}
