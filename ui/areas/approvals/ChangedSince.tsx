import { useQuery } from '@tanstack/react-query';
import { useId } from 'react';
import { answer, api, type Schemas } from '../../app/api.ts';
import { useLiveRefresh } from '../../app/live.ts';
import { Actor } from '../../parts/Actor.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { FieldDiff } from '../../parts/diff/FieldDiff.tsx';
import { formatNumberOf } from '../../parts/format.ts';
import { Icon } from '../../parts/icons.tsx';
import { mergeNames, type Names } from '../../parts/names.ts';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Time } from '../../parts/Time.tsx';
import { changesAfter } from './changesAfter.ts';
import { driftsOf, rowsOf, type Drift } from '../../parts/plan/effects.ts';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import classes from './ChangedSince.module.css';

/** Records whose history is read, and changes of each. More than that is for the pages of the records. */
const MAX_RECORDS = 20;
const MAX_WITH_HISTORY = 5;
const MAX_CHANGES = 5;

type Change = Schemas['RecordChange'];

/** The path of every resource has the same form; the types know only each by itself. */
const changesPath = (resource: string) =>
  `/api/inventory/${resource as 'prefixes'}/{id}/changes` as const;

type DriftProps = { drift: Drift; names: Names; requestedAt: string };

/** What others have done with a record since the request was made. */
function ChangesSince({ drift: { resource, id }, names, requestedAt }: DriftProps) {
  const queryKey = ['approvals', 'changes', resource, id];
  useLiveRefresh(['inventory.*'], queryKey, ({ subject }) => subject.id === id);
  const { data } = useQuery({
    queryKey,
    queryFn: ({ signal }) =>
      answer(
        api.GET(changesPath(resource), {
          params: { path: { id }, query: { limit: MAX_CHANGES, include: 'labels,people' } },
          signal,
        }),
      ),
    // Without the right to read the record there is no history here, and no message.
    retry: false,
  });
  const changes = changesAfter(data?.items ?? [], requestedAt);
  if (changes.length === 0) return null;
  const hasEarlier = changes.length === data?.items.length && data.nextCursor !== null;
  const all = mergeNames([names, data?.included]);
  return (
    <ul className={classes.changes}>
      {changes.map((change: Change) => (
        <li key={change.id}>
          <div className={classes.who}>
            <Actor id={change.actorId} names={all} full />{' '}
            {change.restored ? 'restored it' : 'changed it'} <Time value={change.at} />
          </div>
          <FieldDiff resource={resource} rows={rowsOf(change)} names={all} />
        </li>
      ))}
      {hasEarlier && (
        <li>Earlier changes since the request may be in the history of the record.</li>
      )}
    </ul>
  );
}

function DriftRow({ isRead, ...props }: DriftProps & { isRead: boolean }) {
  const { drift, names } = props;
  const { resource, id, label, text, rows } = drift;
  const name = (
    <strong>
      <Exact text={label} />
    </strong>
  );
  return (
    <li className={classes.record}>
      <div>
        {nounOf(resource, 1)}{' '}
        {id.startsWith('new:') ? name : <RecordLink id={id} label={name} kind={resource} />} {text}
        {rows.length > 0 && ' (as requested, and as it would be now):'}
      </div>
      {rows.length > 0 && <FieldDiff resource={resource} rows={rows} names={names} />}
      {isRead && drift.since !== null && <ChangesSince {...props} />}
    </li>
  );
}

type Difference = NonNullable<ApprovalRequest['difference']>;

function Details({ difference, ...props }: { difference: Difference } & Omit<DriftProps, 'drift'>) {
  const drifts = driftsOf(difference);
  const shown = drifts.slice(0, MAX_RECORDS);
  const findings = [...difference.errors, ...difference.conflicts];
  return (
    <>
      {findings.length > 0 && (
        <ul className={classes.findings}>
          {findings.map(({ pointer, code, message }) => (
            <li key={`${pointer ?? ''} ${code} ${message}`}>
              {pointer !== null && pointer !== '' && <code>{pointer}</code>}{' '}
              <Exact text={message} />
            </li>
          ))}
        </ul>
      )}
      <ul className={classes.records}>
        {shown.map((drift, index) => (
          <DriftRow key={drift.key} {...props} drift={drift} isRead={index < MAX_WITH_HISTORY} />
        ))}
      </ul>
      {drifts.length > shown.length && (
        <p className={classes.more}>
          {formatNumberOf(drifts.length - shown.length, 'more record')} would change otherwise.
        </p>
      )}
    </>
  );
}

const TITLES: Readonly<Record<string, string>> = {
  stale_plan: 'The records have changed since the request',
  permission_lost: 'The requester may no longer do this',
  payload_invalid: 'The job no longer accepts the payload',
  target_not_found: 'The target of the job no longer exists',
  reference_not_found: 'A record that the payload names no longer exists',
};

/** What stops a request from being executed: above all, records that have changed since. */
export function ChangedSince({ request, names }: { request: ApprovalRequest; names: Names }) {
  const heading = useId();
  const { blocker, execution, error, status } = request;
  const isStale = execution === 'stale';
  const reason = blocker ?? (isStale ? error : null);
  const difference = blocker?.difference ?? request.difference;
  if (!reason || reason.code === 'not_evaluated') return null;
  return (
    <section className={classes.bar} aria-labelledby={heading}>
      <h2 id={heading} className={classes.title}>
        <Icon name="alertTriangle" size={16} />
        {isStale
          ? 'Not executed: the records had changed since the request'
          : (TITLES[reason.code] ?? 'The request cannot be executed')}
      </h2>
      <div className={classes.body}>
        <p className={classes.message}>
          <Exact text={reason.message} />.{' '}
          {status === 'pending' &&
            'As long as this is so, an approval runs nothing: a new request is needed.'}
          {isStale && 'Nothing was changed. A new request is needed.'}
        </p>
        {difference && (
          <Details difference={difference} names={names} requestedAt={request.createdAt} />
        )}
      </div>
    </section>
  );
}
