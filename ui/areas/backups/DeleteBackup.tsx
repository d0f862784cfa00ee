import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { useDeletion } from '../../parts/versioned/useDeletion.ts';
import { backupKey, backupQuery, LIST_KEY, type Backup } from './backupQueries.ts';
import { isInProgress, titleOf } from './backupText.ts';

/** Why a backup cannot be deleted, as far as that is known before asking. */
function whyNotDelete({ status, keptAs }: Backup): string | undefined {
  if (isInProgress(status)) return 'The backup is in progress; cancel its job first.';
  return keptAs?.includes('legal_hold') === true
    ? 'A legal hold is in force over what it contains.'
    : undefined;
}

/** Deletes a backup and its archive, after its label was typed. */
export function DeleteBackup({ backup }: { backup: Backup }) {
  const { id, tenantId } = backup;
  const navigate = useNavigate();
  const client = useQueryClient();
  const { started, ask, dialog } = useDeletion(backup, {
    remove: (header) => {
      const params = { path: { backupId: id }, header };
      return answer(api.DELETE('/api/backup/{backupId}', { params }));
    },
    onDeleted: async () => {
      await navigate({ to: '/backups' });
      client.removeQueries({ queryKey: backupKey(id) });
      void client.invalidateQueries({ queryKey: LIST_KEY });
    },
    queryKey: backupQuery(id).queryKey,
  });
  return (
    <>
      <PermissionButton
        permission="backup:write"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        reason={whyNotDelete(backup)}
        onClick={ask}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog
        {...dialog}
        title={`Delete the backup ${titleOf(started)}`}
        confirm="Delete backup"
        typed={started}
      >
        The archive is removed from the store. Nothing can be restored from it any more.
      </ConfirmDialog>
    </>
  );
}
