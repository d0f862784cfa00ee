import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../../app/api.ts';
import type { Where } from '../../../parts/permissions.tsx';
import { scopeIds, type ScopeDraft } from './scopes.ts';

/** Where a site or a device belongs, so that permissions at its tenant count. */
const ownerQuery = (resource: 'sites' | 'devices', id: string) => ({
  queryKey: ['access', 'owner', resource, id],
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Where> => {
    const params = { path: { id } };
    if (resource === 'sites') {
      const { tenantId } = await answer(api.GET('/api/inventory/sites/{id}', { params, signal }));
      return { tenantId: tenantId ?? undefined, siteId: id };
    }
    const device = await answer(api.GET('/api/inventory/devices/{id}', { params, signal }));
    return { tenantId: device.tenantId ?? undefined, siteId: device.siteId, deviceId: id };
  },
  staleTime: 60_000,
  retry: false,
});

/** The resource scope that a form names, as permissions are checked there. */
export function useWhere(scope: ScopeDraft): Where {
  const { level, siteId, deviceId } = scope;
  const resource = level === 'device' ? 'devices' : 'sites';
  const id = level === 'device' ? deviceId : level === 'site' ? siteId : undefined;
  const { data } = useQuery({ ...ownerQuery(resource, id ?? ''), enabled: id !== undefined });
  return id !== undefined && data ? data : scopeIds(scope);
}
