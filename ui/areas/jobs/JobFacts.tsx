import { useQuery } from '@tanstack/react-query';
import { Actor } from '../../parts/Actor.tsx';
import { DescriptionList } from '../../parts/DescriptionList.tsx';
import { Duration } from '../../parts/Duration.tsx';
import { describeRetries } from '../../parts/form/retryPolicy.ts';
import { labelOfField } from '../../parts/format.ts';
import { labelOf } from '../../parts/names.ts';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { targetLabel } from '../../parts/records/target.ts';
import { Section } from '../../parts/Section.tsx';
import { StatusBadge } from '../../parts/StatusBadge.tsx';
import { Time } from '../../parts/Time.tsx';
import { sourceLabel } from './jobFilters.ts';
import { retriesQuery, type Job } from './jobQueries.ts';
import { relatedIds } from './jobText.ts';
import classes from './Jobs.module.css';

/** Who asked for a job, by what, when it ran, and the records that it has to do with. */
export function JobFacts({ job }: { job: Job }) {
  const { included: names, source, retried } = job;
  return (
    <>
      <Section title="Details">
        <DescriptionList
          items={[
            { label: 'Created by', value: <Actor id={job.createdBy} names={names} /> },
            {
              label: 'Started by',
              value: (
                <>
                  {sourceLabel(source.kind)}
                  {source.id !== null && (
                    <>
                      {' '}
                      <RecordLink id={source.id} names={names} />
                    </>
                  )}
                </>
              ),
            },
            retried !== null && {
              label: 'Retry of',
              value: retried.purged ? (
                <span>{retried.id} (purged)</span>
              ) : (
                <RecordLink id={retried.id} />
              ),
            },
            job.target !== null && {
              label: targetLabel(job.target.kind),
              value: <RecordLink id={job.target.id} label={job.target.name ?? undefined} />,
            },
            { label: 'Tenant', value: labelOf(names, job.tenantId, 'tenants') ?? job.tenantId },
            { label: 'Created', value: <Time value={job.createdAt} /> },
            { label: 'Started', value: <Time value={job.startedAt} /> },
            { label: 'Ended', value: <Time value={job.finishedAt} /> },
            {
              label: 'Duration',
              value: <Duration from={job.startedAt} to={job.finishedAt} />,
            },
            job.cancelRequestedAt !== null && {
              label: 'Cancel requested',
              value: <Time value={job.cancelRequestedAt} />,
            },
            job.typeDigest !== null && {
              label: 'Version of the type',
              value: <code title={job.typeDigest}>{job.typeDigest.slice(0, 12)}</code>,
            },
            { label: 'Retries', value: describeRetries(job.retryPolicy) },
          ]}
        />
      </Section>
      <Retries jobId={job.id} isFinished={job.finishedAt !== null} />
      <Related job={job} />
    </>
  );
}

/** Jobs that repeat this one. */
function Retries({ jobId, isFinished }: { jobId: string; isFinished: boolean }) {
  const { data } = useQuery({ ...retriesQuery(jobId), enabled: isFinished });
  if (!data || data.items.length === 0) return null;
  return (
    <Section title="Retried as">
      <ul className={classes.links}>
        {data.items.map(({ id, status, createdAt }) => (
          <li key={id}>
            <RecordLink id={id} />
            <StatusBadge status={status} plain />
            <Time value={createdAt} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

/** Records that the payload and the result name. */
function Related({ job }: { job: Job }) {
  const related = relatedIds([job.payload, job.result], job.id);
  if (related.length === 0) return null;
  return (
    <Section title="Records">
      <ul className={classes.links}>
        {related.map(({ id, field }) => (
          <li key={id}>
            <span className={classes.muted}>{field === '' ? 'Id' : labelOfField(field)}</span>
            <RecordLink id={id} names={job.included} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
