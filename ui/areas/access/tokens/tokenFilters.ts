import type { Filter } from '../../../parts/list/search.ts';
import { findAccounts } from '../accounts.ts';

export const TOKEN_FILTERS = [
  {
    id: 'status',
    label: 'Status',
    kind: 'choice',
    choices: [
      { value: 'active' },
      { value: 'disabled' },
      { value: 'expired' },
      { value: 'revoked' },
    ],
  },
  {
    id: 'kind',
    label: 'Kind',
    kind: 'choice',
    choices: [
      { value: 'personal', label: 'Personal' },
      { value: 'service', label: 'Of a service account' },
      { value: 'runner', label: 'Of runners' },
    ],
    facet: true,
  },
  { id: 'userId', label: 'Account', kind: 'reference', find: findAccounts },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'expiresAt', label: 'Expires', kind: 'time' },
  { id: 'createdAt', label: 'Created', kind: 'time' },
] as const satisfies readonly Filter[];
