import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useMemo, useState } from 'react';
import { useLiveRefresh } from '../../../app/live.ts';
import { formatNumberOf } from '../../../parts/format.ts';
import { Icon } from '../../../parts/icons.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { recordPath } from '../../../parts/recordIds.ts';
import { Section } from '../../../parts/Section.tsx';
import { Reading } from '../../../parts/Reading.tsx';
import type { InventoryRecord } from '../inventoryQueries.ts';
import { ChosenSlot } from './ChosenSlot.tsx';
import { LooseDevices } from './LooseDevices.tsx';
import { newDeviceSearch } from './newDevice.ts';
import { RackFace } from './RackFace.tsx';
import { RackLegend } from './RackLegend.tsx';
import { createRackModel, FACES, type Slot } from './rackModel.ts';
import { MOUNT_EVENTS, rackQuery } from './rackQueries.ts';
import { slotText } from './rackStyle.ts';
import { UnitTable } from './UnitTable.tsx';
import classes from './Racks.module.css';

/** Leads to the device in a part of a rack, or to the form of a new one there. */
function useOpen(rack: InventoryRecord) {
  const navigate = useNavigate();
  const { canAnywhere } = usePermissions();
  return (slot: Slot): void => {
    if (slot.mount) {
      const { deviceId } = slot.mount;
      if (deviceId !== null) void navigate({ to: recordPath(deviceId) });
    } else if (canAnywhere('inventory:write'))
      void navigate({
        to: '/inventory/$resource/new',
        params: { resource: 'devices' },
        search: newDeviceSearch(rack, slot),
      });
  };
}

/** Both faces of a rack, and what is in it as a table. */
export function RackSection({ record }: { record: InventoryRecord }) {
  const { data, error, refetch } = useQuery(rackQuery(record.id));
  useLiveRefresh(MOUNT_EVENTS, rackQuery(record.id).queryKey);
  const [chosenKey, setChosen] = useState<string>();
  const open = useOpen(record);
  const model = useMemo(() => data && createRackModel(data.rack.uHeight, data.mounts), [data]);
  const chosen = model?.find(chosenKey);
  const name = String(record.name);
  return (
    <>
      <Section
        title="Units"
        note={data && formatNumberOf(data.rack.uHeight, 'rack unit')}
        actions={
          <Button
            variant="default"
            leftSection={<Icon name="printer" size={14} />}
            onClick={() => print()}
          >
            Print
          </Button>
        }
      >
        {error && <ProblemNote problem={error} retry={() => void refetch()} />}
        {!model && !error && <Reading height={400} label="Loading the rack" />}
        {model && (
          <div className={classes.rack}>
            <div className={classes.drawings}>
              <div className={classes.faces}>
                {FACES.map((face) => (
                  <RackFace
                    key={face}
                    {...{ model, face, chosen }}
                    rack={name}
                    onChoose={({ key }) => setChosen(key)}
                    onOpen={open}
                  />
                ))}
              </div>
              <RackLegend />
              <ChosenSlot slot={chosen} rack={record} />
            </div>
            <div className={classes.beside}>
              <UnitTable model={model} rack={record} />
            </div>
            <p className={classes.hidden} role="status">
              {chosen && slotText(chosen)}
            </p>
          </div>
        )}
      </Section>
      <LooseDevices rackId={record.id} />
    </>
  );
}
