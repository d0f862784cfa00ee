import { answer, api, type Schemas } from '../../../app/api.ts';
import type { paths } from '../../../app/schema.d.ts';
import type { JsonSchema } from '../../../parts/schemaForm/shape.ts';

export type Provider = Schemas['Provider'];
export type TestReport = Schemas['ProviderTestReport'];
export type ProvidersQuery = NonNullable<
  paths['/api/auth/providers']['get']['parameters']['query']
>;

/** A kind of provider, with the schema of its configuration in two parts. */
export type Kind = {
  kind: Provider['kind'];
  /** Without the secrets: these are typed into hidden fields, and never shown again. */
  schema: JsonSchema;
  secrets: readonly { name: string; description: string | undefined }[];
  destinations: readonly string[];
  /** The settings that say whose ids the accounts have. */
  identity: readonly string[];
};

type Reading = { signal: AbortSignal };

export const PROVIDERS_KEY = ['access', 'providers'] as const;

function kindOf({
  kind,
  configSchema,
  secrets,
  destinations,
  identity,
}: Schemas['ProviderKind']): Kind {
  const { properties = {}, required = [], ...schema } = configSchema as JsonSchema;
  const isSecret = (name: string) => secrets.includes(name);
  return {
    kind: kind as Provider['kind'],
    schema: {
      ...schema,
      properties: Object.fromEntries(
        Object.entries(properties).filter(([name]) => !isSecret(name)),
      ),
      // What has a default may be left empty; a switch cannot be.
      required: required.filter(
        (name) =>
          !isSecret(name) &&
          (properties[name]?.default === undefined || properties[name].type === 'boolean'),
      ),
    },
    secrets: secrets.map((name) => ({ name, description: properties[name]?.description })),
    destinations,
    identity,
  };
}

export const kindsQuery = {
  queryKey: [...PROVIDERS_KEY, 'kinds'],
  queryFn: async ({ signal }: Reading): Promise<Kind[]> =>
    (await answer(api.GET('/api/auth/provider-kinds', { signal }))).items.map(kindOf),
  staleTime: 600_000,
};

export const providerQuery = (id: string) => ({
  queryKey: [...PROVIDERS_KEY, 'one', id],
  queryFn: ({ signal }: Reading) =>
    answer(api.GET('/api/auth/providers/{id}', { params: { path: { id } }, signal })),
});

/** Providers that users can sign in with: everyone may read their names. */
export const enabledProvidersQuery = {
  queryKey: [...PROVIDERS_KEY, 'enabled'],
  queryFn: async ({ signal }: Reading) =>
    (await answer(api.GET('/api/auth/providers/enabled', { signal }))).items,
  staleTime: 10_000,
};
