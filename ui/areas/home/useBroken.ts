import { useQuery } from '@tanstack/react-query';
import { failingWebhooks, groupFailures, groupMissed, missedLeftOut } from './findings.ts';
import { failedJobsQuery, missedRunsQuery, webhooksQuery } from './queries.ts';
import { toServerTime } from '../../parts/clock.ts';

type Allowed = { jobs: boolean; webhooks: boolean; schedules: boolean };

/** What has failed within a day, as far as the reader may read it. */
export function useBroken(allowed: Allowed) {
  const jobs = useQuery({ ...failedJobsQuery, enabled: allowed.jobs });
  const webhooks = useQuery({ ...webhooksQuery, enabled: allowed.webhooks });
  const runs = useQuery({ ...missedRunsQuery, enabled: allowed.schedules });
  const reads = [
    ...(allowed.jobs ? [jobs] : []),
    ...(allowed.webhooks ? [webhooks] : []),
    ...(allowed.schedules ? [runs] : []),
  ];
  return {
    failures: groupFailures(jobs.data?.items ?? []),
    failed: jobs.data?.count ?? undefined,
    isPartOfJobs: jobs.data?.nextCursor != null,
    webhooks: failingWebhooks(webhooks.data?.items ?? []),
    hasMoreWebhooks: webhooks.data?.hasMore === true,
    webhooksReadAt: webhooks.isSuccess
      ? new Date(toServerTime(webhooks.dataUpdatedAt)).toISOString()
      : undefined,
    missed: groupMissed(runs.data?.items ?? [], runs.data?.names ?? {}, runs.data?.bySchedule),
    missedLeftOut: missedLeftOut(runs.data?.bySchedule),
    reads,
    isRead: reads.every(({ isSuccess }) => isSuccess),
  };
}

export type Broken = ReturnType<typeof useBroken>;
