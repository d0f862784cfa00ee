import type { Filter } from '../../parts/list/search.ts';

export const SECRET_FILTERS = [
  { id: 'name', label: 'Name', kind: 'text', example: 'port-audit' },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'createdBy', label: 'Created by', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Created', kind: 'time' },
] as const satisfies readonly Filter[];
