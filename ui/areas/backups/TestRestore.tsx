import { useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { answer, api } from '../../app/api.ts';
import { TENANT_HEADER } from '../../app/session/tenant.ts';
import { useCreation } from '../../app/useCreation.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { backupKey, type Backup } from './backupQueries.ts';
import { titleOf } from './backupText.ts';

type Props = { backup: Backup; onNote: (note: ReactNode) => void };

/** Starts a test restore of a backup. */
export function TestRestore({ backup, onNote }: Props) {
  const { tenantId } = backup;
  const [runs, setRuns] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const { whyNot } = usePermissions();
  const where = { tenantId };
  return (
    <>
      <PermissionButton
        permission="backup:write"
        where={where}
        reason={whyNot('job:write', where)}
        icon="shield"
        variant="default"
        onClick={() => setOpen(true)}
      >
        Test restore
      </PermissionButton>
      {/* Each is another job: what was sent for one is forgotten with its dialog. */}
      <TestDialog
        key={runs}
        backup={backup}
        opened={isOpen}
        onClose={() => setOpen(false)}
        onStarted={(jobId) => {
          setOpen(false);
          setRuns(runs + 1);
          onNote(
            <span>
              A test restore has started: <RecordLink id={jobId} label="job and log" />.
            </span>,
          );
        }}
      />
    </>
  );
}

type DialogProps = {
  backup: Backup;
  opened: boolean;
  onClose: () => void;
  onStarted: (jobId: string) => void;
};

function TestDialog({ backup, opened, onClose, onStarted }: DialogProps) {
  const client = useQueryClient();
  const { create, isBusy, error, reset } = useCreation({
    send: (backupId: string, header) =>
      answer(
        api.POST('/api/jobs', {
          params: { header },
          headers: { [TENANT_HEADER]: backup.tenantId },
          body: { type: 'backup.verify', payload: { backupId } },
        }),
      ),
    onMade: ({ id }) => {
      void client.invalidateQueries({ queryKey: backupKey(backup.id) });
      onStarted(id);
    },
  });
  return (
    <ConfirmDialog
      opened={opened}
      onClose={() => {
        onClose();
        reset();
      }}
      title={`Test the backup ${titleOf(backup)}`}
      confirm="Start test restore"
      onConfirm={() => create(backup.id)}
      busy={isBusy}
      problem={error}
    >
      A job loads the archive completely, compares it with what was written, and migrates it to the
      present schema. No record changes.
    </ConfirmDialog>
  );
}
