import { useQuery } from '@tanstack/react-query';
import { PageLink } from '../../parts/PageLink.tsx';
import { useLiveRefresh } from '../../app/live.ts';
import { ProblemNote } from '../../parts/ProblemNote.tsx';
import { RecordLink } from '../../parts/RecordLink.tsx';
import { Section } from '../../parts/Section.tsx';
import { Time } from '../../parts/Time.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { queuedText, whyQueued } from './poolText.ts';
import {
  poolKey,
  poolRunnersQuery,
  poolTypesQuery,
  queuedJobsQuery,
  type Pool,
} from './runnerQueries.ts';
import classes from './Runners.module.css';

const JOBS_MS = 2_000;

/** The oldest jobs that wait for a pool, each with the reason. */
export function PoolJobs({ pool }: { pool: Pool }) {
  const { name } = pool;
  const { canAnywhere } = usePermissions();
  const types = useQuery({ ...poolTypesQuery(name), enabled: canAnywhere('job:read') }).data ?? [];
  const runners = useQuery(poolRunnersQuery(name)).data ?? [];
  const names = types.map((type) => type.name);
  const { data, error, refetch } = useQuery(queuedJobsQuery(name, names));
  const concerns = new Set(names);
  useLiveRefresh(
    ['job.*'],
    poolKey(name),
    ({ data: { type } }) => typeof type === 'string' && concerns.has(type),
    JOBS_MS,
  );
  if (pool.queuedJobs === 0) return null;
  const jobs = data?.items ?? [];
  return (
    <Section
      title="Waiting jobs"
      note={queuedText(pool)}
      actions={
        jobs.length > 0 && (
          <PageLink to="/jobs" search={{ status: 'queued', pool: name }}>
            All that you may see
          </PageLink>
        )
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      {data?.items.length === 0 && (
        <p className={classes.muted}>None of them is one that you may see.</p>
      )}
      {jobs.length > 0 && (
        <JobTable jobs={jobs} whyOf={(type) => whyQueued(type, { pool, runners, types })} />
      )}
    </Section>
  );
}

type TableProps = {
  jobs: readonly { id: string; type: string; createdAt: string }[];
  whyOf: (type: string) => string;
};

function JobTable({ jobs, whyOf }: TableProps) {
  return (
    <div className={classes.scroll} tabIndex={0} role="group" aria-label="Waiting jobs">
      <table className={classes.table}>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col">Type</th>
            <th scope="col">Since</th>
            <th scope="col">Waits because</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id}>
              <td>
                <RecordLink id={job.id} />
              </td>
              <td>{job.type}</td>
              <td>
                <Time value={job.createdAt} format="relative" />
              </td>
              <td>{whyOf(job.type)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
