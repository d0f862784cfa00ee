import { queryClient } from '../queryClient.ts';

/** The key of the permission summary, which has the tenant of the session. */
export const SUMMARY_KEY = ['session', 'summary'] as const;

/** A request with a token belongs to this tenant, whatever tenant its session has. */
export const TENANT_HEADER = 'X-Service-Tenant-Id';

/** The tenant that the pages show; undefined before it is known. */
export const shownTenant = (): string | undefined =>
  queryClient.getQueryData<{ tenantId: string }>(SUMMARY_KEY)?.tenantId;

/** What belongs to the installation, such as pools, runners and their types, belongs to this tenant. */
export const PLATFORM = { tenantId: 'platform' };
