import { Button } from '@mantine/core';
import { useState } from 'react';
import { AskApproval } from '../../app/AskApproval.tsx';
import { TENANT_HEADER } from '../../app/session/tenant.ts';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import type { Backup, RestoreRun, SectionInfo, SectionName } from './backupQueries.ts';
import { hasChanges, permissionsOf, titleOf } from './backupText.ts';
import { ConfirmRestore } from './ConfirmRestore.tsx';
import { sectionsField } from './useStartPreview.ts';
import classes from './Backups.module.css';

type Props = {
  backup: Backup;
  run: RestoreRun;
  sections: readonly SectionInfo[];
  chosen: readonly SectionName[];
  accepts: boolean;
  isConfirming: boolean;
  onConfirming: (isConfirming: boolean) => void;
  onOthers: () => void;
};

/** Why this preview cannot be restored by anyone. */
function whyNotRestore({ valid, preview }: RestoreRun): string | undefined {
  if (valid === null || !preview) return 'There is no preview.';
  if (!valid) return 'The errors below prevent the restore.';
  return hasChanges(preview.counts) ? undefined : 'Nothing differs: there is nothing to restore.';
}

/** Restores what the preview shows, or asks others to approve that. */
export function RestoreButtons(props: Props) {
  const { backup, run, sections, chosen, accepts, isConfirming, onConfirming, onOthers } = props;
  const [isAsking, setAsking] = useState(false);
  const { whyNot } = usePermissions();
  const where = { tenantId: backup.tenantId };
  const reason = whyNotRestore(run);
  const missing = permissionsOf(sections, chosen)
    .map((permission) => whyNot(permission, where))
    .find((each) => each !== undefined);
  const request = {
    backupId: backup.id,
    ...sectionsField(backup, chosen),
    ...(run.planHash !== null && { planHash: run.planHash }),
    ...(accepts && { confirm: true as const }),
  };
  return (
    <div className={classes.buttons}>
      <PermissionButton
        permission="backup:restore"
        where={where}
        reason={reason ?? missing}
        icon="history"
        color="red.8"
        onClick={() => onConfirming(true)}
      >
        Restore
      </PermissionButton>
      <PermissionButton
        permission="workflow:write"
        where={where}
        reason={reason}
        icon="approval"
        variant="default"
        onClick={() => setAsking(true)}
      >
        Ask for approval instead
      </PermissionButton>
      <Button variant="default" onClick={onOthers}>
        Other sections
      </Button>
      <ConfirmRestore
        backup={backup}
        run={run}
        request={request}
        opened={isConfirming}
        onClose={() => onConfirming(false)}
      />
      <AskApproval
        opened={isAsking}
        onClose={() => setAsking(false)}
        type="job"
        title={`Restore ${titleOf(backup)}`}
        note="After the approval the restore makes exactly the changes of this preview, with your permissions. If records have changed by then, it fails and changes nothing. A backup is made before it."
        content={{ jobType: 'backup.restore', jobPayload: request }}
        where={where}
        headers={{ [TENANT_HEADER]: backup.tenantId }}
      />
    </div>
  );
}
