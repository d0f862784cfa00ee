import { useQuery } from '@tanstack/react-query';
import { PageLink } from '../../../parts/PageLink.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { useLiveRefresh } from '../../../app/live.ts';
import { looseDevicesQuery } from './rackQueries.ts';
import links from '../Inventory.module.css';
import classes from './Racks.module.css';

/** Devices that are in the rack and have no position, such as those without rack units. */
export function LooseDevices({ rackId }: { rackId: string }) {
  const query = looseDevicesQuery(rackId);
  const { data, error, refetch } = useQuery(query);
  useLiveRefresh(['inventory.device.*'], query.queryKey);
  const items = data?.items ?? [];
  if (items.length === 0 && !error) return null;
  return (
    <Section
      title="Without a position"
      actions={
        data?.nextCursor != null && (
          <PageLink
            className={links.link}
            to="/inventory/$resource"
            params={{ resource: 'devices' }}
            search={{ rackId, position: 'none' }}
          >
            All of them
          </PageLink>
        )
      }
    >
      {error && <ProblemNote problem={error} retry={() => void refetch()} />}
      <ul className={classes.loose}>
        {items.map(({ id, name, status, deviceTypeId }) => (
          <li key={id} className={classes.device}>
            <RecordLink id={id} label={name} />
            <StatusBadge status={status} plain />
            <RecordLink id={deviceTypeId} names={data?.included} kind="device-types" />
          </li>
        ))}
      </ul>
    </Section>
  );
}
