import { Textarea } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { useAsked } from '../../parts/useAsked.ts';
import type { Schedule } from './scheduleQueries.ts';

type Props = {
  schedule: Schedule;
  /** Why it may not be resumed. */
  reason: string | undefined;
};

/** Pauses or resumes, with a reason that others read. */
function usePause({ id, enabled }: Schedule, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (text: string) => {
      const options = {
        params: { path: { id } },
        body: text.trim() === '' ? {} : { reason: text.trim() },
      };
      return answer(
        enabled
          ? api.POST('/api/schedules/{id}/pause', options)
          : api.POST('/api/schedules/{id}/resume', options),
      );
    },
    onSuccess: onDone,
    onSettled: () => client.invalidateQueries({ queryKey: ['schedules'] }),
  });
}

const verbOf = ({ enabled }: Schedule): string => (enabled ? 'Pause' : 'Resume');

/** Pauses a schedule, or resumes it. */
export function PauseButton({ schedule, reason }: Props) {
  const [text, setText] = useState('');
  const { asked, isOpen, ask, close } = useAsked(schedule);
  const change = usePause(asked, () => {
    close();
    setText('');
  });
  const verb = verbOf(asked);
  return (
    <>
      <PermissionButton
        permission="schedule:write"
        where={{ tenantId: schedule.tenantId }}
        reason={reason}
        icon={schedule.enabled ? 'pause' : 'play'}
        variant="default"
        onClick={ask}
      >
        {verbOf(schedule)}
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          close();
          change.reset();
        }}
        title={`${verb} ${asked.name}`}
        confirm={`${verb} schedule`}
        onConfirm={() => change.mutate(text)}
        busy={change.isPending}
        problem={change.error}
      >
        {asked.enabled
          ? 'Occurrences are skipped until the schedule is resumed. Jobs that run now go on.'
          : 'Occurrences that were skipped during the pause are not run; a backfill can run them.'}
        <Textarea
          label="Reason"
          mt="sm"
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          maxLength={1_000}
          autosize
          minRows={2}
          maxRows={6}
        />
      </ConfirmDialog>
    </>
  );
}
