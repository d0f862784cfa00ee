import { skipToken, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../../app/api.ts';
import { queryClient } from '../../app/queryClient.ts';
import { useSession } from '../../app/session/useSession.ts';
import { Actor } from '../../parts/Actor.tsx';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { Time } from '../../parts/Time.tsx';
import { scheduleKey, type Schedule } from './scheduleQueries.ts';
import { useScheduleRights } from './useScheduleRights.ts';
import classes from './Schedules.module.css';

const warningsKey = (id: string) => [...scheduleKey(id), 'warnings'];

/** Keeps what the service has warned of when a schedule was saved, for its page. */
export const keepWarnings = ({ id, warnings }: Schedule): void => {
  queryClient.setQueryData(warningsKey(id), warnings ?? []);
};

/** Why nothing runs, if so, and what was warned of when it was saved. */
export function Notices({ schedule }: { schedule: Schedule }) {
  const { data: warnings = [] } = useQuery<Schemas['Warning'][]>({
    queryKey: warningsKey(schedule.id),
    queryFn: skipToken,
  });
  const isDenied = schedule.lastRun?.reason === 'owner_denied';
  return (
    <div className={classes.notices}>
      <StateNotice schedule={schedule} />
      {warnings.map(({ code, message }) => (
        <div key={code} className={classes.notice} data-tone="warning" role="status">
          <Exact text={message} />
        </div>
      ))}
      {isDenied && (
        <div className={classes.notice} data-tone="warning">
          The last occurrence was skipped: <Actor id={schedule.owner} names={schedule.included} />,
          the owner, no longer holds the permissions of the job.
          <TakeOver schedule={schedule} />
        </div>
      )}
    </div>
  );
}

function StateNotice({ schedule }: { schedule: Schedule }) {
  const { state, pausedAt, pausedBy, pauseReason, included, maxRuns } = schedule;
  if (state === 'active') return null;
  return (
    <div className={classes.notice} data-tone="warning">
      {state === 'paused' ? (
        <span>
          Paused <Time value={pausedAt} /> by <Actor id={pausedBy} names={included} />
          {pauseReason !== null && pauseReason !== '' && <>: {pauseReason}</>}
        </span>
      ) : (
        <span>
          The schedule has ended: it has no next occurrence
          {maxRuns !== null && ` or has made ${maxRuns} runs`}.
        </span>
      )}
    </div>
  );
}

/** Makes who asks the owner: the jobs then have their permissions. */
export function TakeOver({ schedule }: { schedule: Schedule }) {
  const { id, tenantId, owner, name } = schedule;
  const { cancel } = useScheduleRights(schedule);
  const { user } = useSession();
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const take = useMutation({
    mutationFn: () =>
      answer(
        api.PUT('/api/schedules/{id}', { params: { path: { id } }, body: { takeOver: true } }),
      ),
    onSuccess: (saved) => {
      keepWarnings(saved);
      setOpen(false);
      return client.invalidateQueries({ queryKey: ['schedules'] });
    },
  });
  if (owner === user.id) return null;
  return (
    <>
      <PermissionButton
        permission="schedule:write"
        where={{ tenantId }}
        reason={cancel}
        variant="default"
        onClick={() => setOpen(true)}
      >
        Take over
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          take.reset();
        }}
        title={`Take over ${name}`}
        confirm="Become the owner"
        onConfirm={() => take.mutate()}
        busy={take.isPending}
        problem={take.error}
      >
        Its jobs run with your permissions from then on.
      </ConfirmDialog>
    </>
  );
}
