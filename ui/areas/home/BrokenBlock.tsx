import { Exact } from '../../parts/Exact.tsx';
import { formatCount, formatNumberOf } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Time } from '../../parts/Time.tsx';
import { Block, Row, Rows } from './Block.tsx';
import type { FailureGroup, FailingWebhook, MissedGroup } from './findings.ts';
import { problemsOf } from './problems.ts';
import { GROUPED_JOBS } from './queries.ts';
import { ToneIcon } from './ToneIcon.tsx';
import type { Broken } from './useBroken.ts';
import classes from './links.module.css';

function Failure({ group: { type, code, message, count, newest } }: { group: FailureGroup }) {
  return (
    <Row
      icon={<ToneIcon tone="bad" />}
      detail={message}
      end={
        <>
          last <Time value={newest.finishedAt ?? newest.createdAt} format="relative" />
        </>
      }
    >
      <RecordLink id={newest.id} label={<span className={classes.link}>{type}</span>} /> failed{' '}
      {count > 1 && `${formatCount(count)} times `}with <code>{code}</code>
    </Row>
  );
}

function Webhook({ webhook: { id, label, since, text } }: { webhook: FailingWebhook }) {
  return (
    <Row
      icon={<Icon name="webhook" size={15} />}
      end={
        since !== null && (
          <>
            since <Time value={since} format="relative" />
          </>
        )
      }
    >
      Webhook{' '}
      <RecordLink
        id={id}
        label={
          <span className={classes.link}>
            <Exact text={label} />
          </span>
        }
      />
      : {text}
    </Row>
  );
}

function Missed({ group }: { group: MissedGroup }) {
  const { scheduleId, label, reason, count, isPart, dueAt } = group;
  return (
    <Row
      icon={<Icon name="calendar" size={15} />}
      detail={reason}
      end={
        dueAt !== undefined && (
          <>
            last <Time value={dueAt} format="relative" />
          </>
        )
      }
    >
      Schedule{' '}
      <RecordLink
        id={scheduleId}
        label={
          label !== undefined && (
            <span className={classes.link}>
              <Exact text={label} />
            </span>
          )
        }
      />{' '}
      missed {isPart && 'at least '}
      {formatNumberOf(count, 'time')}
    </Row>
  );
}

/** What is broken and has no row of its own. */
function LeftOut({ broken: { hasMoreWebhooks, missedLeftOut } }: { broken: Broken }) {
  return (
    <>
      {hasMoreWebhooks && (
        <Row icon={<Icon name="webhook" size={15} />}>
          <PageLink to="/webhooks" className={classes.link}>
            More webhooks
          </PageLink>{' '}
          fail, or were disabled because they failed
        </Row>
      )}
      {missedLeftOut !== undefined && (
        <Row icon={<Icon name="calendar" size={15} />}>
          {missedLeftOut}{' '}
          <PageLink to="/schedules" className={classes.link}>
            All schedules
          </PageLink>
        </Row>
      )}
    </>
  );
}

/** Failed jobs of a day by type and error, webhooks that fail, and missed scheduled times. */
export function BrokenBlock({ broken }: { broken: Broken }) {
  const { failures, failed, isPartOfJobs, webhooks, webhooksReadAt, missed, reads } = broken;
  const problems = problemsOf(reads);
  const count = failures.length + webhooks.length + missed.length;
  if (count === 0 && problems.length === 0) return null;
  const since = isPartOfJobs
    ? `the newest ${formatCount(GROUPED_JOBS)} of ${failed ? formatCount(failed.value) : 'more'} failed jobs in 24 hours`
    : 'in the last 24 hours';
  const note = (
    <>
      {since}
      {webhooks.length > 0 && webhooksReadAt !== undefined && (
        <>
          , webhooks as of <Time value={webhooksReadAt} format="relative" />
        </>
      )}
    </>
  );
  return (
    <Block title="Broken now" note={note} problems={problems}>
      {count > 0 && (
        <Rows label="Broken now">
          {failures.map((group) => (
            <Failure key={group.key} group={group} />
          ))}
          {webhooks.map((webhook) => (
            <Webhook key={webhook.id} webhook={webhook} />
          ))}
          {missed.map((group) => (
            <Missed key={group.key} group={group} />
          ))}
          <LeftOut broken={broken} />
        </Rows>
      )}
    </Block>
  );
}
