import { Actor } from '../../parts/Actor.tsx';
import type { ApprovalSummary } from '../../parts/approvals/requestQuery.ts';
import { stateOf } from '../../parts/approvals/states.ts';
import { Exact } from '../../parts/Exact.tsx';
import { formatCount } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import { changeLine } from '../../parts/plan/effects.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Block, Row, Rows } from './Block.tsx';
import { problemsOf } from './problems.ts';
import type { NeedsYou } from './useNeedsYou.ts';
import classes from './links.module.css';

function Title({ request: { id, title } }: { request: ApprovalSummary }) {
  return (
    <PageLink to="/approvals/$id" params={{ id }} className={classes.link} dir="auto">
      <Exact text={title} />
    </PageLink>
  );
}

/** A request to decide: who asks for what, until when. */
function ToDecide({ request, needs }: { request: ApprovalSummary; needs: NeedsYou }) {
  const { id, createdBy, expiresAt } = request;
  const known = needs.details.get(id);
  const isBlocked = known?.blocker != null && known.blocker.code !== 'not_evaluated';
  return (
    <Row
      icon={<Icon name="approval" size={15} />}
      detail={known && changeLine(known)}
      end={
        <>
          expires <Time value={expiresAt} format="relative" />
        </>
      }
    >
      <Title request={request} />{' '}
      <span className={classes.by}>
        by <Actor id={createdBy} names={needs.names} />
      </span>
      {isBlocked && (
        <>
          {' '}
          <StatusBadge status="stale" plain />
        </>
      )}
    </Row>
  );
}

/** An own request that was not carried out, or would not be. */
function Own({ request, needs }: { request: ApprovalSummary; needs: NeedsYou }) {
  const { id, error, status } = request;
  const blocker = status === 'pending' ? needs.details.get(id)?.blocker : undefined;
  const state = blocker ? { status: 'stale', label: 'Stale' } : stateOf(request);
  return (
    <Row
      icon={<Icon name="user" size={15} />}
      detail={blocker?.message ?? error?.message}
      end={<StatusBadge {...state} plain />}
    >
      <Title request={request} /> <span className={classes.by}>by you</span>
    </Row>
  );
}

/** Requests that wait for the reader, and own ones that went wrong. */
export function NeedsYouBlock({ needs }: { needs: NeedsYou }) {
  const { decide, own, hasMoreFailed, total, reads } = needs;
  const problems = problemsOf(reads);
  if (decide.length + own.length === 0 && problems.length === 0) return null;
  return (
    <Block
      title="Needs you"
      problems={problems}
      action={
        total > decide.length && (
          <PageLink to="/approvals" search={{ view: 'decide' }} className={classes.more}>
            All {formatCount(total)} requests
          </PageLink>
        )
      }
    >
      {decide.length + own.length > 0 && (
        <Rows label="Needs you">
          {decide.map((request) => (
            <ToDecide key={request.id} request={request} needs={needs} />
          ))}
          {own.map((request) => (
            <Own key={request.id} request={request} needs={needs} />
          ))}
          {hasMoreFailed && (
            <Row icon={<Icon name="user" size={15} />}>
              <PageLink to="/approvals" search={{ view: 'mine' }} className={classes.link}>
                More of your requests
              </PageLink>{' '}
              were not carried out
            </Row>
          )}
        </Rows>
      )}
    </Block>
  );
}
