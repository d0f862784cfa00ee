import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { useDeletion } from '../../parts/versioned/useDeletion.ts';
import { BackfillDialog } from './BackfillDialog.tsx';
import type { Schedule } from './scheduleQueries.ts';
import { PauseButton } from './PauseButton.tsx';
import { scheduleQuery } from './scheduleQueries.ts';
import { TriggerButton } from './TriggerButton.tsx';
import { useScheduleRights } from './useScheduleRights.ts';

type Props = { schedule: Schedule; onNote: (note: ReactNode) => void };

/** What can be done with a schedule. */
export function ScheduleActions({ schedule, onNote }: Props) {
  const [isBackfilling, setBackfilling] = useState(false);
  const where = { tenantId: schedule.tenantId };
  const { start, cancel } = useScheduleRights(schedule);
  const runReason = start ?? cancel;
  return (
    <>
      <TriggerButton schedule={schedule} onNote={onNote} reason={runReason} />
      <PauseButton schedule={schedule} reason={schedule.enabled ? undefined : runReason} />
      <PermissionButton
        permission="schedule:write"
        where={where}
        reason={start}
        icon="history"
        variant="default"
        onClick={() => setBackfilling(true)}
      >
        Backfill
      </PermissionButton>
      <BackfillDialog
        schedule={schedule}
        opened={isBackfilling}
        onClose={() => setBackfilling(false)}
      />
      <EditButton schedule={schedule} />
      <DeleteButton schedule={schedule} />
    </>
  );
}

function EditButton({ schedule: { id, tenantId } }: { schedule: Schedule }) {
  const { can } = usePermissions();
  const navigate = useNavigate();
  if (can('schedule:write', { tenantId }))
    return (
      <Button
        variant="default"
        leftSection={<Icon name="edit" size={14} />}
        renderRoot={(props) => (
          <PageLink {...props} to="/schedules/$scheduleId/edit" params={{ scheduleId: id }} />
        )}
      >
        Edit
      </Button>
    );
  return (
    <PermissionButton
      permission="schedule:write"
      where={{ tenantId }}
      icon="edit"
      variant="default"
      onClick={() =>
        void navigate({ to: '/schedules/$scheduleId/edit', params: { scheduleId: id } })
      }
    >
      Edit
    </PermissionButton>
  );
}

function DeleteButton({ schedule }: { schedule: Schedule }) {
  const { id, tenantId } = schedule;
  const navigate = useNavigate();
  const client = useQueryClient();
  const { started, ask, dialog } = useDeletion(schedule, {
    remove: (header) =>
      answer(api.DELETE('/api/schedules/{id}', { params: { path: { id }, header } })),
    onDeleted: () => {
      client.removeQueries({ queryKey: scheduleQuery(id).queryKey });
      void client.invalidateQueries({ queryKey: ['schedules', 'list'] });
      void navigate({ to: '/schedules' });
    },
    queryKey: scheduleQuery(id).queryKey,
  });
  return (
    <>
      <PermissionButton
        permission="schedule:write"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        onClick={ask}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog {...dialog} title={`Delete ${started.name}`} confirm="Delete schedule">
        Nothing runs any more. Its jobs and the list of its runs stay.
      </ConfirmDialog>
    </>
  );
}
