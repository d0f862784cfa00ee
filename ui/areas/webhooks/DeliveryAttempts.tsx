import { formatNumberOf } from '../../parts/format.ts';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { isAccepted, outcomeOf } from '../../parts/webhooks/answer.ts';
import { Exchange } from './Exchange.tsx';
import type { DeliveryDetail } from './webhookQueries.ts';
import classes from './Webhooks.module.css';

type Attempt = DeliveryDetail['attempts'][number];

/** The attempts of a delivery with what the endpoint answered, the newest first. */
export function DeliveryAttempts({ delivery }: { delivery: DeliveryDetail }) {
  const { attempts, attemptCount, status } = delivery;
  const missing = attemptCount - attempts.length;
  return (
    <Section title="Attempts" note={attemptCount > 0 && formatNumberOf(attemptCount, 'attempt')}>
      {attempts.length === 0 && (
        <p className={classes.muted}>
          {status === 'pending' ? 'None yet: it waits for its first attempt.' : 'None was made.'}
        </p>
      )}
      <ol className={classes.attempts} reversed>
        {attempts.toReversed().map((attempt) => (
          <li key={attempt.number} className={classes.attempt}>
            <AttemptHead attempt={attempt} />
            {attempt.finishedAt !== null && <Exchange attempt={attempt} />}
          </li>
        ))}
      </ol>
      {missing > 0 && (
        <p className={classes.muted}>
          {missing === 1 ? 'One earlier attempt is' : `${missing} earlier attempts are`} not shown.
        </p>
      )}
    </Section>
  );
}

function statusOf(attempt: Attempt): string {
  if (attempt.finishedAt === null) return 'running';
  return isAccepted(outcomeOf(attempt)) ? 'accepted' : 'failed';
}

function AttemptHead({ attempt }: { attempt: Attempt }) {
  return (
    <h3 className={classes.attemptHead}>
      <strong>Attempt {attempt.number}</strong>
      <StatusBadge status={statusOf(attempt)} plain />
      <Time value={attempt.startedAt} format="full" />
    </h3>
  );
}
