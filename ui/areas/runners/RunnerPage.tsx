import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useTitle } from '../../app/useTitle.ts';
import { AppLink } from '../../parts/AppLink.tsx';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { PLATFORM } from '../../app/session/tenant.ts';
import { poolPath, runnerState, slotsText } from './poolText.ts';
import { runnerQuery, type Runner } from './runnerQueries.ts';
import classes from './Runners.module.css';

const route = getRouteApi('/frame/runners/$runnerId');

const PARENT = { label: 'Runners', to: '/runners' };

/** A runner: whether it lives, what it can run, and its token. */
export function RunnerPage() {
  const { runnerId } = route.useParams();
  const { data: runner, error, refetch } = useQuery(runnerQuery(runnerId));
  useTitle(runner && `Runner ${runner.name}`);
  if (!runner)
    return (
      <RecordPage parent={PARENT} title="Runner" id={runnerId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={200} label="Loading the runner" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={runner.id}
      title={runner.name}
      badge={<StatusBadge {...runnerState(runner)} />}
      actions={<RunnerActions key={runner.id} runner={runner} />}
      aside={<Facts runner={runner} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <Types runner={runner} />
    </RecordPage>
  );
}

function Facts({ runner }: { runner: Runner }) {
  return (
    <Section title="Details">
      <DescriptionList
        items={[
          { label: 'Pool', value: <AppLink to={poolPath(runner.pool)}>{runner.pool}</AppLink> },
          { label: 'Last heard', value: <Time value={runner.seenAt} format="relative" /> },
          { label: 'Started', value: <Time value={runner.startedAt} /> },
          { label: 'Slots used', value: slotsText(runner) },
          { label: 'Version', value: runner.version },
          { label: 'Address', value: runner.address },
          { label: 'Token', value: <code>{runner.tokenId}</code> },
        ]}
      />
    </Section>
  );
}

function Types({ runner: { types } }: { runner: Runner }) {
  const announced = Object.entries(types).sort(([one], [other]) => (one < other ? -1 : 1));
  return (
    <Section title="Job types announced">
      {announced.length === 0 && (
        <p className={classes.muted}>
          None: it has no declaration, or lacks what its declarations need. Its log says which.
        </p>
      )}
      {announced.length > 0 && (
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">Job type</th>
              <th scope="col">Version</th>
            </tr>
          </thead>
          <tbody>
            {announced.map(([name, digest]) => (
              <tr key={name}>
                <td>
                  <AppLink to={`/job-types/${encodeURIComponent(name)}`}>{name}</AppLink>
                </td>
                <td>
                  <code title={digest}>{digest.slice(0, 12)}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Section>
  );
}

type Ending = 'forget' | 'revoke';

/** Forgets a runner or revokes its token, after a question. */
function useEnding({ id, tokenId, pool }: Runner) {
  const [ending, setEnding] = useState<Ending>();
  const navigate = useNavigate();
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: (how: Ending) =>
      how === 'forget'
        ? answer(api.DELETE('/api/runners/{id}', { params: { path: { id } } }))
        : answer(api.DELETE('/api/auth/tokens/{id}', { params: { path: { id: tokenId } } })),
    onSuccess: async (_answer, how) => {
      setEnding(undefined);
      if (how === 'revoke') return;
      await navigate({ to: poolPath(pool) as '/' });
      client.removeQueries({ queryKey: runnerQuery(id).queryKey });
    },
    onSettled: () => void client.invalidateQueries({ queryKey: ['runners'] }),
  });
  const dialog = {
    onClose: () => {
      setEnding(undefined);
      end.reset();
    },
    onConfirm: () => ending && end.mutate(ending),
    busy: end.isPending,
    problem: end.error,
    danger: true,
  };
  return { ending, setEnding, dialog };
}

function RunnerActions({ runner }: { runner: Runner }) {
  const { name } = runner;
  const { ending, setEnding, dialog } = useEnding(runner);
  return (
    <>
      <PermissionButton
        permission="jobtype:write"
        where={PLATFORM}
        icon="eyeOff"
        variant="default"
        onClick={() => setEnding('forget')}
      >
        Forget
      </PermissionButton>
      <PermissionButton
        permission="user:write"
        where={PLATFORM}
        icon="ban"
        variant="default"
        onClick={() => setEnding('revoke')}
      >
        Revoke token
      </PermissionButton>
      <ConfirmDialog
        {...dialog}
        opened={ending === 'forget'}
        title={`Forget ${name}`}
        confirm="Forget runner"
      >
        Its slots count no longer, and it starts no further jobs until it announces itself again. To
        keep it out, revoke its token.
      </ConfirmDialog>
      <ConfirmDialog
        {...dialog}
        opened={ending === 'revoke'}
        title={`Revoke the token of ${name}`}
        confirm="Revoke token"
      >
        All runners with this token are refused from now on, and the attempts that they make are
        lost. This cannot be undone.
      </ConfirmDialog>
    </>
  );
}
