import { useMemo } from 'react';
import { Duration } from '../../parts/Duration.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import type { Job } from './jobQueries.ts';
import { attemptsOf } from './jobText.ts';
import classes from './Jobs.module.css';

/** The attempts of a job that has made more than one. */
export function JobAttempts({ job }: { job: Job }) {
  const attempts = useMemo(() => attemptsOf(job.logs, job), [job]);
  if (job.attempts < 2) return null;
  const missing = job.attempts - attempts.length;
  return (
    <Section title="Attempts" note={`${job.attempts} of ${job.retryPolicy.maxAttempts}`}>
      <ol className={classes.attempts}>
        {attempts.map(({ attempt, status, startedAt, endedAt, message }) => (
          <li key={attempt} className={classes.attempt}>
            <span>Attempt {attempt}</span>
            <StatusBadge status={status} plain />
            <Time value={startedAt} />
            <Duration from={startedAt} to={endedAt} />
            <span className={classes.attemptText}>{message}</span>
          </li>
        ))}
      </ol>
      {missing > 0 && !job.logsPurged && (
        <p className={classes.muted}>
          {missing === 1 ? 'One earlier attempt is' : `${missing} earlier attempts are`} in the log
          below.
        </p>
      )}
    </Section>
  );
}
