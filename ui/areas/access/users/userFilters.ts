import type { Filter } from '../../../parts/list/search.ts';

export const USER_FILTERS = [
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
  { id: 'providerId', label: 'Signs in with', kind: 'choice', facet: true },
  { id: 'group', label: 'Group', kind: 'text', example: 'net-admins' },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'lastLoginAt', label: 'Last login', kind: 'time' },
  { id: 'createdAt', label: 'Created', kind: 'time' },
] as const satisfies readonly Filter[];
