import { findEventTypes } from '../../app/eventTypes.ts';
import type { Filter } from '../../parts/list/search.ts';

export const EVENT_FILTERS = [
  { id: 'type', label: 'Type', kind: 'reference', find: findEventTypes },
  {
    id: 'subject',
    label: 'Record',
    kind: 'text',
    example: 'job_01jd0cmxk5e5v8kyzwq0q8s3rt',
  },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Time', kind: 'time' },
] as const satisfies readonly Filter[];
