import type { Filter } from '../../parts/list/search.ts';

export const BACKUP_FILTERS = [
  {
    id: 'status',
    label: 'Status',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: [
      { value: 'completed', label: 'Completed' },
      { value: 'running', label: 'Running' },
      { value: 'queued', label: 'Queued' },
      { value: 'failed', label: 'Failed' },
    ],
  },
  { id: 'label', label: 'Label', kind: 'choice', facet: true },
  {
    id: 'mode',
    label: 'Contents',
    kind: 'choice',
    facet: true,
    choices: [
      { value: 'full', label: 'Everything' },
      { value: 'partial', label: 'Chosen sections' },
    ],
  },
  { id: 'createdBy', label: 'Made by', kind: 'choice', facet: true },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Made', kind: 'time' },
  { id: 'restoreTestedAt', label: 'Test-restored', kind: 'time' },
] as const satisfies readonly Filter[];

export const RUN_FILTERS = [
  {
    id: 'purpose',
    label: 'What',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: [
      { value: 'restore', label: 'Restore' },
      { value: 'validate', label: 'Preview' },
      { value: 'verify', label: 'Test restore' },
    ],
  },
  { id: 'status', label: 'Status', kind: 'choice', facet: true },
] as const satisfies readonly Filter[];
