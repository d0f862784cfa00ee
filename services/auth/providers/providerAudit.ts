import { recordOf } from '../../../db/core/recordAudit.ts';
import type { Provider } from '../../../db/models/Provider.ts';
import { MASK } from '../../../domain/shared/mask.ts';

/** The configuration of a provider with masked secrets. */
export const maskSecrets = ({ config, secrets }: Provider): Record<string, unknown> => ({
  ...config,
  ...Object.fromEntries(Object.keys(secrets).map((field) => [field, MASK])),
});

/** Audit entries and events about identity providers, with masked secrets. */
export const providerRecord = recordOf<
  Provider,
  'auth.provider.created' | 'auth.provider.updated' | 'auth.provider.deleted'
>({
  type: 'provider',
  auditView: (provider) => ({
    kind: provider.kind,
    name: provider.name,
    enabled: provider.enabled,
    config: maskSecrets(provider),
  }),
  events: {
    created: 'auth.provider.created',
    updated: 'auth.provider.updated',
    deleted: 'auth.provider.deleted',
  },
  eventData: ({ id, kind, name, enabled }) => ({ providerId: id, kind, name, enabled }),
});
