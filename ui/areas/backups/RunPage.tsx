import { Button } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useEffect, useRef } from 'react';
import { useTitle } from '../../app/useTitle.ts';
import { joinValues } from '../../parts/list/search.ts';
import { PageLink } from '../../parts/PageLink.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { backupQuery, runQuery, type Backup, type RestoreRun } from './backupQueries.ts';
import { failedTitle, isEnded, purposeText, runningText, titleOf } from './backupText.ts';
import { Failure } from './Failure.tsx';
import { Report } from './Report.tsx';
import { RunFacts, RunOutcome } from './RunFacts.tsx';
import { RunProgress } from './RunProgress.tsx';
import classes from './Backups.module.css';

const route = getRouteApi('/frame/backups/$backupId/runs/$runId');

/** A restore, a preview or a test restore: how far it is, why it failed, and what it has changed. */
export function RunPage() {
  const { backupId, runId: jobId } = route.useParams();
  const { data: run, error, refetch } = useQuery(runQuery(backupId, jobId));
  const { data: backup } = useQuery(backupQuery(backupId));
  const label = backup ? titleOf(backup) : 'Backup';
  const title = run ? `${purposeText(run.purpose)} of ${label}` : 'Restore';
  useTitle(title);
  useRefreshAfter(run);
  const parent = { label, to: `/backups/${backupId}` };
  if (!run)
    return (
      <RecordPage parent={parent} title={title} id={jobId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={240} label="Loading" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={parent}
      id={jobId}
      title={title}
      badge={<StatusBadge status={run.status} />}
      actions={<Compare run={run} backup={backup} />}
      aside={<RunFacts run={run} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <State run={run} />
      <Report run={run} isDone={run.purpose === 'restore' && run.status === 'succeeded'} />
    </RecordPage>
  );
}

/** After the end of a run everything may be different: a restore has no event for each record. */
function useRefreshAfter(run: RestoreRun | undefined): void {
  const client = useQueryClient();
  const wasRunning = useRef(false);
  const isRunning = run !== undefined && !isEnded(run.status);
  useEffect(() => {
    if (wasRunning.current && !isRunning) void client.invalidateQueries();
    wasRunning.current = isRunning;
  }, [client, isRunning]);
}

/** Errors first; then how far it is, or what it has done. */
function State({ run }: { run: RestoreRun }) {
  const { purpose, status, error, jobId, progress } = run;
  if (!isEnded(status))
    return (
      <>
        <RunProgress
          jobId={jobId}
          status={status}
          progress={progress}
          text={runningText(purpose)}
        />
        {purpose === 'restore' && (
          <p className={classes.muted}>
            All is restored, or nothing. Records can be read in the meantime; writers wait.
          </p>
        )}
      </>
    );
  if (status === 'cancelled') return <Failure title={failedTitle(purpose)} error={CANCELLED} />;
  if (error !== null) return <Failure title={failedTitle(purpose)} error={error} />;
  return <RunOutcome run={run} />;
}

const CANCELLED = { code: 'cancelled', message: 'The job was cancelled.' };

/** Leads to the restore with this preview, or to a new preview of the same sections. */
function Compare({ run, backup }: { run: RestoreRun; backup: Backup | undefined }) {
  const { backupId, jobId, purpose, status } = run;
  if (backup?.status !== 'completed' || purpose === 'verify' || !isEnded(status)) return null;
  const isAll = run.sections.length === backup.sections.length;
  const sections = isAll ? undefined : joinValues(run.sections);
  const preview = purpose === 'validate' && run.valid !== null ? jobId : undefined;
  return (
    <Button
      variant="default"
      renderRoot={(props) => (
        <PageLink
          {...props}
          to="/backups/$backupId/restore"
          params={{ backupId }}
          search={{ sections, preview }}
        />
      )}
    >
      {preview === undefined ? 'Compare again' : 'Restore with this preview'}
    </Button>
  );
}
