import { formatNumberOf } from '../../parts/format.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Answer } from '../../parts/webhooks/Answer.tsx';
import { outcomeOf } from '../../parts/webhooks/answer.ts';
import type { EventDetail } from './eventQueries.ts';
import classes from './Events.module.css';

/** Where an event was sent: one delivery for each webhook that subscribes to it. */
export function EventDeliveries({ event: { deliveries, included } }: { event: EventDetail }) {
  const count = deliveries.length;
  return (
    <Section title="Deliveries" note={count > 0 && formatNumberOf(count, 'delivery')}>
      {count === 0 ? (
        <p className={classes.muted}>
          No webhook that you may see has received it: none subscribed to its type then.
        </p>
      ) : (
        <div className={classes.scroll} tabIndex={0} role="group" aria-label="Deliveries">
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">Webhook</th>
                <th scope="col">Status</th>
                <th scope="col">Attempts</th>
                <th scope="col">Last answer</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {deliveries.map(({ id, webhookId, status, attemptCount, attempts, updatedAt }) => {
                const last = attempts.at(-1);
                return (
                  <tr key={id}>
                    <td>
                      <RecordLink id={webhookId} names={included} kind="webhooks" />
                    </td>
                    <td>
                      <RecordLink id={id} label={<StatusBadge status={status} plain />} />
                    </td>
                    <td>{attemptCount}</td>
                    <td>
                      <Answer outcome={last && outcomeOf(last)} />
                    </td>
                    <td>
                      <Time value={updatedAt} />
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}
