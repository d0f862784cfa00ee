import { useQuery } from '@tanstack/react-query';
import { deviceText } from '../../../app/account/device.ts';
import { answer, api } from '../../../app/api.ts';
import { formatNumberOf } from '../../../parts/format.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { ConfirmedChange } from '../ConfirmedChange.tsx';
import { userSessionsQuery, type User, type UserSession } from './userQueries.ts';
import classes from '../Access.module.css';

type Props = { user: User };

/** Where a user is signed in. */
export function UserSessions({ user }: Props) {
  const { id, username, tenantId } = user;
  const query = userSessionsQuery(id);
  const { data, error, refetch } = useQuery(query);
  const items = data?.items ?? [];
  return (
    <Section
      title="Sessions"
      note={data && formatNumberOf(items.length, 'session')}
      actions={
        items.length > 0 && (
          <ConfirmedChange
            permission="user:write"
            where={{ tenantId }}
            icon="logout"
            label="End all"
            title={`End all sessions of ${username}?`}
            confirm={`End ${formatNumberOf(items.length, 'session')}`}
            danger
            run={() => answer(api.DELETE('/api/users/{id}/sessions', { params: { path: { id } } }))}
          >
            The user is signed out everywhere immediately, and may sign in again. API tokens stay
            valid.
          </ConfirmedChange>
        )
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data && items.length === 0 && <p className={classes.muted}>Not signed in anywhere.</p>}
      {items.length > 0 && (
        <div className={classes.scroll} tabIndex={0} role="region" aria-label="List of sessions">
          <table className={classes.table}>
            <thead>
              <tr>
                <th scope="col">Client</th>
                <th scope="col">From</th>
                <th scope="col">Used</th>
                <th scope="col">Signed in</th>
                <th scope="col">Ends</th>
                <th scope="col">
                  <span className={classes.hidden}>Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {items.map((session) => (
                <SessionRow key={session.id} user={user} session={session} />
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Section>
  );
}

function SessionRow({ user, session }: Props & { session: UserSession }) {
  const { id: sessionId, userAgent, address, current } = session;
  const device = deviceText(userAgent);
  const path = { id: user.id, sessionId };
  return (
    <tr>
      <th scope="row" title={userAgent ?? undefined}>
        {device} {current && <StatusBadge status="active" label="This session" plain />}
      </th>
      <td>{address ?? 'Unknown'}</td>
      <td>
        <Time value={session.refreshedAt} format="relative" />
      </td>
      <td>
        <Time value={session.createdAt} />
      </td>
      <td>
        <Time value={session.absoluteExpiresAt} format="relative" />
      </td>
      <td data-icons>
        <ConfirmedChange
          permission="user:write"
          where={{ tenantId: user.tenantId }}
          icon="logout"
          label={`End the session in ${device}`}
          isIcon
          title="End this session?"
          confirm="End session"
          danger
          run={() =>
            answer(api.DELETE('/api/users/{id}/sessions/{sessionId}', { params: { path } }))
          }
        >
          {device} is signed out immediately.
        </ConfirmedChange>
      </td>
    </tr>
  );
}
