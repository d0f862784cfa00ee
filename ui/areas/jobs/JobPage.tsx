import { Progress } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useLiveRefresh } from '../../app/live.ts';
import { useTitle } from '../../app/useTitle.ts';
import { wholePercent } from '../../parts/format.ts';
import { Json } from '../../parts/Json.tsx';
import { LogView } from '../../parts/log/LogView.tsx';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordPage } from '../../parts/RecordPage.tsx';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { Reading } from '../../parts/Reading.tsx';
import { JobActions } from './JobActions.tsx';
import { JobArtifacts } from './JobArtifacts.tsx';
import { JobAttempts } from './JobAttempts.tsx';
import { JobFacts } from './JobFacts.tsx';
import { JobFailure } from './JobFailure.tsx';
import { jobLogSource, type JobState } from './jobLog.ts';
import { jobQuery, type Job } from './jobQueries.ts';
import { isFinal, waitingText } from './jobText.ts';
import classes from './Jobs.module.css';

const route = getRouteApi('/frame/jobs/$jobId');

const PARENT = { label: 'Jobs', to: '/jobs' };
const WAITING_MS = 10_000;

/** A job: how far it is, why it failed, its log, and what went in and came out. */
export function JobPage() {
  const { jobId } = route.useParams();
  const {
    data: job,
    error,
    refetch,
  } = useQuery({
    ...jobQuery(jobId),
    // Runners come and go without an event of the job.
    refetchInterval: ({ state }) => (state.data?.waitingFor ? WAITING_MS : false),
  });
  useTitle(job && `Job ${job.type} ${job.status}`);
  useLiveRefresh(['job.*'], jobQuery(jobId).queryKey, ({ subject }) => subject.id === jobId);
  if (!job)
    return (
      <RecordPage parent={PARENT} title="Job" id={jobId}>
        {error ? (
          <ProblemNote problem={error} retry={() => void refetch()} />
        ) : (
          <Reading height={320} label="Loading the job" />
        )}
      </RecordPage>
    );
  return (
    <RecordPage
      parent={PARENT}
      id={job.id}
      title={job.type}
      badge={<StatusBadge status={job.status} />}
      actions={<JobActions key={job.id} job={job} />}
      aside={<JobFacts job={job} />}
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} hasData />}
      <JobFailure job={job} />
      <JobProgress job={job} />
      <JobAttempts job={job} />
      <JobLog key={job.id} job={job} />
      {job.typeDigest !== null && <JobArtifacts job={job} />}
      <JobData job={job} />
    </RecordPage>
  );
}

/** How far a job is that has not ended. */
function JobProgress({ job: { status, progress, cancelRequestedAt, waitingFor } }: { job: Job }) {
  if (isFinal(status)) return null;
  if (cancelRequestedAt !== null)
    return <p className={classes.bar}>The job stops when its attempt has ended.</p>;
  if (status === 'queued' || waitingFor !== null)
    return <p className={classes.bar}>{waitingText(waitingFor)}</p>;
  if (!progress) return null;
  const percent = wholePercent(progress.percent);
  return (
    <div className={classes.bar}>
      <Progress className={classes.barTrack} value={percent} size="lg" aria-label="Progress" />
      <strong>{percent} %</strong>
      <span className={classes.barText}>{progress.message}</span>
    </div>
  );
}

/** The log, which goes on while the job runs. What it says about the job is shown everywhere. */
function JobLog({ job }: { job: Job }) {
  const client = useQueryClient();
  const { id } = job;
  const [wasFinal] = useState(() => isFinal(job.status));
  const source = useMemo(() => {
    const { queryKey } = jobQuery(id);
    return jobLogSource({
      jobId: id,
      total: wasFinal ? (job.logs.at(-1)?.line ?? 0) : undefined,
      onState: ({ status, attempt, progress }: JobState) => {
        client.setQueryData<Job>(
          queryKey,
          (old) => old && { ...old, status, attempts: attempt, progress },
        );
      },
      onEnd: () => void client.invalidateQueries({ queryKey: ['jobs'] }),
    });
    // The log of a job is one object for as long as it is shown.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [id]);
  return (
    <Section title="Log">
      {job.logsPurged ? (
        <p className={classes.muted}>The log is purged: its retention has passed.</p>
      ) : (
        <div className={classes.log}>
          <LogView
            source={source}
            label={`Log of ${job.type}`}
            fileName={`${job.type}-${id}.log`}
            start={wasFinal && job.status !== 'failed' ? 'top' : 'end'}
            empty="The job has written no lines."
          />
        </div>
      )}
    </Section>
  );
}

/** What went in and came out. */
function JobData({ job }: { job: Job }) {
  if (job.dataPurgedAt !== null)
    return (
      <p className={classes.muted}>
        Payload and result were purged <Time value={job.dataPurgedAt} />.
      </p>
    );
  return (
    <div className={classes.columns}>
      <Section title="Payload">
        <Json value={job.payload} label="Payload" />
      </Section>
      {job.result !== null && (
        <Section title="Result">
          <Json value={job.result} label="Result" />
        </Section>
      )}
    </div>
  );
}
