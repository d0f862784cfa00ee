import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { answer, api } from '../../app/api.ts';
import { useIdempotencyKeys } from '../../app/idempotency.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import type { Schedule } from './scheduleQueries.ts';

type Props = {
  schedule: Schedule;
  /** Why its jobs may not be run. */
  reason: string | undefined;
  /** Called with what has been started. */
  onNote: (note: ReactNode) => void;
};

/** Runs the schedule now, once however often the request is sent. */
function useTrigger({ id, jobType }: Schedule, onDone: (note: ReactNode) => void) {
  const client = useQueryClient();
  const keys = useIdempotencyKeys();
  const trigger = useMutation({
    mutationFn: () =>
      keys.once(id, (header) =>
        answer(api.POST('/api/schedules/{id}/trigger', { params: { path: { id }, header } })),
      ),
    onSettled: () => client.invalidateQueries({ queryKey: ['schedules'] }),
    onSuccess: ({ jobId }) =>
      onDone(
        jobId === null ? (
          'The run waits for the unfinished job of the schedule.'
        ) : (
          <span>
            Started <RecordLink id={jobId} label={jobType} />.
          </span>
        ),
      ),
  });
  /** The next question is about another run, also if the answer to this one was lost. */
  const end = () => {
    keys.end();
    trigger.reset();
  };
  return { trigger, end };
}

/** Runs a schedule now, after a question. */
export function TriggerButton({ schedule, reason, onNote }: Props) {
  const { tenantId, jobType, name, state, overlapPolicy } = schedule;
  const [isOpen, setOpen] = useState(false);
  const { trigger, end } = useTrigger(schedule, (note) => {
    setOpen(false);
    onNote(note);
  });
  const cancels = overlapPolicy === 'cancelOther';
  return (
    <>
      <PermissionButton
        permission="schedule:write"
        where={{ tenantId }}
        reason={reason}
        icon="play"
        onClick={() => setOpen(true)}
      >
        Run now
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          end();
        }}
        title={`Run ${name} now`}
        confirm="Run now"
        onConfirm={() => trigger.mutate()}
        busy={trigger.isPending}
        problem={trigger.error}
      >
        A job of the type {jobType} starts with the permissions of the owner
        {state === 'active' ? '' : ', although the schedule does not run by itself'}. The scheduled
        times stay as they are.
        {cancels && ' An unfinished job of the schedule is cancelled.'}
      </ConfirmDialog>
    </>
  );
}
