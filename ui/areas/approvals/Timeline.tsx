import { Actor } from '../../parts/Actor.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { Icon, type IconName } from '../../parts/icons.tsx';
import type { Names } from '../../parts/names.ts';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import { decisionOf } from '../../parts/approvals/states.ts';
import classes from './Timeline.module.css';

type Entry = {
  key: string;
  at: string;
  actorId: string;
  icon: IconName;
  tone: 'good' | 'bad' | 'neutral';
  text: string;
  comment: string | null;
};

const CLOSED: Readonly<Record<string, string>> = {
  expired: 'closed the request: it has expired',
  cancelled: 'closed the request',
};

/** Everything that people have done with a request, oldest first. */
function entriesOf(request: ApprovalRequest): Entry[] {
  const { createdAt, createdBy, decisions, comments, closedAt, closedBy, closeComment, status } =
    request;
  const asked: Entry = {
    key: 'asked',
    at: createdAt,
    actorId: createdBy,
    icon: 'plus',
    tone: 'neutral',
    text: 'made the request',
    comment: null,
  };
  const decided = decisions.map(({ actorId, outcome, comment, decidedAt }): Entry => ({
    key: `decision ${actorId}`,
    at: decidedAt,
    actorId,
    ...decisionOf(outcome),
    comment,
  }));
  const said = comments.map(({ number, actorId, text, createdAt: at }): Entry => ({
    key: `comment ${number}`,
    at,
    actorId,
    icon: 'edit',
    tone: 'neutral',
    text: 'commented',
    comment: text,
  }));
  // A decision that closes a request is among the decisions; what closes it otherwise is not.
  const isDecided = decisions.some(
    ({ actorId, decidedAt }) => actorId === closedBy && decidedAt === closedAt,
  );
  const closing = CLOSED[status];
  const closed: Entry[] =
    closing !== undefined && closedAt !== null && closedBy !== null && !isDecided
      ? [
          {
            key: 'closed',
            at: closedAt,
            actorId: closedBy,
            icon: 'ban',
            tone: 'neutral',
            text: closing,
            comment: closeComment,
          },
        ]
      : [];
  return [asked, ...decided, ...said, ...closed].sort(
    (one, other) => Date.parse(one.at) - Date.parse(other.at),
  );
}

/** Decisions and comments. Texts are shown as they were written; nothing in them is markup. */
export function Timeline({ request, names }: { request: ApprovalRequest; names: Names }) {
  return (
    <Section title="Decisions and comments">
      <ol className={classes.list}>
        {entriesOf(request).map(({ key, at, actorId, icon, tone, text, comment }) => (
          <li key={key} className={classes.entry}>
            <span className={classes.icon} data-tone={tone}>
              <Icon name={icon} size={14} />
            </span>
            <div className={classes.body}>
              <div>
                <strong>
                  <Actor id={actorId} names={names} full />
                </strong>{' '}
                {text}{' '}
                <span className={classes.time}>
                  <Time value={at} />
                </span>
              </div>
              {comment !== null && comment !== '' && (
                <p className={classes.comment} dir="auto">
                  <Exact text={comment} />
                </p>
              )}
            </div>
          </li>
        ))}
      </ol>
    </Section>
  );
}
