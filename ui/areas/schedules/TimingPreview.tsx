import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { NextRuns } from './NextRuns.tsx';
import classes from './Schedules.module.css';
import type { Preview } from './usePreview.ts';

/** The next ten times of what is being typed. */
export function TimingPreview({ preview, timezone }: { preview: Preview; timezone: string }) {
  const { data, isOutdated, errors, problem } = preview;
  return (
    <Section title="Next times" note={timezone}>
      {problem && <ProblemNote problem={problem} hasData={data !== undefined} />}
      {!data && errors.length === 0 && !problem && (
        <p className={classes.muted}>Type an expression to see when it runs.</p>
      )}
      {errors.length > 0 && (
        <p className={classes.muted} role="status">
          The expression is not complete
          {data ? '; these are the times of the last one that was' : ''}.
        </p>
      )}
      {data && (
        <div className={classes.preview} data-outdated={isOutdated || undefined}>
          {data.nextRuns.length === 0 ? (
            <p className={classes.muted}>It never runs.</p>
          ) : (
            <NextRuns runs={data.nextRuns} timezone={data.timezone} label="Next times" />
          )}
          {data.days === 'either' && (
            <p className={classes.muted}>
              A day matches if the day of the month or the day of the week does.
            </p>
          )}
        </div>
      )}
    </Section>
  );
}
