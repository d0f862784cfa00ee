import { DAY_MS } from '../../../domain/shared/durations.ts';
import { answer, api, type Schemas } from '../../app/api.ts';
import type { paths } from '../../app/schema.d.ts';
import { serverNow } from '../../parts/clock.ts';
import { mergeNames } from '../../parts/names.ts';
import { isFullBackup, upcoming } from './findings.ts';

type BackupQuery = NonNullable<paths['/api/backup']['get']['parameters']['query']>;
type ScheduleQuery = NonNullable<paths['/api/schedules']['get']['parameters']['query']>;
type RunsQuery = NonNullable<paths['/api/schedules/logs']['get']['parameters']['query']>;
type WebhookQuery = NonNullable<paths['/api/webhooks']['get']['parameters']['query']>;
type Asked = { signal: AbortSignal };

/** A time before now, to the minute: the same query is not sent again for each second. */
export const daysAgo = (days: number, now = serverNow()): string =>
  new Date(Math.floor((now - days * DAY_MS) / 60_000) * 60_000).toISOString();

/** Requests of which what changes is read too. */
export const SHOWN_REQUESTS = 5;
/** For how long a failed request of one's own is shown. */
const OWN_DAYS = 7;
/** Failed jobs that are grouped; a list has the others. */
export const GROUPED_JOBS = 200;
/** Webhooks that fail, and as many that were disabled for it. */
const SHOWN_WEBHOOKS = 50;
const NAMES = 'labels,people';
const PAGE = 200;
/** The key of what is read of schedules of backups. */
export const NEXT_BACKUP_KEY = ['home', 'backups', 'next'] as const;

export const toDecideQuery = {
  queryKey: ['home', 'requests', 'toDecide'],
  queryFn: ({ signal }: Asked) =>
    answer(
      api.GET('/api/workflows', {
        params: {
          query: {
            assignedToMe: true,
            status: ['pending'],
            sort: 'expiresAt',
            limit: SHOWN_REQUESTS,
            include: NAMES,
          },
        },
        signal,
      }),
    ),
} as const;

/** Own requests that were approved and not carried out. */
export const ownFailedQuery = {
  queryKey: ['home', 'requests', 'ownFailed'],
  queryFn: ({ signal }: Asked) =>
    answer(
      api.GET('/api/workflows', {
        params: {
          query: {
            requestedByMe: true,
            execution: ['stale', 'failed'],
            'updatedAt.gte': daysAgo(OWN_DAYS),
            limit: SHOWN_REQUESTS,
          },
        },
        signal,
      }),
    ),
} as const;

/** Own requests that wait; what stops them is read one by one. */
export const ownPendingQuery = {
  queryKey: ['home', 'requests', 'ownPending'],
  queryFn: ({ signal }: Asked) =>
    answer(
      api.GET('/api/workflows', {
        params: { query: { requestedByMe: true, status: ['pending'], limit: SHOWN_REQUESTS } },
        signal,
      }),
    ),
} as const;

/** Jobs that failed within a day, whenever they were created: some retry or wait for longer. What deliveries have failed is shown by webhook. */
export const failedJobsQuery = {
  queryKey: ['home', 'failedJobs'],
  queryFn: ({ signal }: Asked) =>
    answer(
      api.GET('/api/jobs', {
        params: {
          query: {
            status: ['failed'],
            'source.not': ['webhook'],
            'finishedAt.gte': daysAgo(1),
            limit: GROUPED_JOBS,
            count: true,
          },
        },
        signal,
      }),
    ),
} as const;

/** Webhooks whose every attempt fails, and those that were disabled for that, as far as they are shown. */
export const webhooksQuery = {
  queryKey: ['home', 'webhooks'],
  queryFn: async ({ signal }: Asked) => {
    const read = (query: Pick<WebhookQuery, 'enabled' | 'failingSince.lte' | 'disabledReason'>) =>
      answer(
        api.GET('/api/webhooks', {
          params: { query: { ...query, limit: SHOWN_WEBHOOKS } },
          signal,
        }),
      );
    const pages = await Promise.all([
      read({ enabled: true, 'failingSince.lte': new Date(serverNow()).toISOString() }),
      read({ disabledReason: ['failing', 'endpoint_removed'] }),
    ]);
    return {
      items: pages.flatMap(({ items }) => items),
      hasMore: pages.some(({ nextCursor }) => nextCursor !== null),
    };
  },
  // No event says that a delivery has failed.
  refetchInterval: 60_000,
} as const;

/** Reasons for which a scheduled time has no job, although nobody wanted that. */
const MISSED = [
  'missed',
  'owner_denied',
  'unknown_job_type',
  'job_type_disabled',
  'payload_invalid',
  'target_not_found',
  'reference_not_found',
  'quota_exceeded',
] as const;

/** The newest missed times of a day. If there are more, also how many times each schedule has missed. */
export const missedRunsQuery = {
  queryKey: ['home', 'missedRuns'],
  queryFn: async ({ signal }: Asked) => {
    const read = (part: Pick<RunsQuery, 'limit' | 'facets'>) => {
      const query: RunsQuery = {
        reason: [...MISSED],
        'dueAt.gte': daysAgo(1),
        include: 'labels',
        ...part,
      };
      return answer(api.GET('/api/schedules/logs', { params: { query }, signal }));
    };
    const { items, nextCursor, included } = await read({ limit: PAGE });
    if (nextCursor === null) return { items, names: included ?? {}, bySchedule: undefined };
    // One noisy schedule may have all of the newest.
    const counted = await read({ limit: 1, facets: ['scheduleId'] });
    return {
      items,
      names: mergeNames([included, counted.included]),
      bySchedule: counted.facets?.scheduleId ?? null,
    };
  },
} as const;

/** The records of one tenant; undefined: of all tenants that the reader may see. */
const ofTenant = (tenantId: string | undefined): { tenantId?: string[] } =>
  tenantId === undefined ? {} : { tenantId: [tenantId] };

/**
 * The newest full backup that can be restored as far as is known, and the one with the newest test restore: one of
 * some sections protects nothing else, and one of a tenant no other tenant.
 */
export const backupsQuery = (tenantId: string | undefined) => ({
  queryKey: ['home', 'backups', 'newest', tenantId],
  queryFn: async ({ signal }: Asked) => {
    const first = (sort: '-createdAt' | '-restoreTestedAt') => {
      const query: BackupQuery = {
        ...ofTenant(tenantId),
        status: ['completed'],
        mode: ['full'],
        archiveError: ['none'],
        limit: 1,
        sort,
      };
      return answer(api.GET('/api/backup', { params: { query }, signal }));
    };
    const [newest, tested] = await Promise.all([first('-createdAt'), first('-restoreTestedAt')]);
    return {
      last: newest.backups[0],
      tested: tested.backups.find(({ restoreTestedAt }) => restoreTestedAt !== null),
    };
  },
});

/** All schedules that make backups and are not paused. */
async function readBackupSchedules(tenantId: string | undefined, signal: AbortSignal) {
  const schedules: Schemas['ScheduleSummary'][] = [];
  let cursor: string | null = null;
  do {
    const query: ScheduleQuery = {
      ...ofTenant(tenantId),
      jobType: ['backup.create'],
      enabled: true,
      limit: PAGE,
      ...(cursor !== null && { cursor }),
    };
    const page: Schemas['ScheduleList'] = await answer(
      api.GET('/api/schedules', { params: { query }, signal }),
    );
    schedules.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== null);
  return schedules;
}

/** When the next full backup is scheduled; null if none is. Lists leave out what a schedule would back up. */
export const nextBackupQuery = (tenantId: string | undefined) => ({
  queryKey: [...NEXT_BACKUP_KEY, tenantId],
  queryFn: async ({ signal }: Asked): Promise<string | null> => {
    for (const { id, at } of upcoming(await readBackupSchedules(tenantId, signal))) {
      const { payload } = await answer(
        api.GET('/api/schedules/{id}', { params: { path: { id } }, signal }),
      );
      if (isFullBackup(payload)) return at;
    }
    return null;
  },
});

/** Kinds of inventory records, as events name them. They do not change while a page is open. */
export const kindsQuery = {
  queryKey: ['home', 'kinds'],
  queryFn: ({ signal }: Asked) => answer(api.GET('/api/inventory/resources', { signal })),
  staleTime: Infinity,
} as const;

/** A filter has at most as many values. */
const MAX_TYPES = 50;
/** Changes that are read; those of an import are one line. */
const READ_CHANGES = 100;
export const SHOWN_CHANGES = 12;

/** The list, where a stream could be asked for too. */
const readEvents = (type: readonly string[], signal: AbortSignal) =>
  answer<Schemas['EventList'] | string>(
    api.GET('/api/events', {
      params: {
        // The types are those of the resources of the same server.
        query: { type: type as Schemas['EventType'][], limit: READ_CHANGES, include: 'people' },
      },
      signal,
    }),
  );

const chunks = <T>(items: readonly T[], size: number): T[][] =>
  items.length === 0 ? [] : [items.slice(0, size), ...chunks(items.slice(size), size)];

/** The newest changes of the inventory. */
export const changesQuery = (types: readonly string[]) =>
  ({
    queryKey: ['home', 'changes', types],
    queryFn: async ({ signal }: Asked) => {
      const answers = await Promise.all(
        chunks(types, MAX_TYPES).map((some) => readEvents(some, signal)),
      );
      const pages = answers.filter((page) => typeof page !== 'string');
      return {
        items: pages
          .flatMap(({ items }) => items)
          .sort((one, other) => other.sequence - one.sequence)
          .slice(0, READ_CHANGES),
        hasMore: pages.some(({ nextCursor }) => nextCursor !== null),
        names: mergeNames(pages.map(({ included }) => included)),
      };
    },
  }) as const;

/** Whether there is any inventory: one site, prefix or device is enough. */
export const emptyQuery = {
  queryKey: ['home', 'empty'],
  queryFn: async ({ signal }: Asked) => {
    const first = { params: { query: { limit: 1 } }, signal };
    const [sites, prefixes, devices] = await Promise.all([
      answer(api.GET('/api/inventory/sites', first)),
      answer(api.GET('/api/inventory/prefixes', first)),
      answer(api.GET('/api/inventory/devices', first)),
    ]);
    return [sites, prefixes, devices].every(({ items }) => items.length === 0);
  },
} as const;
