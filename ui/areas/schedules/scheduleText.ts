import { formatCount, labelOfField } from '../../parts/format.ts';
import { ownValue } from '../../parts/ownValue.ts';
import type { Tone } from '../../parts/statuses.ts';

// The fields that are needed, without the types of the API: its client needs a browser.
type Reason =
  | 'overlap'
  | 'paused'
  | 'missed'
  | 'changed'
  | 'deleted'
  | 'ended'
  | 'owner_denied'
  | 'unknown_job_type'
  | 'job_type_disabled'
  | 'payload_invalid'
  | 'target_not_found'
  | 'reference_not_found'
  | 'quota_exceeded';
type RunEnd = {
  outcome: 'fired' | 'skipped' | 'failed' | 'buffered';
  reason: Reason | null;
  jobStatus: 'queued' | 'running' | 'succeeded' | 'failed' | 'cancelled' | null;
};
type RunCount = RunEnd & { count: number };

/** Why a run created no job, in words. */
const REASONS: Readonly<Record<Reason, string>> = {
  overlap: 'A job of the schedule was unfinished.',
  paused: 'The schedule was paused.',
  missed: 'Nothing ran it within the catch-up window.',
  changed: 'The timing of the schedule was changed before it ran.',
  deleted: 'The schedule was deleted before it ran.',
  ended: 'The schedule had made its last run.',
  owner_denied: 'The owner no longer holds the permissions of the job.',
  unknown_job_type: 'This version has no such job type.',
  job_type_disabled: 'The job type was disabled.',
  payload_invalid: 'The job type does not accept the payload.',
  target_not_found:
    'The target of its jobs no longer exists, belongs to another tenant, or may not be read by its owner.',
  reference_not_found:
    'The payload names a record that no longer exists, or that its owner may not read.',
  quota_exceeded: 'The tenant has as many unfinished jobs as it may have.',
};

export const reasonText = (reason: Reason | null): string =>
  reason === null ? '' : (ownValue(REASONS, reason) ?? `Reason: ${reason}.`);

export type OverlapPolicy = 'skip' | 'bufferOne' | 'allowAll' | 'cancelOther';

export const OVERLAP_TEXTS: Readonly<Record<OverlapPolicy, { label: string; detail: string }>> = {
  skip: { label: 'Skip', detail: 'The occurrence is skipped.' },
  bufferOne: {
    label: 'Wait',
    detail: 'One occurrence waits until the job has ended; further ones are skipped.',
  },
  allowAll: { label: 'Run side by side', detail: 'The jobs run at the same time.' },
  cancelOther: {
    label: 'Cancel the unfinished job',
    detail: 'The job is cancelled; the occurrence runs when it has ended. Needs job:cancel.',
  },
};

export const overlapLabel = (policy: OverlapPolicy): string =>
  ownValue(OVERLAP_TEXTS, policy)?.label ?? labelOfField(policy);

/** How a run ended, for people: the status of its job, or why there is none. */
export function runStatus({ outcome, reason, jobStatus }: RunEnd): string {
  if (outcome === 'fired') return jobStatus ?? 'fired';
  return outcome === 'skipped' && reason === 'missed' ? 'missed' : outcome;
}

/** The kinds of outcome in a calendar, the worst first. */
export const OUTCOMES = [
  { name: 'failed', label: 'Failed', tone: 'bad' },
  { name: 'missed', label: 'Missed', tone: 'warning' },
  { name: 'cancelled', label: 'Cancelled', tone: 'neutral' },
  { name: 'skipped', label: 'Skipped', tone: 'neutral' },
  { name: 'running', label: 'Not ended', tone: 'active' },
  { name: 'succeeded', label: 'Succeeded', tone: 'good' },
  { name: 'purged', label: 'Ran, job purged', tone: 'neutral' },
] as const satisfies readonly { name: string; label: string; tone: Tone }[];

export type OutcomeName = (typeof OUTCOMES)[number]['name'];

function outcomeOf({ outcome, reason, jobStatus }: RunCount): OutcomeName {
  if (outcome === 'failed' || jobStatus === 'failed') return 'failed';
  if (outcome === 'skipped') return reason === 'missed' ? 'missed' : 'skipped';
  if (outcome === 'buffered' || jobStatus === 'queued' || jobStatus === 'running') return 'running';
  return jobStatus ?? 'purged';
}

/** How many runs of a day ended how, without outcomes that it has none of, the worst first. */
export function countOutcomes(
  runs: readonly RunCount[],
): { name: OutcomeName; label: string; tone: Tone; count: number }[] {
  const counts = new Map<OutcomeName, number>();
  for (const run of runs) {
    const name = outcomeOf(run);
    counts.set(name, (counts.get(name) ?? 0) + run.count);
  }
  return OUTCOMES.flatMap((each) => {
    const count = counts.get(each.name);
    return count === undefined ? [] : [{ ...each, count }];
  });
}

/** What a day of a calendar says: `21 Nov 2026: 23 succeeded, 1 failed`. */
export function dayText(date: string, runs: readonly RunCount[]): string {
  const words = countOutcomes(runs).map(
    ({ label, count }) => `${formatCount(count)} ${label.toLowerCase()}`,
  );
  return `${dateText(date)}: ${words.length === 0 ? 'no runs' : words.join(', ')}`;
}

/** A date as `Sat 21 Nov 2026`. It has no time zone. */
export const dateText = (date: string): string =>
  new Date(`${date}T00:00:00Z`)
    .toLocaleDateString('en-GB', {
      timeZone: 'UTC',
      weekday: 'short',
      day: 'numeric',
      month: 'short',
      year: 'numeric',
    })
    .replace(',', '');

type Dated = { date: string };

/** Days as weeks from Monday to Sunday; undefined where the first and the last week have none. */
export function weeksOf<Day extends Dated>(days: readonly Day[]): (Day | undefined)[][] {
  const [first] = days;
  if (!first) return [];
  const monday = (new Date(`${first.date}T00:00:00Z`).getUTCDay() + 6) % 7;
  const cells: (Day | undefined)[] = [...Array.from({ length: monday }, () => undefined), ...days];
  while (cells.length % 7 !== 0) cells.push(undefined);
  return Array.from({ length: cells.length / 7 }, (_, week) => cells.slice(week * 7, week * 7 + 7));
}

/** The wall clock of an occurrence: `Mon 30 Nov 02:30`, with the year if that is another one. */
export function localTimeText(localTime: string, now: Date): string {
  const day = dateText(localTime.slice(0, 10)).replace(` ${now.getUTCFullYear()}`, '');
  return `${day} ${localTime.slice(11, 16)}`;
}

/** What a clock change does to an occurrence; undefined without one. */
export function daylightText(
  daylightSaving: 'skipped' | 'first' | 'second' | null,
): string | undefined {
  if (daylightSaving === 'skipped') return 'Skipped: clocks are set forward';
  if (daylightSaving === 'first') return 'First of two: clocks are set back';
  return daylightSaving === 'second' ? 'Second of two: clocks are set back' : undefined;
}

/** Expressions to start from. */
export const PRESETS: readonly { label: string; expression: string }[] = [
  { label: 'Every 5 minutes', expression: '*/5 * * * *' },
  { label: 'Hourly', expression: '0 * * * *' },
  { label: 'Daily at 02:30', expression: '30 2 * * *' },
  { label: 'Weekdays at 08:00', expression: '0 8 * * mon-fri' },
  { label: 'Sundays at 03:00', expression: '0 3 * * sun' },
  { label: 'First of the month', expression: '0 4 1 * *' },
];

export const kindText = (kind: 'scheduled' | 'trigger' | 'backfill'): string =>
  kind === 'scheduled' ? 'Scheduled' : kind === 'trigger' ? 'Triggered' : labelOfField(kind);
