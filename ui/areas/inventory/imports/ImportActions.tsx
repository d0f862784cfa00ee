import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../../app/api.ts';
import { useCreation } from '../../../app/useCreation.ts';
import { ConfirmDialog } from '../../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ReasonButton } from '../../../parts/PermissionButton.tsx';
import { appliedQuery, importKey, IMPORTS, isRunning, type Import } from './importQueries.ts';
import { applyText, whyNotApply } from './importText.ts';

/** What can be done with an import. */
export function ImportActions({ record }: { record: Import }) {
  return (
    <>
      {record.dryRun && <ApplyButton record={record} />}
      {isRunning(record) && <CancelButton record={record} />}
    </>
  );
}

/** Imports the rows of a dry run. */
function ApplyButton({ record }: { record: Import }) {
  const [isOpen, setOpen] = useState(false);
  const { canAnywhere } = usePermissions();
  const navigate = useNavigate();
  const client = useQueryClient();
  const applied = useQuery(appliedQuery(record.id)).data;
  const apply = useCreation({
    send: (id: string, header) =>
      answer(api.POST('/api/inventory/imports/{id}/apply', { params: { path: { id }, header } })),
    onMade: ({ id }) => {
      void client.invalidateQueries({ queryKey: IMPORTS });
      void navigate({ to: '/inventory/imports/$importId', params: { importId: id } });
    },
  });
  if (!canAnywhere('inventory:write')) return null;
  return (
    <>
      <ReasonButton
        icon="upload"
        reason={whyNotApply(record, applied)}
        onClick={() => setOpen(true)}
      >
        Import the rows
      </ReasonButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          apply.reset();
        }}
        title="Import the rows of this dry run"
        confirm="Import"
        onConfirm={() => apply.create(record.id)}
        busy={apply.isBusy}
        problem={apply.error}
      >
        {applyText(record)} Each row is planned again: records may have changed since.
      </ConfirmDialog>
    </>
  );
}

/** Stops the job of an import. */
function CancelButton({ record: { id, jobId, tenantId, dryRun } }: { record: Import }) {
  const [isOpen, setOpen] = useState(false);
  const client = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => answer(api.POST('/api/jobs/{jobId}/cancel', { params: { path: { jobId } } })),
    onSuccess: () => setOpen(false),
    onSettled: () => void client.invalidateQueries({ queryKey: importKey(id) }),
  });
  return (
    <>
      <PermissionButton
        permission="job:cancel"
        where={{ tenantId }}
        variant="default"
        icon="stop"
        onClick={() => setOpen(true)}
      >
        Cancel
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          cancel.reset();
        }}
        title={dryRun ? 'Cancel the dry run' : 'Cancel the import'}
        confirm={dryRun ? 'Cancel dry run' : 'Cancel import'}
        cancel="Let it run"
        danger
        onConfirm={() => cancel.mutate()}
        busy={cancel.isPending}
        problem={cancel.error}
      >
        {dryRun
          ? 'No row is checked further.'
          : 'Rows that are written stay written. The report says which.'}
      </ConfirmDialog>
    </>
  );
}
