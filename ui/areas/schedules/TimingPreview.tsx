import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { Section } from '../../parts/Section.tsx';
import { NextRuns } from './NextRuns.tsx';
import classes from './Schedules.module.css';
import type { Preview } from './usePreview.ts';

/** The next ten times of what is being typed. */
export function TimingPreview({ preview, timezone }: { preview: Preview; timezone: string }) {
  const { data, next, isOutdated, errors, problem } = preview;
  return (
    <Section title="Next times" note={timezone}>
      {problem && <ProblemNote problem={problem} retry={undefined} hasData={data !== undefined} />}
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
          {next.runs.length === 0 ? (
            <p className={classes.muted}>
              {next.ends ? 'It has made all its runs.' : 'It never runs.'}
            </p>
          ) : (
            <NextRuns runs={next.runs} timezone={data.timezone} label="Next times" />
          )}
          {next.runs.length > 0 && next.ends && <p className={classes.muted}>Then it ends.</p>}
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
