import { Button } from '@mantine/core';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import type { InventoryRecord } from '../inventoryQueries.ts';
import { newDeviceSearch } from './newDevice.ts';
import { mountName, unitsText, type Slot } from './rackModel.ts';
import classes from './Racks.module.css';

type Props = { slot: Slot | undefined; rack: InventoryRecord };

/** The device or the free unit that is chosen, and what can be done there. */
export function ChosenSlot({ slot, rack }: Props) {
  return (
    <section className={classes.chosen} aria-label="Chosen part">
      {!slot && (
        <p className={classes.hint}>
          Choose a device or a free unit: with the pointer, or with the arrows. Enter opens it.
        </p>
      )}
      {slot?.mount && <Device slot={slot} />}
      {slot?.mount === null && <FreeUnit slot={slot} rack={rack} />}
    </section>
  );
}

function Device({ slot }: { slot: Extract<Slot, { isBehind: boolean }> }) {
  const { mount } = slot;
  const { deviceId, status, deviceTypeId, model, face, front, rear } = mount;
  const where = [
    unitsText(slot),
    face === null ? '' : `mounted on the ${face}`,
    front && rear ? 'takes both faces' : '',
  ];
  return (
    <>
      <strong>
        {deviceId === null ? mountName(mount) : <RecordLink id={deviceId} label={mount.name} />}
      </strong>
      {status !== null && <StatusBadge status={status} />}
      {deviceTypeId !== null && <RecordLink id={deviceTypeId} label={model} />}
      <span className={classes.muted}>{where.filter((text) => text !== '').join(', ')}</span>
    </>
  );
}

function FreeUnit({ slot, rack }: { slot: Slot; rack: InventoryRecord }) {
  const { canAnywhere } = usePermissions();
  return (
    <>
      <p className={classes.hint}>
        <strong>{unitsText(slot)}</strong> of the {slot.face} is free.
      </p>
      {canAnywhere('inventory:write') && (
        <Button
          variant="default"
          renderRoot={(props) => (
            <PageLink
              {...props}
              to="/inventory/$resource/new"
              params={{ resource: 'devices' }}
              search={newDeviceSearch(rack, slot)}
            />
          )}
        >
          New device here
        </Button>
      )}
    </>
  );
}
