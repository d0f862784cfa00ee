import { Button } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { answer, api, Problem } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { BackfillDialog } from './BackfillDialog.tsx';
import type { Schedule } from './scheduleQueries.ts';
import { PauseButton } from './PauseButton.tsx';
import { jobTypesQuery, scheduleQuery } from './scheduleQueries.ts';
import { TriggerButton } from './TriggerButton.tsx';

type Props = { schedule: Schedule; onNote: (note: ReactNode) => void };

/** What can be done with a schedule. */
export function ScheduleActions({ schedule, onNote }: Props) {
  const [isBackfilling, setBackfilling] = useState(false);
  const { whyNot } = usePermissions();
  const where = { tenantId: schedule.tenantId };
  const types = useQuery(jobTypesQuery);
  // Running jobs of such a type needs its permission too.
  const permission = types.data?.items.find(({ name }) => name === schedule.jobType)?.permission;
  const runReason = permission == null ? undefined : whyNot(permission, where);
  return (
    <>
      <TriggerButton schedule={schedule} onNote={onNote} reason={runReason} />
      <PauseButton schedule={schedule} reason={schedule.enabled ? undefined : runReason} />
      <PermissionButton
        permission="schedule:write"
        where={where}
        reason={runReason}
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
  const { id, tenantId, name, version } = schedule;
  const [isOpen, setOpen] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      answer(
        api.DELETE('/api/schedules/{id}', {
          params: { path: { id }, header: { 'If-Match': `"${version}"` } },
        }),
      ),
    onSuccess: () => {
      client.removeQueries({ queryKey: scheduleQuery(id).queryKey });
      void client.invalidateQueries({ queryKey: ['schedules', 'list'] });
      void navigate({ to: '/schedules' });
    },
    onError: (error) => {
      // Someone has changed it: the dialog goes on with what is on the page now.
      if (error instanceof Problem && error.status === 412)
        void client.invalidateQueries(scheduleQuery(id));
    },
  });
  return (
    <>
      <PermissionButton
        permission="schedule:write"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        onClick={() => setOpen(true)}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          remove.reset();
        }}
        title={`Delete ${name}`}
        confirm="Delete schedule"
        danger
        onConfirm={() => remove.mutate()}
        busy={remove.isPending}
        problem={remove.error}
      >
        Nothing runs any more. Its jobs and the list of its runs stay.
      </ConfirmDialog>
    </>
  );
}
