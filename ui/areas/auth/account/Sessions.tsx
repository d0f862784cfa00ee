import { Button } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../../app/api.ts';
import { useSession } from '../../../app/session/useSession.ts';
import { ConfirmDialog } from '../../../parts/ConfirmDialog.tsx';
import { formatNumberOf } from '../../../parts/format.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { deviceText } from '../../../app/account/device.ts';
import { SESSIONS_KEY, sessionsQuery } from './queries.ts';
import classes from '../../../app/account/Account.module.css';

type Session = Schemas['Session'];

type Ending = {
  opened: boolean;
  /** Undefined: all others. */
  session: Session | undefined;
};

/** The browsers and programs in which the user is signed in. */
export function Sessions() {
  const { data, error, refetch } = useQuery(sessionsQuery);
  const [ending, setEnding] = useState<Ending>({ opened: false, session: undefined });
  const others = data?.items.filter(({ current }) => !current) ?? [];
  return (
    <Section
      title="Sessions"
      note={data && formatNumberOf(data.items.length, 'session')}
      actions={
        others.length > 0 && (
          <Button variant="default" onClick={() => setEnding({ opened: true, session: undefined })}>
            End all others
          </Button>
        )
      }
    >
      {error !== null && (
        <ProblemNote problem={error} retry={() => void refetch()} hasData={data !== undefined} />
      )}
      {data && (
        <ul className={classes.list} aria-label="Sessions">
          {data.items.map((session) => (
            <SessionItem
              key={session.id}
              session={session}
              onEnd={() => setEnding({ opened: true, session })}
            />
          ))}
        </ul>
      )}
      <EndDialog
        {...ending}
        count={others.length}
        // What it is about stays while it fades.
        onClose={() => setEnding({ ...ending, opened: false })}
      />
    </Section>
  );
}

function SessionItem({ session, onEnd }: { session: Session; onEnd: () => void }) {
  const { signOut } = useSession();
  const { current, userAgent, address, createdAt, refreshedAt, absoluteExpiresAt } = session;
  const device = deviceText(userAgent);
  return (
    <li className={classes.item}>
      <div>
        <div className={classes.name} title={userAgent ?? undefined}>
          {device}
          {current && <StatusBadge status="active" label="This session" />}
        </div>
        <div className={classes.note}>
          {address === null ? 'Unknown address' : `From ${address}`}, tenant {session.tenantId}
        </div>
      </div>
      <div className={classes.fact}>
        <div>
          Used <Time value={refreshedAt} format="relative" />
        </div>
        <div className={classes.note}>
          Signed in <Time value={createdAt} />
        </div>
      </div>
      <div className={classes.fact}>
        <div>
          Ends <Time value={absoluteExpiresAt} format="relative" />
        </div>
        <div className={classes.note}>
          Unused, <Time value={session.idleExpiresAt} format="relative" />
        </div>
      </div>
      <div className={classes.actions}>
        {current ? (
          <Button variant="default" onClick={() => void signOut()}>
            Sign out
          </Button>
        ) : (
          <Button variant="default" onClick={onEnd} aria-label={`End the session in ${device}`}>
            End
          </Button>
        )}
      </div>
    </li>
  );
}

type EndProps = Ending & { count: number; onClose: () => void };

function EndDialog({ opened, session, count, onClose }: EndProps) {
  const queryClient = useQueryClient();
  const end = useMutation({
    mutationFn: () =>
      answer(
        session === undefined
          ? api.DELETE('/api/auth/sessions')
          : api.DELETE('/api/auth/sessions/{id}', { params: { path: { id: session.id } } }),
      ),
    onSuccess: () => close(),
    onSettled: () => queryClient.invalidateQueries({ queryKey: SESSIONS_KEY }),
  });
  const close = () => {
    end.reset();
    onClose();
  };
  return (
    <ConfirmDialog
      opened={opened}
      onClose={close}
      title={session === undefined ? 'End all other sessions?' : 'End this session?'}
      confirm={session === undefined ? `End ${formatNumberOf(count, 'session')}` : 'End session'}
      danger
      onConfirm={() => end.mutate()}
      busy={end.isPending}
      problem={end.error}
    >
      {session === undefined
        ? 'You stay signed in here, and nowhere else. API tokens stay valid.'
        : `${deviceText(session.userAgent)} is signed out immediately.`}
    </ConfirmDialog>
  );
}
