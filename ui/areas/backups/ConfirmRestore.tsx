import { Checkbox } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useCreation } from '../../app/useCreation.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { Time } from '../../parts/Time.tsx';
import { backupKey, type Backup, type RestoreRun, type SectionName } from './backupQueries.ts';
import { countsText, titleOf } from './backupText.ts';
import classes from './Backups.module.css';

type Request = {
  backupId: string;
  sections?: SectionName[];
  planHash?: string;
  confirm?: true;
};

type Props = {
  backup: Backup;
  run: RestoreRun;
  request: Request;
  opened: boolean;
  onClose: () => void;
};

/** The third step: the label of the backup is typed. */
export function ConfirmRestore({ backup, run, request, opened, onClose }: Props) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const [preRestoreBackup, setPreRestore] = useState(true);
  const { create, isBusy, error, reset } = useCreation({
    send: (body: Request & { preRestoreBackup: boolean }, header) =>
      answer(
        api.POST('/api/backup/restore', {
          // The page of the restore shows how far it is, instead of waiting.
          params: { header: { ...header, Prefer: 'wait=1' } },
          body,
        }),
      ),
    onMade: ({ jobId }) => {
      void client.invalidateQueries({ queryKey: backupKey(backup.id) });
      void navigate({
        to: '/backups/$backupId/runs/$runId',
        params: { backupId: backup.id, runId: jobId },
      });
    },
  });
  return (
    <ConfirmDialog
      opened={opened}
      onClose={() => {
        onClose();
        reset();
      }}
      title={`Restore ${titleOf(backup)}`}
      confirm="Restore"
      typed={backup}
      danger
      onConfirm={() => create({ ...request, preRestoreBackup })}
      busy={isBusy}
      problem={error}
    >
      <p className={classes.paragraph}>
        Of {run.sections.join(', ')}, the records become those of{' '}
        <Time value={backup.snapshotAt} format="full" />:{' '}
        <strong>{run.preview && countsText(run.preview.counts)}</strong>. All of it, or nothing if
        records have changed since the preview. Writers wait while it runs.
      </p>
      <Checkbox
        size="xs"
        label="Make a backup of the present records first"
        checked={preRestoreBackup}
        onChange={(event) => setPreRestore(event.currentTarget.checked)}
      />
    </ConfirmDialog>
  );
}
