import { useDebouncedValue } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { Problem, type Schemas } from '../../app/api.ts';
import type { FieldError } from '../../parts/problems.ts';
import { upToLastRun, type ScheduleDraft } from './draft.ts';
import { previewQuery } from './scheduleQueries.ts';

const DEBOUNCE_MS = 250;

/** What the service says about the timing that is being typed. */
export type Preview = {
  /** The preview of the latest timing without a mistake. */
  data: Omit<Schemas['SchedulePreview'], 'nextRuns'> | undefined;
  /** The next times, as far as the number of runs goes; `ends`: the schedule ends with them. */
  next: ReturnType<typeof upToLastRun<Schemas['UpcomingRun']>>;
  /** The shown data is older than what is typed. */
  isOutdated: boolean;
  /** Mistakes in the timing, by field. */
  errors: readonly FieldError[];
  /** Another failure, such as an outage. */
  problem: Error | null;
};

/** Asks the service for the next occurrences, a moment after the last key. The schedule has made `runCount` runs. */
export function usePreview(draft: ScheduleDraft, runCount: number): Preview {
  const { timezone, startAt, endAt, maxRuns } = draft;
  const cronExpression = draft.cronExpression.trim();
  const typed = JSON.stringify({ cronExpression, timezone, startAt, endAt });
  const [asked] = useDebouncedValue(typed, DEBOUNCE_MS);
  const timing = JSON.parse(asked) as Parameters<typeof previewQuery>[0];
  const { data, error, isPlaceholderData } = useQuery(previewQuery(timing));
  const isInvalid = error instanceof Problem && error.status === 400;
  return {
    data: cronExpression === '' ? undefined : data,
    next: upToLastRun(data?.nextRuns ?? [], maxRuns, runCount),
    isOutdated: typed !== asked || isPlaceholderData || isInvalid,
    errors: isInvalid && typed === asked ? error.errors : [],
    problem: isInvalid ? null : error,
  };
}
