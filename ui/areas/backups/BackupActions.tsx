import { Button } from '@mantine/core';
import type { ReactNode } from 'react';
import { useNavigate } from '@tanstack/react-router';
import { useShortcuts } from '../../app/shortcuts.ts';
import { Icon } from '../../parts/icons.tsx';
import { PageLink } from '../../parts/PageLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import type { Backup } from './backupQueries.ts';
import { DeleteBackup } from './DeleteBackup.tsx';
import { TestRestore } from './TestRestore.tsx';

type Props = { backup: Backup; onNote: (note: ReactNode) => void };

/** What can be done with a backup. */
export function BackupActions({ backup, onNote }: Props) {
  return (
    <>
      {backup.status === 'completed' && <PrepareRestore backup={backup} />}
      {backup.status === 'completed' && <TestRestore backup={backup} onNote={onNote} />}
      <DeleteBackup backup={backup} />
    </>
  );
}

/** Leads to the preview of a restore, which changes nothing: all who may read backups can see it. */
function PrepareRestore({ backup: { id } }: { backup: Backup }) {
  const { canAnywhere } = usePermissions();
  const navigate = useNavigate();
  const params = { backupId: id };
  useShortcuts([
    {
      keys: 'p',
      label: 'Preview a restore',
      run: () => void navigate({ to: '/backups/$backupId/restore', params }),
    },
  ]);
  return (
    <Button
      leftSection={<Icon name="history" size={14} />}
      renderRoot={(props) => (
        <PageLink {...props} to="/backups/$backupId/restore" params={params} />
      )}
    >
      {canAnywhere('backup:restore') ? 'Restore' : 'Preview a restore'}
    </Button>
  );
}
