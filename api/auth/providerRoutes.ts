import { Type } from 'typebox';
import { PROVIDER_KINDS } from '../../domain/auth/providers.ts';
import { KINDS } from '../../services/auth/providers/kinds/index.ts';
import type { Providers, ProviderView } from '../../services/auth/providers/providers.ts';
import type { ProviderTest } from '../../services/auth/providers/testConnection.ts';
import { created, noContent, ok } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import { route, type Route } from '../kit/route.ts';
import { ProviderId } from '../access/schemas.ts';
import { Name, Nullable, Timestamp } from '../http/schemas.ts';

const area = 'Authentication';
const closed = { additionalProperties: false };

const Config = Type.Object(
  {},
  {
    additionalProperties: true,
    description: 'By kind: GET /api/auth/provider-kinds. Secrets are shown as ********.',
  },
);

const ProviderRecord = Type.Object(
  {
    id: Type.String(),
    kind: Type.Enum([...PROVIDER_KINDS]),
    name: Type.String(),
    enabled: Type.Boolean(),
    config: Config,
    createdAt: Timestamp,
    updatedAt: Timestamp,
    version: Type.Integer(),
  },
  { title: 'Provider', ...closed },
);
const ConfigRequest = Type.Record(Type.String(), Type.Unknown(), {
  description: 'Checked by kind. ******** keeps a secret, null takes a field away.',
});
const ProviderRequest = Type.Object(
  {
    kind: Type.Enum([...PROVIDER_KINDS]),
    name: Name(),
    enabled: Type.Optional(Type.Boolean({ default: true })),
    config: ConfigRequest,
  },
  { title: 'ProviderRequest', ...closed },
);
const ProviderChange = Type.Object(
  {
    name: Type.Optional(Name()),
    enabled: Type.Optional(Type.Boolean()),
    config: Type.Optional(ConfigRequest),
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
      { additionalProperties: true, description: 'JSON Schema 2020-12.' },
    ),
    secrets: Type.Array(Type.String()),
    destinations: Type.Array(
      Type.String({ description: 'When one changes, secrets must be given again.' }),
    ),
  },
  { title: 'ProviderKind', ...closed },
);
const TestRequest = Type.Object(
  {
    username: Type.Optional(Name({ description: 'Looked up in a directory.' })),
    sampleClaims: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'What the provider would say of somebody.',
      }),
    ),
  },
  { title: 'ProviderTestRequest', ...closed },
);
const TestReport = Type.Object(
  {
    ok: Type.Boolean(),
    steps: Type.Array(
      Type.Object({
        name: Type.String(),
        status: Type.Enum(['passed', 'failed', 'skipped']),
        message: Type.String(),
        durationMs: Type.Integer(),
      }),
    ),
    groups: Type.Array(Type.String()),
    roles: Type.Array(
      Type.Object({
        mappingId: Type.String(),
        externalGroup: Type.String(),
        roleId: Type.String(),
        level: Type.String(),
        tenantId: Type.String(),
        siteId: Nullable(Type.String()),
        deviceId: Nullable(Type.String()),
      }),
      { description: 'What these groups would be given.' },
    ),
  },
  { title: 'ProviderTestReport', ...closed },
);
const OneProvider = Type.Object({ id: ProviderId }, closed);

const present = (provider: ProviderView) => ({
  ...provider,
  createdAt: provider.createdAt.toISOString(),
  updatedAt: provider.updatedAt.toISOString(),
});

type Deps = { providers: Providers; providerTest: ProviderTest };

/** Identity providers. */
export function providerRoutes({ providers, providerTest }: Deps): Route[] {
  const one = (provider: ProviderView) => ok(present(provider), { etag: etagOf(provider.version) });
  const made = (provider: ProviderView) =>
    created(`/api/auth/providers/${provider.id}`, present(provider), {
      etag: etagOf(provider.version),
    });

  return [
    route({
      method: 'GET',
      path: '/api/auth/providers/enabled',
      area,
      public: 'a login page shows them',
      summary: 'List the providers that one can sign in with',
      answers: { 200: listOf(EnabledProvider, 'EnabledProviderList') },
      handle: async () =>
        ok({
          items: (await providers.enabled()).map(({ id, kind, name }) => ({ id, kind, name })),
          nextCursor: null,
        }),
    }),
    route({
      method: 'GET',
      path: '/api/auth/provider-kinds',
      area,
      permission: 'auth:read',
      summary: 'List the kinds of providers with their configuration',
      answers: { 200: listOf(KindRecord, 'ProviderKindList') },
      handle: () =>
        Promise.resolve(
          ok({
            items: Object.values(KINDS).map(({ kind, config, secrets, destinations }) => ({
              kind,
              configSchema: config,
              secrets,
              destinations,
            })),
            nextCursor: null,
          }),
        ),
    }),
    route({
      method: 'GET',
      path: '/api/auth/providers',
      area,
      permission: 'auth:read',
      summary: 'List providers, newest first',
      query: Type.Object({ ...pageQuery }, closed),
      answers: { 200: listOf(ProviderRecord, 'ProviderList') },
      handle: ({ caller, query }) =>
        listAnswer(
          'providers',
          /^(local|idp_[0-9a-z]{26})$/,
          query,
          (page) => providers.list(caller, page),
          present,
        ),
    }),
    route({
      method: 'POST',
      path: '/api/auth/providers',
      area,
      permission: 'auth:write',
      summary: 'Add a provider',
      body: ProviderRequest,
      secretBody: true,
      answers: { 201: ProviderRecord },
      recover: async (caller, id) => made(await providers.read(caller, id)),
      handle: async ({ caller, body }) => made(await providers.create(caller, body)),
    }),
    route({
      method: 'GET',
      path: '/api/auth/providers/{id}',
      area,
      permission: 'auth:read',
      summary: 'Read a provider, secrets masked',
      params: OneProvider,
      answers: { 200: ProviderRecord },
      handle: async ({ caller, params }) => one(await providers.read(caller, params.id)),
    }),
    route({
      method: 'PUT',
      path: '/api/auth/providers/{id}',
      area,
      permission: 'auth:write',
      summary: 'Change, disable or enable a provider',
      params: OneProvider,
      body: ProviderChange,
      answers: { 200: ProviderRecord },
      headers: ['If-Match'],
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await providers.update(caller, params.id, body, expectedVersion(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: '/api/auth/providers/{id}',
      area,
      permission: 'auth:write',
      summary: 'Delete a provider with its mappings; its users are disabled',
      params: OneProvider,
      answers: { 204: null },
      headers: ['If-Match'],
      handle: async ({ caller, params, ifMatch }) => {
        await providers.remove(caller, params.id, expectedVersion(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'POST',
      path: '/api/auth/providers/{id}/test',
      area,
      permission: 'auth:write',
      summary: 'Try a provider out, step by step',
      params: OneProvider,
      body: TestRequest,
      answers: { 200: TestReport },
      handle: async ({ caller, params, body }) => {
        return ok(await providerTest.run(caller, params.id, body));
      },
    }),
  ];
}
