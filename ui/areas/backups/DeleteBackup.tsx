import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { backupKey, backupQuery, LIST_KEY, type Backup } from './backupQueries.ts';
import { isInProgress, titleOf, typedName } from './backupText.ts';

/** Why a backup cannot be deleted, as far as that is known before asking. */
function whyNotDelete({ status, keptAs }: Backup): string | undefined {
  if (isInProgress(status)) return 'The backup is in progress; cancel its job first.';
  return keptAs?.includes('legal_hold') === true
    ? 'A legal hold is in force over what it contains.'
    : undefined;
}

/** Deletes a backup and its archive, after its label was typed. */
export function DeleteBackup({ backup }: { backup: Backup }) {
  const { id, tenantId, version } = backup;
  const [isOpen, setOpen] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      answer(
        api.DELETE('/api/backup/{backupId}', {
          params: { path: { backupId: id }, header: { 'If-Match': `"${version}"` } },
        }),
      ),
    onSuccess: async () => {
      await navigate({ to: '/backups' });
      client.removeQueries({ queryKey: backupKey(id) });
      void client.invalidateQueries({ queryKey: LIST_KEY });
    },
    onError: () => void client.invalidateQueries(backupQuery(id)),
  });
  return (
    <>
      <PermissionButton
        permission="backup:write"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        reason={whyNotDelete(backup)}
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
        title={`Delete the backup ${titleOf(backup)}`}
        confirm="Delete backup"
        typed={typedName(backup)}
        danger
        onConfirm={() => remove.mutate()}
        busy={remove.isPending}
        problem={remove.error}
      >
        The archive is removed from the store. Nothing can be restored from it any more.
      </ConfirmDialog>
    </>
  );
}
