import { useQuery } from '@tanstack/react-query';
import { useLiveRefresh } from '../../../app/live.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { Time } from '../../../parts/Time.tsx';
import { deviceJobsQuery } from './deviceQueries.ts';
import links from '../Inventory.module.css';
import classes from './Devices.module.css';

/** The newest jobs about a device. */
export function DeviceJobs({ deviceId }: { deviceId: string }) {
  const { canAnywhere } = usePermissions();
  return canAnywhere('job:read') ? <Jobs deviceId={deviceId} /> : null;
}

function Jobs({ deviceId }: { deviceId: string }) {
  const query = deviceJobsQuery(deviceId);
  const { data, error, refetch } = useQuery(query);
  useLiveRefresh(['job.*'], query.queryKey);
  const jobs = data?.items ?? [];
  if (jobs.length === 0 && !error) return null;
  return (
    <Section
      title="Jobs"
      note="about this device, the newest first"
      actions={
        <PageLink className={links.link} to="/jobs" search={{ deviceId }}>
          All of them
        </PageLink>
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <ul className={classes.jobs}>
        {jobs.map(({ id, type, status, createdAt }) => (
          <li key={id}>
            <RecordLink id={id} label={type} />
            <StatusBadge status={status} plain />
            <Time value={createdAt} format="relative" />
          </li>
        ))}
      </ul>
    </Section>
  );
}
