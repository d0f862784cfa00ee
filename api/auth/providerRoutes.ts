import { Type, type Static } from 'typebox';
import { PROVIDER_KINDS } from '../../domain/auth/providers.ts';
import { KIND_DEFINITIONS } from '../../services/auth/providers/kinds/index.ts';
import type { Providers, ProviderView } from '../../services/auth/providers/providers.ts';
import type { ConnectionTest } from '../../services/auth/providers/testConnection.ts';
import { created, noContent, ok } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { choiceField, flagField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import { listSchema } from '../http/pagination.ts';
import { route, type Route } from '../http/route.ts';
import { LOOKUP } from '../http/strangerLimits.ts';
import {
  closed,
  JsonObject,
  Name,
  NewName,
  Nullable,
  ProviderId,
  Timestamp,
} from '../http/schemas.ts';

const tag = 'Authentication';

const Config = Type.Object(
  {},
  {
    additionalProperties: true,
    description:
      'Depends on the kind, see GET /api/auth/provider-kinds. Secrets are masked as ********.',
  },
);

const ProviderRecord = Type.Object(
  {
    id: Type.String(),
    kind: Type.Enum([...PROVIDER_KINDS], { title: 'ProviderKindName' }),
    name: Type.String(),
    enabled: Type.Boolean(),
    config: Config,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'Provider', ...closed },
);
export type ProviderRecord = Static<typeof ProviderRecord>;
const ConfigRequest = JsonObject<Record<string, unknown>>({
  description:
    'Validated by the schema of the kind. In a change, ******** keeps a secret and null removes a field.',
});
const ProviderRequest = Type.Object(
  {
    kind: Type.Enum([...PROVIDER_KINDS], { title: 'ProviderKindName' }),
    name: NewName(),
    enabled: Type.Optional(Type.Boolean({ default: true })),
    config: ConfigRequest,
  },
  { title: 'ProviderRequest', ...closed },
);
const ProviderChange = Type.Object(
  {
    name: Type.Optional(NewName()),
    enabled: Type.Optional(Type.Boolean()),
    config: Type.Optional(ConfigRequest),
    keepAccounts: Type.Optional(
      Type.Boolean({
        description:
          'Needed to change `issuer`, `idpEntityId` or `idAttribute` of a provider with accounts, and `url` or `userBaseDn` if `idAttribute` is neither entryUUID nor objectGUID: each account belongs to who has its id there.',
      }),
    ),
  },
  { title: 'ProviderChange', ...closed },
);
const EnabledProvider = Type.Object(
  { id: Type.String(), kind: Type.String(), name: Type.String() },
  { title: 'EnabledProvider', ...closed },
);
const KindRecord = Type.Object(
  {
    kind: Type.String(),
    configSchema: Type.Object(
      {},
      { additionalProperties: true, description: 'JSON Schema (2020-12) of `config`.' },
    ),
    secrets: Type.Array(Type.String({ description: 'Secret field of `config`.' })),
    destinations: Type.Array(
      Type.String({
        description: 'Field of `config`; when it changes, secrets must be sent again.',
      }),
    ),
    identity: Type.Array(
      Type.String({
        description:
          'Field of `config`; when it changes, and the provider has accounts, `keepAccounts` may be needed.',
      }),
    ),
  },
  { title: 'ProviderKind', ...closed },
);
const TestRequest = Type.Object(
  {
    username: Type.Optional(Name({ description: 'User name to search in an LDAP directory.' })),
    sampleClaims: Type.Optional(
      JsonObject<Record<string, unknown>>({
        description: 'Claims or attributes of a person, to preview the mapped roles.',
      }),
    ),
  },
  { title: 'ProviderTestRequest', ...closed },
);
const TestReport = Type.Object(
  {
    ok: Type.Boolean({ description: 'No step failed.' }),
    steps: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          status: Type.Enum(['passed', 'failed', 'skipped']),
          message: Type.String(),
          durationMs: Type.Integer(),
        },
        { title: 'ProviderTestStep' },
      ),
    ),
    groups: Type.Array(Type.String()),
    roles: Type.Array(
      Type.Object(
        {
          mappingId: Type.String(),
          externalGroup: Type.String(),
          roleId: Type.String(),
          level: Type.String(),
          tenantId: Type.String(),
          siteId: Nullable(Type.String()),
          deviceId: Nullable(Type.String()),
        },
        { title: 'MappedRole' },
      ),
      { description: 'Roles that these groups are mapped to.' },
    ),
  },
  { title: 'ProviderTestReport', ...closed },
);
export type TestReport = Static<typeof TestReport>;
const PROVIDERS = defineList({
  name: 'providers',
  id: /^(local|idp_[0-9a-z]{26})$/,
  item: ProviderRecord,
  title: 'ProviderList',
  fields: {
    kind: choiceField(PROVIDER_KINDS, { title: 'ProviderKindName' }),
    name: textField({ sort: true }),
    enabled: flagField(),
    createdAt: timeField({ sort: true }),
    updatedAt: timeField({ sort: true }),
  },
  idsByTime: false,
});
const OneProvider = Type.Object({ id: ProviderId }, closed);

const present = (provider: ProviderView) => ({
  ...provider,
  createdAt: provider.createdAt.toISOString(),
  updatedAt: provider.updatedAt.toISOString(),
});

type Deps = { providers: Providers; connectionTest: ConnectionTest };

/** Routes for identity providers. */
export function providerRoutes({ providers, connectionTest }: Deps): Route[] {
  const providerResponse = (provider: ProviderView) => ok(present(provider));
  const createdResponse = (provider: ProviderView) =>
    created(`/api/auth/providers/${provider.id}`, present(provider));

  return [
    route({
      method: 'GET',
      path: '/api/auth/providers/enabled',
      operationId: 'listEnabledProviders',
      tag,
      public: 'login pages need it',
      strangers: LOOKUP,
      summary: 'List the identity providers that users can sign in with',
      responses: { 200: listSchema(EnabledProvider, 'EnabledProviderList') },
      handle: async () =>
        ok({
          items: (await providers.listEnabled()).map(({ id, kind, name }) => ({ id, kind, name })),
          nextCursor: null,
        }),
    }),
    route({
      method: 'GET',
      path: '/api/auth/provider-kinds',
      operationId: 'listProviderKinds',
      tag,
      permission: 'auth:read',
      summary: 'List the kinds of identity providers and their configuration',
      responses: { 200: listSchema(KindRecord, 'ProviderKindList') },
      handle: () =>
        Promise.resolve(
          ok({
            items: Object.values(KIND_DEFINITIONS).map(
              ({ kind, config, secrets, destinations, identity }) => ({
                kind,
                configSchema: config,
                secrets,
                destinations,
                identity,
              }),
            ),
            nextCursor: null,
          }),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/auth/providers',
      operationId: 'listProviders',
      tag,
      permission: 'auth:read',
      summary: 'List identity providers',
      query: PROVIDERS.query,
      responses: { 200: PROVIDERS.schema },
      handle: ({ caller, query }) =>
        PROVIDERS.respond(query, (request) => providers.list(caller, request), present),
    }),
    route({
      method: 'POST',
      path: '/api/auth/providers',
      operationId: 'createProvider',
      tag,
      permission: 'auth:write',
      refusesTokens: 'providers decide who can sign in',
      summary: 'Create an identity provider',
      body: ProviderRequest,
      example: {
        kind: 'oidc',
        name: 'Company',
        config: {
          issuer: 'https://login.example.net',
          clientId: 'holdfast',
          clientSecret: 'secret of the client',
        },
      },
      secretBody: true,
      responses: { 201: ProviderRecord },
      replayResponse: async (caller, id) =>
        createdResponse(await providers.readToChange(caller, id)),
      handle: async ({ caller, body }) => createdResponse(await providers.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/auth/providers/{id}',
      operationId: 'getProvider',
      tag,
      permission: 'auth:read',
      summary: 'Get an identity provider',
      description: 'Secrets are masked.',
      params: OneProvider,
      responses: { 200: ProviderRecord },
      handle: async ({ caller, params }) =>
        providerResponse(await providers.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/auth/providers/{id}',
      operationId: 'updateProvider',
      tag,
      permission: 'auth:write',
      refusesTokens: 'providers decide who can sign in',
      summary: 'Update, disable or enable an identity provider',
      params: OneProvider,
      body: ProviderChange,
      example: { config: { groupsClaim: 'roles' } },
      responses: { 200: ProviderRecord },
      headers: ['If-Match'],
      current: async ({ caller, params }) =>
        present(await providers.readToChange(caller, params.id)),
      handle: async ({ caller, params, body, ifMatch }) =>
        providerResponse(await providers.update(caller, params.id, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: '/api/auth/providers/{id}',
      operationId: 'deleteProvider',
      tag,
      permission: 'auth:write',
      refusesTokens: 'providers decide who can sign in',
      summary: 'Delete an identity provider and its mappings',
      description: 'Disables the users of the provider and ends their sessions.',
      params: OneProvider,
      responses: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await providers.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/auth/providers/{id}/test',
      operationId: 'testProvider',
      tag,
      permission: 'auth:write',
      refusesTokens: 'providers decide who can sign in',
      summary: 'Test the connection to an identity provider',
      description: 'Also shows which roles the groups of a user or of sample claims are mapped to.',
      params: OneProvider,
      body: TestRequest,
      example: { sampleClaims: { groups: ['net-admins'] } },
      responses: { 200: TestReport },
      handle: async ({ caller, params, body }) => {
        return ok(await connectionTest.run(caller, params.id, body));
      },
    }),
  ];
}
