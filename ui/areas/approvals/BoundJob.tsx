import { useQuery } from '@tanstack/react-query';
import { useLiveRefresh } from '../../app/live.ts';
import { useSession } from '../../app/session/useSession.ts';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Duration } from '../../parts/Duration.tsx';
import { Exact } from '../../parts/Exact.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { jobQuery } from './queries.ts';
import { useJobProgress } from './useJobProgress.ts';
import type { ApprovalRequest } from '../../parts/approvals/requestQuery.ts';
import classes from './BoundJob.module.css';

/** What the job of an approved request does now. */
function LiveJob({ jobId }: { jobId: string }) {
  const { queryKey, queryFn } = jobQuery(jobId);
  const { data: job, error, refetch } = useQuery({ queryKey, queryFn });
  const isRunning = job?.status === 'queued' || job?.status === 'running';
  const { progress, lastLine } = useJobProgress(jobId, isRunning);
  useLiveRefresh(['job.*'], queryKey, ({ subject }) => subject.id === jobId);
  if (!job) return error ? <ProblemNote problem={error} retry={() => void refetch()} /> : null;
  const percent = (progress ?? job.progress)?.percent;
  return (
    <>
      <DescriptionList
        items={[
          { label: 'State', value: <StatusBadge status={job.status} /> },
          { label: 'Job', value: <RecordLink id={job.id} label={`${job.type}: log and result`} /> },
          job.startedAt !== null && {
            label: 'Time',
            value: <Duration from={job.startedAt} to={job.finishedAt} />,
          },
          job.attempts > 1 && { label: 'Attempts', value: job.attempts },
          job.error !== null && {
            label: 'Error',
            value: <Exact text={`${job.error.code}: ${job.error.message}`} />,
          },
        ]}
      />
      {isRunning && percent !== undefined && (
        <progress
          className={classes.progress}
          max={100}
          value={percent}
          aria-label="Progress of the job"
        />
      )}
      {isRunning && lastLine !== undefined && (
        <code className={classes.line}>
          <Exact text={lastLine} />
        </code>
      )}
    </>
  );
}

/** The job that an approval has started, or will start. */
export function BoundJob({ request }: { request: ApprovalRequest }) {
  const { canAnywhere } = useSession();
  const { job, jobId, jobType, execution, executeAt, executedAt, status } = request;
  if (jobType === null || (status !== 'pending' && status !== 'approved')) return null;
  const isReadable = jobId !== null && job?.purged !== true && canAnywhere('job:read');
  return (
    <Section title={status === 'pending' ? 'After the approval' : 'Execution'}>
      {isReadable ? (
        <LiveJob jobId={jobId} />
      ) : (
        <DescriptionList
          items={[
            { label: 'Job type', value: jobType },
            execution !== 'none' && { label: 'State', value: <StatusBadge status={execution} /> },
            executeAt !== null && { label: 'Starts', value: <Time value={executeAt} /> },
            executedAt !== null && { label: 'Finished', value: <Time value={executedAt} /> },
            job?.purged === true && {
              label: 'Job',
              value: 'deleted by retention',
            },
          ]}
        />
      )}
    </Section>
  );
}
