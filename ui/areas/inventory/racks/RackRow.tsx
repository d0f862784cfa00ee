import { formatNumberOf } from '../../../parts/format.ts';
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { PageLink } from '../../../parts/PageLink.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { DERIVED_MS } from '../inventoryQueries.ts';
import links from '../Inventory.module.css';
import { createRackModel } from './rackModel.ts';
import { MOUNT_EVENTS, racksOfQuery, type MountedRack } from './rackQueries.ts';
import { RackThumb } from './RackThumb.tsx';
import classes from './Racks.module.css';

type Props = { field: 'siteId' | 'locationId'; id: string };

/** The racks of a site or a location as small pictures of their fronts. */
export function RackRow({ field, id }: Props) {
  const query = racksOfQuery(field, id);
  const { data, error, refetch } = useQuery(query);
  useLiveRefresh(MOUNT_EVENTS, query.queryKey, () => true, DERIVED_MS);
  if (error && !data) return <ProblemNote problem={error} retry={() => void refetch()} />;
  if (!data || data.racks.length === 0) return null;
  return (
    <Section
      title="Racks"
      actions={
        data.hasMore && (
          <PageLink
            className={links.link}
            to="/inventory/$resource"
            params={{ resource: 'racks' }}
            search={{ [field]: id }}
          >
            All of them
          </PageLink>
        )
      }
    >
      <ul className={classes.rackRow}>
        {data.racks.map((each) => (
          <SmallRack key={each.rack.id} {...each} />
        ))}
      </ul>
    </Section>
  );
}

function SmallRack({ rack, mounts }: MountedRack) {
  const model = useMemo(() => createRackModel(rack.uHeight, mounts), [rack, mounts]);
  const free = `${model.freeOf('front')} of ${formatNumberOf(rack.uHeight, 'unit')} free`;
  return (
    <li>
      <RackThumb model={model} face="front" label={`${rack.name}, ${free}`} />
      <RecordLink id={rack.id} label={rack.name} />
      <span className={classes.muted}>{free}</span>
      {rack.status !== 'active' && <StatusBadge status={rack.status} plain />}
    </li>
  );
}
