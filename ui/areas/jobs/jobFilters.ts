import type { Schemas } from '../../app/api.ts';
import { findSchedules } from '../../app/findSchedules.ts';
import type { paths } from '../../app/schema.d.ts';
import { labelOfField } from '../../parts/format.ts';
import type { Filter } from '../../parts/list/search.ts';
import { ownValue } from '../../parts/ownValue.ts';
import { recordsQuery } from '../../parts/records/findRecords.ts';

export type JobsQuery = NonNullable<paths['/api/jobs']['get']['parameters']['query']>;

const STATUSES: readonly Schemas['JobStatus'][] = [
  'queued',
  'running',
  'succeeded',
  'failed',
  'cancelled',
];

/** What has created a job, in words. */
const SOURCE_LABELS: Readonly<Record<Schemas['JobSource']['kind'], string>> = {
  api: 'Request',
  schedule: 'Schedule',
  approval: 'Approval',
  webhook: 'Webhook',
  system: 'System',
};

/** What has made a job, in words. */
export const sourceLabel = (kind: string): string =>
  ownValue(SOURCE_LABELS, kind) ?? labelOfField(kind);

export const JOB_FILTERS = [
  {
    id: 'status',
    label: 'Status',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: STATUSES.map((value) => ({ value, label: labelOfField(value) })),
  },
  { id: 'type', label: 'Type', kind: 'choice', facet: true },
  {
    id: 'source',
    label: 'Started by',
    kind: 'choice',
    facet: true,
    choices: Object.entries(SOURCE_LABELS).map(([value, label]) => ({ value, label })),
  },
  {
    id: 'scheduleId',
    label: 'Schedule',
    kind: 'reference',
    of: 'schedules',
    find: findSchedules,
  },
  {
    id: 'deviceId',
    label: 'Device',
    kind: 'reference',
    of: 'devices',
    find: (text, signal) => recordsQuery('devices', text).queryFn({ signal }),
  },
  { id: 'pool', label: 'Pool', kind: 'text', example: 'default' },
  { id: 'createdBy', label: 'Created by', kind: 'choice', facet: true },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
  { id: 'createdAt', label: 'Created', kind: 'time' },
  { id: 'retryOf', label: 'Retry of', kind: 'text', example: 'job_…' },
  { id: 'internal', label: 'System jobs', kind: 'flag', on: null, off: false },
] as const satisfies readonly Filter[];
