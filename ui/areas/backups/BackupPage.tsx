import { Alert } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import { useTitle } from '../../app/useTitle.ts';
import { usePermissions } from '../../parts/permissions.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { BackupActions } from './BackupActions.tsx';
import { BackupContents } from './BackupContents.tsx';
import { BackupFacts } from './BackupFacts.tsx';
import { backupKey, backupQuery, jobProgressQuery, type Backup } from './backupQueries.ts';
import { isInProgress, titleOf } from './backupText.ts';
import { Failure } from './Failure.tsx';
import { RunList } from './RunList.tsx';
import { RunProgress } from './RunProgress.tsx';
import { useBackupsLive } from './useBackupsLive.ts';
import classes from './Backups.module.css';

const route = getRouteApi('/frame/backups/$backupId');

const PARENT = { label: 'Backups', to: '/backups' };

/** A backup: whether it can be restored, what it contains, and what was done with it. */
export function BackupPage() {
  const { backupId } = route.useParams();
  // What was noted of one backup is not about the next.
  return <OfBackup key={backupId} backupId={backupId} />;
}

function OfBackup({ backupId }: { backupId: string }) {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const [note, setNote] = useState<ReactNode>();
  const { data: backup, error, refetch } = useQuery(backupQuery(backupId));
  useTitle(backup && `Backup ${titleOf(backup)}`);
  useBackupsLive(backupKey(backupId), note !== undefined || isInProgress(backup?.status ?? ''));
  if (!backup)
    return (
      <RecordPage parent={PARENT} title="Backup" id={backupId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the backup" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={backup.id}
      title={titleOf(backup)}
      badge={<StatusBadge status={backup.status} />}
      actions={<BackupActions backup={backup} onNote={setNote} />}
      aside={<BackupFacts backup={backup} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <State backup={backup} />
      {note !== undefined && (
        <div className={classes.bar} role="status">
          {note}
        </div>
      )}
      <BackupContents backup={backup} />
      {backup.status === 'completed' && (
        <RunList
          backupId={backup.id}
          search={search}
          onSearch={(next) => void navigate({ search: next, replace: true })}
        />
      )}
    </RecordPage>
  );
}

/** Errors first: why it failed, why it cannot be restored, or how far it is. */
function State({ backup }: { backup: Backup }) {
  const { status, error, restorePreview } = backup;
  if (error !== null) return <Failure title="The backup has failed" error={error} />;
  if (isInProgress(status)) return <BackupProgress backup={backup} />;
  const { restorable, reason } = restorePreview;
  if (restorable) return null;
  return (
    <Alert color="red" title="This backup cannot be restored" role="alert">
      {reason}
    </Alert>
  );
}

function BackupProgress({ backup: { jobId, status } }: { backup: Backup }) {
  const { canAnywhere } = usePermissions();
  const isAllowed = jobId !== null && canAnywhere('job:read');
  const { data } = useQuery({ ...jobProgressQuery(jobId ?? ''), enabled: isAllowed });
  if (jobId === null)
    return (
      <p className={classes.bar} role="status">
        It is being made, before a restore.
      </p>
    );
  return (
    <RunProgress
      jobId={jobId}
      status={data?.status ?? status}
      progress={data?.progress ?? null}
      text="Loading the records"
    />
  );
}
