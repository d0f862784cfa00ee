import { Progress } from '@mantine/core';
import { wholePercent } from '../../parts/format.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import classes from './Backups.module.css';

type Props = {
  jobId: string;
  status: string;
  progress: { percent: number; message: string | null } | null;
  /** What happens, until the job says more. */
  text: string;
};

/** How far a job is that makes a backup or loads one. */
export function RunProgress({ jobId, status, progress, text }: Props) {
  const { canAnywhere } = usePermissions();
  const percent = wholePercent(progress?.percent ?? 0);
  return (
    <div className={classes.bar} role="status">
      {status === 'queued' ? (
        <span>Waits for a free slot of a worker.</span>
      ) : (
        <>
          <Progress className={classes.barTrack} value={percent} size="lg" aria-label="Progress" />
          <strong>{percent} %</strong>
          <span>{progress?.message ?? text}</span>
        </>
      )}
      {canAnywhere('job:read') && <RecordLink id={jobId} label="Job and log" />}
    </div>
  );
}
