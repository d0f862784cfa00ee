import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { isWorthRepeating, problemFields } from '../../../parts/problems.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { DERIVED_MS, type InventoryRecord } from '../inventoryQueries.ts';
import { createRackModel, FACES, unitsText } from '../racks/rackModel.ts';
import { MOUNT_EVENTS, rackQuery } from '../racks/rackQueries.ts';
import { RackThumb } from '../racks/RackThumb.tsx';
import classes from '../racks/Racks.module.css';

/** Where a device is in its rack: both faces as small pictures. */
export function RackPosition({ device }: { device: InventoryRecord }) {
  const { rackId } = device;
  return typeof rackId === 'string' ? <Drawing device={device} rackId={rackId} /> : null;
}

function Drawing({ device, rackId }: { device: InventoryRecord; rackId: string }) {
  const query = rackQuery(rackId);
  const { data, error, refetch } = useQuery(query);
  useLiveRefresh(MOUNT_EVENTS, query.queryKey, () => true, DERIVED_MS);
  const model = useMemo(() => data && createRackModel(data.rack.uHeight, data.mounts), [data]);
  // A rack that the user may not read has no drawing: the field Rack says that there is one.
  if (!data || !model)
    return error && isWorthRepeating(problemFields(error)) ? (
      <Section title="In its rack">
        <ProblemNote problem={error} retry={() => void refetch()} />
      </Section>
    ) : null;
  const slot = model.ofDevice(device.id);
  const where = slot
    ? `${String(device.name)} at ${unitsText(slot)}`
    : `${String(device.name)} has no position`;
  return (
    <Section title="In its rack">
      <div className={classes.device}>
        <RecordLink id={rackId} label={data.rack.name} />
        <span className={classes.muted}>
          {slot ? `${unitsText(slot)} of the ${String(device.face)}` : 'without a position'}
        </span>
      </div>
      <div className={classes.thumbs}>
        {FACES.map((face) => (
          <RackThumb key={face} model={model} face={face} label={where} deviceId={device.id} />
        ))}
      </div>
    </Section>
  );
}
