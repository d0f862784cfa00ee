import type { Schemas } from '../../app/api.ts';
import { Time } from '../../parts/Time.tsx';
import { useToday } from '../../parts/today.tsx';
import { daylightText, localTimeText } from './scheduleText.ts';
import classes from './Schedules.module.css';

type Props = {
  runs: readonly Schemas['UpcomingRun'][];
  timezone: string;
  /** Names the list for screen readers. */
  label: string;
};

const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The next occurrences on the wall clock of their time zone, and what clock changes do to them. */
export function NextRuns({ runs, timezone, label }: Props) {
  // Years are left out that are the present one.
  const today = useToday();
  return (
    <ol className={classes.next} aria-label={label}>
      {runs.map((run) => (
        <li key={`${run.localTime} ${run.utcOffset}`} data-skipped={run.at === null || undefined}>
          <span className={classes.clock}>
            {localTimeText(run.localTime, today)}{' '}
            <span className={classes.muted}>{run.utcOffset ?? ''}</span>
          </span>
          {run.at === null ? <span>–</span> : <Time value={run.at} format="relative" />}
          {run.at !== null && timezone !== ownZone && (
            <span className={classes.ownTime}>
              your time <Time value={run.at} />
            </span>
          )}
          {run.daylightSaving !== null && (
            <span className={classes.daylight}>{daylightText(run.daylightSaving)}</span>
          )}
        </li>
      ))}
    </ol>
  );
}
