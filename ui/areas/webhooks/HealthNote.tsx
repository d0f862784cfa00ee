import { RecordLink } from '../../parts/RecordLink.tsx';
import { Time } from '../../parts/Time.tsx';
import { answerText, outcomeOf } from '../../parts/webhooks/answer.ts';
import type { WebhookDetail } from './webhookQueries.ts';
import { disabledAtLast } from './webhookText.ts';
import classes from './Webhooks.module.css';

/** How a webhook is, in sentences, if there is something to do about it. */
export function HealthNote({ webhook }: { webhook: WebhookDetail }) {
  const { enabled, failingSince } = webhook;
  if (!enabled) return <Disabled webhook={webhook} />;
  if (failingSince === null) return null;
  return (
    <div className={classes.notice} data-tone="bad" role="status">
      Every attempt has failed since <Time value={failingSince} />. <LastAnswer webhook={webhook} />
      If the endpoint accepts nothing until <Time value={disabledAtLast(failingSince)} />, the
      webhook is disabled. Test it; once it works, a replay sends what was missed.
    </div>
  );
}

function LastAnswer({ webhook: { deliveries } }: { webhook: WebhookDetail }) {
  const [newest] = deliveries;
  const attempt = newest?.attempts.at(-1);
  if (newest === undefined || attempt === undefined) return null;
  const text = answerText(outcomeOf(attempt));
  if (text === '') return null;
  return (
    <>
      Last: <RecordLink id={newest.id} label={text} />.{' '}
    </>
  );
}

function Disabled({
  webhook: { disabledReason, disabledAt, failingSince },
}: Parameters<typeof HealthNote>[0]) {
  const when = <Time value={disabledAt} />;
  if (disabledReason === 'endpoint_removed')
    return (
      <div className={classes.notice} data-tone="bad" role="status">
        Disabled at {when}, since the endpoint answered 410: it says that it was removed. Its
        pending deliveries were cancelled. Change the endpoint or ask who runs it, then enable the
        webhook and replay what was missed.
      </div>
    );
  if (disabledReason === 'failing')
    return (
      <div className={classes.notice} data-tone="bad" role="status">
        Disabled at {when}, since every attempt had failed for five days
        {failingSince !== null && (
          <>
            , from <Time value={failingSince} />
          </>
        )}
        . Its pending deliveries were cancelled. Test it, then enable it and replay what was missed.
      </div>
    );
  return (
    <div className={classes.notice} role="status">
      Disabled by a user at {when}. It receives no events until it is enabled again.
    </div>
  );
}
