import { recordsQuery } from '../../../parts/records/findRecords.ts';
import type { Filter, Found } from '../../../parts/list/search.ts';
import { findAccounts } from '../accounts.ts';

const finder =
  (resource: string) =>
  (text: string, signal: AbortSignal): Promise<Found[]> =>
    recordsQuery(resource, text).queryFn({ signal });

const SCOPE_FILTERS = [
  { id: 'roleId', label: 'Role', kind: 'choice', facet: true },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'siteId', label: 'Site', kind: 'reference', of: 'sites', find: finder('sites') },
  { id: 'deviceId', label: 'Device', kind: 'reference', of: 'devices', find: finder('devices') },
  { id: 'createdAt', label: 'Created', kind: 'time' },
] as const satisfies readonly Filter[];

export const ASSIGNMENT_FILTERS = [
  { id: 'userId', label: 'Who', kind: 'reference', find: findAccounts },
  ...SCOPE_FILTERS,
] as const satisfies readonly Filter[];

export const MAPPING_FILTERS = [
  { id: 'providerId', label: 'Identity provider', kind: 'choice', facet: true },
  { id: 'externalGroup', label: 'Group', kind: 'choice', facet: true },
  ...SCOPE_FILTERS,
] as const satisfies readonly Filter[];
