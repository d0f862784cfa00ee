import { DAY_MS } from '../../../domain/shared/durations.ts';
import { formatNumberOf } from '../../parts/format.ts';
import { labelOf, type Names } from '../../parts/names.ts';

type FailedJob = {
  id: string;
  type: string;
  error: { code: string; message: string } | null;
  createdAt: string;
  finishedAt: string | null;
};

/** Jobs that failed for the same reason. */
export type FailureGroup = {
  key: string;
  type: string;
  code: string;
  /** The message of the newest one. */
  message: string;
  count: number;
  /** That which failed last. */
  newest: FailedJob;
};

/** When a job failed, as a text that sorts by time. */
const failedAt = ({ finishedAt, createdAt }: FailedJob): string => finishedAt ?? createdAt;

/** Failed jobs by type and error code, those with most jobs first. */
export function groupFailures(jobs: readonly FailedJob[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const job of jobs) {
    const code = job.error?.code ?? 'unknown';
    const key = `${job.type} ${code}`;
    const group = groups.get(key);
    const count = (group?.count ?? 0) + 1;
    // One that was created long ago may have failed last.
    const newest = group && failedAt(group.newest) >= failedAt(job) ? group.newest : job;
    groups.set(key, {
      key,
      type: job.type,
      code,
      message: newest.error?.message ?? '',
      count,
      newest,
    });
  }
  return [...groups.values()].sort((one, other) => other.count - one.count);
}

type Webhook = {
  id: string;
  description: string;
  endpointUrl: string;
  enabled: boolean;
  failingSince: string | null;
  disabledAt: string | null;
  disabledReason: string | null;
};

export type FailingWebhook = { id: string; label: string; since: string | null; text: string };

const DISABLED: Readonly<Record<string, string>> = {
  endpoint_removed: 'disabled, since the endpoint answered 410',
  failing: 'disabled, since every attempt failed for five days',
};

const hostOf = (url: string): string => {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
};

/** Webhooks that fail, or that were disabled for that. Those that a person has disabled are well. */
export const failingWebhooks = (webhooks: readonly Webhook[]): FailingWebhook[] =>
  webhooks.flatMap(
    ({ id, description, endpointUrl, enabled, failingSince, disabledReason, disabledAt }) => {
      const label = description === '' ? hostOf(endpointUrl) : description;
      const disabled = disabledReason === null ? undefined : DISABLED[disabledReason];
      if (!enabled)
        return disabled === undefined ? [] : [{ id, label, since: disabledAt, text: disabled }];
      return failingSince === null
        ? []
        : [{ id, label, since: failingSince, text: 'every attempt fails' }];
    },
  );

type Run = { scheduleId: string; reason: string | null; dueAt: string };

/** Scheduled times of a schedule for which there is no job. */
export type MissedGroup = {
  key: string;
  scheduleId: string;
  label: string | undefined;
  /** None of one whose times were only counted. */
  reason: string | undefined;
  count: number;
  /** There may be more. */
  isPart: boolean;
  /** The newest scheduled time, if it was read. */
  dueAt: string | undefined;
};

/** Missed times by schedule. `exact`: all were counted. `others`: those of schedules that are not listed. */
type BySchedule = {
  values: readonly { value: unknown; count: number }[];
  exact: boolean;
  others: number;
};

const REASONS: Readonly<Record<string, string>> = {
  missed: 'no process ran in time',
  owner_denied: 'its owner may no longer create the job',
  unknown_job_type: 'the job type no longer exists',
  job_type_disabled: 'the job type is disabled',
  payload_invalid: 'the job type no longer accepts the payload',
  target_not_found: 'the target of its jobs no longer exists',
  reference_not_found: 'a record that its payload names no longer exists',
  quota_exceeded: 'a quota of the tenant was reached',
};

/**
 * Missed times by schedule and reason. `runs` has the newest first. If they are not all, `bySchedule` has the counts
 * of all schedules, or null if they could not be counted: schedules of which none was read are added.
 */
export function groupMissed(
  runs: readonly Run[],
  names: Names,
  bySchedule?: BySchedule | null,
): MissedGroup[] {
  const groups = new Map<string, MissedGroup>();
  for (const { scheduleId, reason, dueAt } of runs) {
    const key = `${scheduleId} ${reason ?? ''}`;
    const group = groups.get(key);
    if (group) group.count += 1;
    else
      groups.set(key, {
        key,
        scheduleId,
        label: labelOf(names, scheduleId, 'schedules'),
        reason: REASONS[reason ?? ''] ?? reason ?? '',
        count: 1,
        isPart: bySchedule !== undefined,
        dueAt,
      });
  }
  const read = new Set(runs.map(({ scheduleId }) => scheduleId));
  const counted = (bySchedule?.values ?? [])
    .filter(({ value }) => typeof value === 'string' && !read.has(value))
    .map(({ value, count }): MissedGroup => {
      const scheduleId = String(value);
      return {
        key: scheduleId,
        scheduleId,
        label: labelOf(names, scheduleId, 'schedules'),
        reason: undefined,
        count,
        isPart: bySchedule?.exact !== true,
        dueAt: undefined,
      };
    });
  return [...groups.values(), ...counted];
}

/** What `groupMissed` leaves out; undefined if it has all schedules. */
export function missedLeftOut(bySchedule: BySchedule | null | undefined): string | undefined {
  if (bySchedule === undefined) return undefined;
  if (bySchedule?.exact !== true) return 'Older missed times were not counted.';
  return bySchedule.others === 0
    ? undefined
    : `Other schedules missed ${formatNumberOf(bySchedule.others, 'time')}.`;
}

export type Tone = 'good' | 'warning' | 'bad';

/** From how many days on the newest backup, or its test restore, is worth a warning, or worse. */
const BACKUP_DAYS = [2, 8] as const;
const TEST_DAYS = [8, 30] as const;

const toneOfAge = (
  at: string | undefined,
  now: number,
  [old, tooOld]: readonly [number, number],
): Tone => {
  if (at === undefined) return 'bad';
  const days = (now - Date.parse(at)) / DAY_MS;
  return days > tooOld ? 'bad' : days > old ? 'warning' : 'good';
};

/** How much of something the reader sees. */
export type Sight = 'all' | 'some' | 'none';

type Seen = { jobs: Sight; webhooks: Sight; schedules: Sight; backups: Sight };

/**
 * The line that is shown if nothing was found. It says nothing of what the reader does not see: all is well only for
 * who sees all, and what is seen in part is good only there.
 */
export function wellText(
  seen: Seen,
  isProtected: boolean,
): { tone: Tone | undefined; text: string } {
  const { jobs, webhooks, schedules, backups } = seen;
  const checked = [
    'nothing waits for you',
    jobs === 'all' && 'no job failed in 24 hours',
    jobs === 'some' && 'no job that you may see failed in 24 hours',
    webhooks === 'all' && 'webhooks deliver',
    webhooks === 'some' && 'the webhooks that you may see deliver',
    schedules === 'all' && 'no scheduled time was missed',
    schedules === 'some' && 'no scheduled time that you may see was missed',
    backups === 'all' && isProtected && 'backups are recent and test-restored',
  ].filter((text) => typeof text === 'string');
  const sentence = checked.join(', ');
  const sights = [jobs, webhooks, schedules, backups];
  return {
    tone: sights.includes('some') || checked.length === 1 ? undefined : 'good',
    text:
      isProtected && sights.every((sight) => sight === 'all')
        ? `All is well: ${sentence}.`
        : `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`,
  };
}

type Backup = {
  id: string;
  label: string;
  createdAt: string;
  snapshotAt: string | null;
  restoreTestedAt: string | null;
};

export type Protection = {
  last: Backup | undefined;
  /** None for readers who may not see the backups of everything: a newer one may be among the others. */
  lastTone: Tone | undefined;
  /** The backup whose test restore is the newest one that succeeded. */
  tested: Backup | undefined;
  testedTone: Tone | undefined;
};

type WithTimes = { id: string; nextRuns: readonly { at: string | null }[] };

/** Schedules that will run, with their next times, the next one first. A local time that does not exist is skipped. */
export const upcoming = (schedules: readonly WithTimes[]): { id: string; at: string }[] =>
  schedules
    .flatMap(({ id, nextRuns }) =>
      nextRuns.flatMap(({ at }) => (at === null ? [] : [{ id, at }])).slice(0, 1),
    )
    .sort((one, other) => one.at.localeCompare(other.at));

/** Whether the jobs of a schedule back up all sections, by their payload. */
export const isFullBackup = ({ mode = 'full' }: Readonly<Record<string, unknown>>): boolean =>
  mode === 'full';

/** How well the data is protected. */
export function protectionOf(
  { last, tested }: Pick<Protection, 'last' | 'tested'>,
  now: number,
  seesAll: boolean,
): Protection {
  return {
    last,
    lastTone: seesAll
      ? toneOfAge(last?.snapshotAt ?? last?.createdAt, now, BACKUP_DAYS)
      : undefined,
    tested,
    testedTone: seesAll
      ? toneOfAge(tested?.restoreTestedAt ?? undefined, now, TEST_DAYS)
      : undefined,
  };
}

export type ChangeText = { verb: string; kind: string; label: string; fields: readonly string[] };

const VERBS: Readonly<Record<string, string>> = {
  created: 'created',
  updated: 'changed',
  deleted: 'deleted',
};

/** What an event of the inventory says, as words. */
export function changeText({ type, data }: { type: string; data: unknown }): ChangeText {
  const [, kind = '', verb = ''] = type.split('.');
  const { label, changed } = data as { label?: unknown; changed?: unknown };
  return {
    verb: VERBS[verb] ?? verb,
    kind,
    label: typeof label === 'string' ? label : '',
    fields: Array.isArray(changed) ? changed.map(String) : [],
  };
}

type InventoryEvent = {
  id: string;
  type: string;
  actorId: string;
  subject: { id: string };
  data: unknown;
  createdAt: string;
};

/** Changes of the same kind by the same actor, one after the other: an import is one line. */
export type ChangeGroup = ChangeText & {
  count: number;
  newest: InventoryEvent;
  /** Older changes, which were not read, may belong to it. */
  isPart: boolean;
};

type Read = { events: readonly InventoryEvent[]; hasMore: boolean };

/** The newest changes in at most `most` lines. `events` has the newest first. */
export function groupChanges({ events, hasMore }: Read, most: number): ChangeGroup[] {
  const groups: ChangeGroup[] = [];
  for (const event of events) {
    const last = groups.at(-1);
    if (last?.newest.type === event.type && last.newest.actorId === event.actorId) last.count += 1;
    else if (groups.length === most) return groups;
    else groups.push({ ...changeText(event), count: 1, newest: event, isPart: false });
  }
  return groups.map((group, index) =>
    index === groups.length - 1 ? { ...group, isPart: hasMore } : group,
  );
}
