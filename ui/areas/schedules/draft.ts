import type { RetryPolicy } from '../../parts/form/retryPolicy.ts';
import type { Target } from '../../parts/records/target.ts';
import type { OverlapPolicy } from './scheduleText.ts';

/** What the form of a schedule holds. Numbers that are being typed may be empty. */
export type ScheduleDraft = {
  name: string;
  description: string;
  cronExpression: string;
  timezone: string;
  jobType: string;
  payload: Record<string, unknown>;
  /** What its jobs are about; null for types without targets, and until one is chosen. */
  target: Target | null;
  retryPolicy: Partial<RetryPolicy>;
  enabled: boolean;
  overlapPolicy: OverlapPolicy;
  catchupWindowSeconds: number | '';
  jitterSeconds: number | '';
  startAt: string | null;
  endAt: string | null;
  maxRuns: number | '';
};

export const DEFAULT_CATCHUP_SECONDS = 3_600;

export const newDraft = (timezone: string): ScheduleDraft => ({
  name: '',
  description: '',
  cronExpression: '',
  timezone,
  jobType: '',
  payload: {},
  target: null,
  retryPolicy: {},
  enabled: true,
  overlapPolicy: 'skip',
  catchupWindowSeconds: DEFAULT_CATCHUP_SECONDS,
  jitterSeconds: 0,
  startAt: null,
  endAt: null,
  maxRuns: '',
});

/** A schedule of the API, as far as people set its fields. */
type Saved = Omit<ScheduleDraft, 'catchupWindowSeconds' | 'jitterSeconds' | 'maxRuns'> & {
  catchupWindowSeconds: number;
  jitterSeconds: number;
  maxRuns: number | null;
};

/** The fields that people set. */
export const draftOf = ({
  name,
  description,
  cronExpression,
  timezone,
  jobType,
  payload,
  target,
  retryPolicy,
  enabled,
  overlapPolicy,
  catchupWindowSeconds,
  jitterSeconds,
  startAt,
  endAt,
  maxRuns,
}: Saved): ScheduleDraft => ({
  name,
  description,
  cronExpression,
  timezone,
  jobType,
  payload,
  target: target && { kind: target.kind, id: target.id },
  retryPolicy,
  enabled,
  overlapPolicy,
  catchupWindowSeconds,
  jitterSeconds,
  startAt,
  endAt,
  maxRuns: maxRuns ?? '',
});

/**
 * The next times of a schedule that has made `runCount` runs, up to the last one that its number of runs allows.
 * `ends`: it ends with them.
 */
export function upToLastRun<Run extends { at: string | null }>(
  runs: readonly Run[],
  maxRuns: ScheduleDraft['maxRuns'],
  runCount: number,
): { runs: readonly Run[]; ends: boolean } {
  const left = maxRuns === '' ? Infinity : maxRuns - runCount;
  if (left <= 0) return { runs: [], ends: true };
  const times = runs.flatMap(({ at }, index) => (at === null ? [] : index));
  const last = times[left - 1];
  return last === undefined ? { runs, ends: false } : { runs: runs.slice(0, last + 1), ends: true };
}

/** The body of a request that creates a schedule. An empty number is its default. */
export function requestOf(draft: ScheduleDraft) {
  const { catchupWindowSeconds, jitterSeconds, maxRuns, ...rest } = draft;
  return {
    ...rest,
    name: rest.name.trim(),
    cronExpression: rest.cronExpression.trim(),
    catchupWindowSeconds:
      catchupWindowSeconds === '' ? DEFAULT_CATCHUP_SECONDS : catchupWindowSeconds,
    jitterSeconds: jitterSeconds === '' ? 0 : jitterSeconds,
    maxRuns: maxRuns === '' ? null : maxRuns,
  };
}

/** The body of a change: of the retry policy, fields that the form started with and has no more are removed. */
export function changeOf(draft: ScheduleDraft, started: ScheduleDraft) {
  const removed = Object.keys(started.retryPolicy).filter((name) => !(name in draft.retryPolicy));
  return {
    ...requestOf(draft),
    retryPolicy: {
      ...draft.retryPolicy,
      ...Object.fromEntries(removed.map((name) => [name, null])),
    },
  };
}
