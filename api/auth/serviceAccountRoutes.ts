import { Type } from 'typebox';
import type { ServiceAccountDetails } from '../../domain/auth/users.ts';
import type { ApiTokens } from '../../services/auth/apiTokens/tokens.ts';
import type { ServiceAccounts } from '../../services/auth/serviceAccounts.ts';
import { expectedVersion } from '../http/etag.ts';
import { flagField, idField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { created, ok, type HttpResponse } from '../http/response.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Id, Name, NewName, TenantId } from '../http/schemas.ts';
import { serviceAccountView } from './tokenPresenter.ts';
import { limitsOf, MAKES_TOKENS, newTokenResponse, tokenList } from './tokenRoutes.ts';
import { ServiceAccountRecord, ServiceTokenRequest, TokenWithSecret } from './tokenSchemas.ts';
import { NewUsername } from './userRoutes.ts';

const tag = 'Service accounts';

const OneAccount = Type.Object({ id: Id('usr') }, closed);

const fields = {
  displayName: Type.Optional(NewName()),
  ownerId: Type.Optional(Id('usr')),
};
const AccountRequest = Type.Object(
  {
    name: NewUsername,
    ...fields,
    tenantId: Type.Optional(
      TenantId('Tenant that the account belongs to; by default that of the caller.'),
    ),
  },
  {
    title: 'ServiceAccountRequest',
    description: '`ownerId` is the caller by default; a caller without an account must name one.',
    ...closed,
  },
);
const AccountChange = Type.Object(
  {
    name: Type.Optional(NewUsername),
    ...fields,
    tenantId: Type.Optional(TenantId()),
    enabled: Type.Optional(Type.Boolean({ description: 'false: its tokens are refused.' })),
  },
  { title: 'ServiceAccountChange', ...closed },
);
const ACCOUNTS = defineList({
  name: 'service-accounts',
  id: 'usr',
  item: ServiceAccountRecord,
  title: 'ServiceAccountList',
  fields: {
    id: idField(Id('usr'), { facet: false }),
    ownerId: idField(Id('usr'), { nullable: true }),
    enabled: flagField(),
    tenantId: idField(TenantId()),
    createdAt: timeField(),
  },
  own: {
    name: Type.Optional(Name()),
    q: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: 100,
        description: 'Text in the name or the display name.',
      }),
    ),
  },
});

type Deps = { serviceAccounts: ServiceAccounts; apiTokens: ApiTokens };

const accountResponse = (account: ServiceAccountDetails): HttpResponse =>
  ok(serviceAccountView(account));
const createdResponse = (account: ServiceAccountDetails): HttpResponse =>
  created(`/api/service-accounts/${account.id}`, serviceAccountView(account));

/** Routes for the tokens of service accounts. */
const tokenRoutesOf = (
  { serviceAccounts, apiTokens }: Deps,
  tokens = tokenList(apiTokens),
): Route[] => [
  route({
    method: 'GET',
    path: '/api/service-accounts/{id}/tokens',
    operationId: 'listServiceAccountTokens',
    tag,
    permission: ['user:read', 'user:write'],
    summary: 'List the API tokens of a service account',
    params: OneAccount,
    query: tokens.query,
    responses: tokens.responses,
    handle: async ({ caller, params, query }) => {
      const { id } = await serviceAccounts.read(caller, params.id, 'user:write');
      return tokens.respond(caller, query, id);
    },
  }),
  route({
    method: 'POST',
    path: '/api/service-accounts/{id}/tokens',
    operationId: 'createServiceAccountToken',
    tag,
    permission: 'user:write',
    refusesTokens: MAKES_TOKENS,
    summary: 'Create an API token for a service account',
    description:
      'The caller must hold every permission of the account. The text of the token is returned once.',
    params: OneAccount,
    body: ServiceTokenRequest,
    example: {
      name: 'pipeline',
      permissions: ['job:write', 'job:read'],
      jobTypes: ['inventory.*'],
    },
    responses: { 201: TokenWithSecret },
    replayResponse: async (caller, id) =>
      newTokenResponse({ token: await apiTokens.find(caller, id), secret: null }),
    handle: async ({ caller, params, body }) => {
      const { id } = await serviceAccounts.findToChange(caller, params.id);
      return newTokenResponse(await apiTokens.createForService(caller, id, limitsOf(body)));
    },
  }),
];

/** Routes for service accounts. */
export const serviceAccountRoutes = (deps: Deps): Route[] => {
  const { serviceAccounts } = deps;
  return [
    route({
      method: 'GET',
      path: '/api/service-accounts',
      operationId: 'listServiceAccounts',
      tag,
      permission: 'user:read',
      summary: 'List service accounts',
      query: ACCOUNTS.query,
      responses: { 200: ACCOUNTS.schema },
      handle: ({ caller, query }) =>
        ACCOUNTS.respond(
          query,
          (request, filter) => serviceAccounts.list(caller, filter, request),
          serviceAccountView,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/service-accounts',
      operationId: 'createServiceAccount',
      tag,
      permission: 'user:write',
      summary: 'Create a service account',
      description:
        'A user without password and provider, for programs. Assign it roles, then create its tokens. It never decides approvals.',
      body: AccountRequest,
      example: {
        name: 'ci',
        displayName: 'Pipelines of the network team',
        ownerId: 'usr_01k8qzj3m5x7c9v1b3n5m7q9w1',
      },
      responses: { 201: ServiceAccountRecord },
      replayResponse: async (caller, id) =>
        createdResponse(await serviceAccounts.read(caller, id, 'user:write')),
      handle: async ({ caller, body }) =>
        createdResponse(await serviceAccounts.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/service-accounts/{id}',
      operationId: 'getServiceAccount',
      tag,
      permission: 'user:read',
      summary: 'Get a service account',
      params: OneAccount,
      responses: { 200: ServiceAccountRecord },
      handle: async ({ caller, params }) =>
        accountResponse(await serviceAccounts.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/service-accounts/{id}',
      operationId: 'updateServiceAccount',
      tag,
      permission: 'user:write',
      summary: 'Update, disable or enable a service account',
      params: OneAccount,
      body: AccountChange,
      example: { displayName: 'Pipelines', enabled: true },
      responses: { 200: ServiceAccountRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        serviceAccountView(await serviceAccounts.findToChange(caller, params.id)),
      handle: async ({ caller, params, body, ifMatch }) =>
        accountResponse(
          await serviceAccounts.update(caller, params.id, body, expectedVersion(ifMatch)),
        ),
    }),
    ...tokenRoutesOf(deps),
  ];
};
