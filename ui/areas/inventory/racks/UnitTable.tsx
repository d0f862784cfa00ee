import type { ReactNode } from 'react';
import { labelOfField } from '../../../parts/format.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import type { InventoryRecord } from '../inventoryQueries.ts';
import { newDeviceSearch } from './newDevice.ts';
import { FACES, mountName, unitsText, type Face, type Mount, type RackModel } from './rackModel.ts';
import classes from './Racks.module.css';

type Props = { model: RackModel; rack: InventoryRecord };

/** The same as the drawing, as a table: runs of units in which neither face changes. */
export function UnitTable({ model, rack }: Props) {
  return (
    <table className={classes.table}>
      <caption className={classes.hidden}>Units, from the top down</caption>
      <thead>
        <tr>
          <th scope="col">Units</th>
          {FACES.map((face) => (
            <th key={face} scope="col">
              {labelOfField(face)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {model.segments.map((segment) => (
          <tr key={segment.high}>
            <th scope="row">{unitsText(segment)}</th>
            {FACES.map((face) => (
              <td key={face}>
                {segment[face] ? (
                  <Device mount={segment[face]} face={face} />
                ) : (
                  <Free rack={rack} low={segment.low} face={face} />
                )}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Device({ mount, face }: { mount: Mount; face: Face }): ReactNode {
  const { deviceId, name, status, model } = mount;
  if (deviceId === null) return <span className={classes.muted}>{mountName(mount)}</span>;
  // It is described on the face that it is mounted on.
  if (mount.face !== face)
    return (
      <span className={classes.muted}>
        <RecordLink id={deviceId} label={name} /> (depth of the {mount.face})
      </span>
    );
  return (
    <span className={classes.device}>
      <RecordLink id={deviceId} label={name} />
      {status !== null && <StatusBadge status={status} plain />}
      <span className={classes.muted}>{model}</span>
    </span>
  );
}

type FreeProps = { rack: InventoryRecord; low: number; face: Face };

function Free({ rack, low, face }: FreeProps) {
  const { canAnywhere } = usePermissions();
  return (
    <span className={classes.free}>
      <span className={classes.muted}>free</span>
      {canAnywhere('inventory:write') && (
        <PageLink
          className={classes.newLink}
          to="/inventory/$resource/new"
          params={{ resource: 'devices' }}
          search={newDeviceSearch(rack, { low, face })}
          aria-label={`New device at U${low} ${face}`}
        >
          New device
        </PageLink>
      )}
    </span>
  );
}
