import type { Filter } from '../../parts/list/search.ts';

export const AUDIT_FILTERS = [
  {
    id: 'outcome',
    label: 'Outcome',
    kind: 'choice',
    choices: [{ value: 'done' }, { value: 'denied' }, { value: 'failed' }],
    inline: true,
  },
  { id: 'action', label: 'Action', kind: 'choice', facet: true },
  { id: 'actorId', label: 'Who', kind: 'choice', facet: true },
  { id: 'subjectType', label: 'Kind of record', kind: 'choice', facet: true },
  { id: 'subjectId', label: 'Record', kind: 'text', example: 'sit_01jd0cmxk5e5v8kyzwq0q8s3rt' },
  { id: 'requestId', label: 'Request', kind: 'text', example: 'req_01jd0cmxk5e5v8kyzwq0q8s3rt' },
  { id: 'tenantId', label: 'Tenant', kind: 'text', example: 'red' },
  { id: 'at', label: 'When', kind: 'time' },
] as const satisfies readonly Filter[];
