import { findSchedules } from '../../app/findSchedules.ts';
import type { paths } from '../../app/schema.d.ts';
import type { Filter } from '../../parts/list/search.ts';

export type SchedulesQuery = NonNullable<paths['/api/schedules']['get']['parameters']['query']>;
export type RunsQuery = NonNullable<paths['/api/schedules/logs']['get']['parameters']['query']>;

export const SCHEDULE_FILTERS = [
  {
    id: 'enabled',
    label: 'State',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: [
      { value: 'true', label: 'Active' },
      { value: 'false', label: 'Paused' },
    ],
  },
  { id: 'id', label: 'Name', kind: 'reference', of: 'schedules', find: findSchedules },
  { id: 'jobType', label: 'Job type', kind: 'choice', facet: true },
  { id: 'timezone', label: 'Time zone', kind: 'choice', facet: true },
  { id: 'createdBy', label: 'Created by', kind: 'choice', facet: true },
  { id: 'tenantId', label: 'Tenant', kind: 'choice', facet: true },
] as const satisfies readonly Filter[];

export const RUN_FILTERS = [
  {
    id: 'outcome',
    label: 'Outcome',
    kind: 'choice',
    inline: true,
    facet: true,
    choices: [
      { value: 'fired', label: 'Started' },
      { value: 'skipped', label: 'Skipped' },
      { value: 'failed', label: 'Not started' },
      { value: 'buffered', label: 'Waiting' },
    ],
  },
  {
    id: 'kind',
    label: 'Kind',
    kind: 'choice',
    facet: true,
    choices: [
      { value: 'scheduled', label: 'Scheduled' },
      { value: 'trigger', label: 'Triggered' },
      { value: 'backfill', label: 'Backfill' },
    ],
  },
  { id: 'reason', label: 'Reason', kind: 'choice', facet: true },
  { id: 'dueAt', label: 'Time', kind: 'time' },
] as const satisfies readonly Filter[];
