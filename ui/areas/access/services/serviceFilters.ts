import type { Filter } from '../../../parts/list/search.ts';
import { findAccounts } from '../accounts.ts';

export const SERVICE_FILTERS = [
  {
    id: 'enabled',
    label: 'State',
    kind: 'choice',
    choices: [
      { value: 'true', label: 'Enabled' },
      { value: 'false', label: 'Disabled' },
    ],
    inline: true,
    facet: true,
  },
  { id: 'q', label: 'Name', kind: 'text', example: 'At least three characters' },
  {
    id: 'ownerId',
    label: 'Owner',
    kind: 'reference',
    find: (text: string, signal: AbortSignal) => findAccounts(text, signal, 'people'),
  },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Created', kind: 'time' },
] as const satisfies readonly Filter[];
