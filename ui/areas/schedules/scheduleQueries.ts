import { keepPreviousData } from '@tanstack/react-query';
import { answer, api, type Schemas } from '../../app/api.ts';
import { NOT_POLLED } from '../../app/refresh.ts';

export type Schedule = Schemas['Schedule'];
export type ScheduleSummary = Schemas['ScheduleSummary'];

type Reading = { signal: AbortSignal };

/** The key of everything about a schedule. */
export const scheduleKey = (id: string) => ['schedules', 'of', id] as const;

/** A schedule with the names of what it refers to. */
export const scheduleQuery = (id: string) => ({
  queryKey: [...scheduleKey(id), 'record'],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/schedules/{id}', {
        params: { path: { id }, query: { include: 'labels,people' } },
        signal,
      }),
    ),
});

/** How the runs of the last days ended. */
export const daysQuery = (id: string, days: number) => ({
  queryKey: [...scheduleKey(id), 'days', days],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.GET('/api/schedules/{id}/days', { params: { path: { id }, query: { days } }, signal }),
    ),
  placeholderData: keepPreviousData,
});

export type Timing = {
  cronExpression: string;
  timezone: string;
  startAt: string | null;
  endAt: string | null;
};

/** The next occurrences of an expression, as the service computes them. */
export const previewQuery = ({ cronExpression, timezone, startAt, endAt }: Timing) => ({
  queryKey: ['schedules', 'preview', cronExpression, timezone, startAt, endAt],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.POST('/api/schedules/preview', {
        body: { cronExpression, timezone, startAt, endAt, count: 10 },
        signal,
      }),
    ),
  enabled: cronExpression !== '',
  meta: NOT_POLLED,
  placeholderData: keepPreviousData,
});

export type Interval = { since: string; until: string };

/** What a backfill of an interval would run. */
export const backfillQuery = (id: string, interval: Interval | undefined) => ({
  queryKey: [...scheduleKey(id), 'backfill', interval],
  queryFn: ({ signal }: Reading) =>
    answer(
      api.POST('/api/schedules/{id}/backfill/preview', {
        params: { path: { id } },
        body: interval ?? { since: '', until: '' },
        signal,
      }),
    ),
  enabled: interval !== undefined,
  meta: NOT_POLLED,
});
