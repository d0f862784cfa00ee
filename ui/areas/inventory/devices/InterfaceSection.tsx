import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { KINDS_WITHOUT_CABLE } from '../../../../domain/inventory/cabling.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { formatNumberOf } from '../../../parts/format.ts';
import { DataGrid } from '../../../parts/grid/DataGrid.tsx';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { PageLink } from '../../../parts/PageLink.tsx';
import { IconButton } from '../../../parts/PermissionButton.tsx';
import { usePermissions } from '../../../parts/permissions.tsx';
import { ProblemNote } from '../../../parts/ProblemNote.tsx';
import { Section } from '../../../parts/Section.tsx';
import { Reading } from '../../../parts/Reading.tsx';
import type { InventoryRecord, Resource } from '../inventoryQueries.ts';
import { whereOf } from '../whereOf.ts';
import { ConnectDialog } from './ConnectDialog.tsx';
import { deviceInterfacesQuery, equipmentKey, type DeviceInterface } from './deviceQueries.ts';
import { DisconnectDialog } from './DisconnectDialog.tsx';
import { interfaceColumns } from './interfaceColumns.tsx';
import links from '../Inventory.module.css';
import classes from './Devices.module.css';

type Props = { device: InventoryRecord; all: readonly Resource[] };

const ROW = 28;
const HEADER = 34;
const MOST_ROWS = 16;
/** Ports of a busy site change all the time. */
const PAUSE_MS = 2_000;

/** The column with what can be done with the cable of an interface. */
function cableColumn(
  device: InventoryRecord,
  onCable: (row: DeviceInterface) => void,
): GridColumn<DeviceInterface> {
  return {
    id: 'cable',
    header: 'Cable',
    width: 56,
    grow: 0,
    align: 'end',
    cell: (row) => {
      const { name, kind } = row.record;
      const isConnected = row.connection !== undefined;
      if (!isConnected && KINDS_WITHOUT_CABLE.includes(kind)) return null;
      return (
        <IconButton
          icon={isConnected ? 'x' : 'link'}
          label={isConnected ? `Disconnect ${name}` : `Connect ${name}`}
          permission="inventory:write"
          where={whereOf('devices', device)}
          onClick={() => onCable(row)}
        />
      );
    },
  };
}

/** The interfaces of a device: their state, addresses and VLAN, and what their cables lead to. */
export function InterfaceSection({ device, all }: Props) {
  const { data, error, refetch, isFetching } = useQuery(deviceInterfacesQuery(device.id));
  const { canAnywhere } = usePermissions();
  const [atCable, setAtCable] = useState<DeviceInterface>();
  useLiveRefresh(
    ['inventory.interface.*', 'inventory.cable.*', 'inventory.ip-address.*'],
    equipmentKey(device.id),
    () => true,
    PAUSE_MS,
  );
  const mayCable = canAnywhere('inventory:write');
  const columns = useMemo(
    () => [
      ...interfaceColumns(device, data?.names ?? {}),
      ...(mayCable ? [cableColumn(device, setAtCable)] : []),
    ],
    [device, data?.names, mayCable],
  );
  const rows = data?.interfaces;
  const height = HEADER + ROW * Math.min(MOST_ROWS, Math.max(1, rows?.length ?? 0));
  return (
    <Section
      title="Interfaces"
      note={
        data &&
        `${data.hasMore ? 'the first ' : ''}${formatNumberOf(data.interfaces.length, 'interface')}`
      }
      actions={<InterfaceLinks device={device} hasAny={rows !== undefined && rows.length > 0} />}
    >
      {error && !data && <ProblemNote problem={error} retry={() => void refetch()} />}
      {!data && !error && <Reading height={200} label="Loading the interfaces" />}
      {rows?.length === 0 && <Empty kind="nothing" title="No interfaces yet" />}
      {rows && rows.length > 0 && (
        <div className={classes.grid} style={{ height }}>
          <DataGrid
            label={`Interfaces of ${String(device.name)}`}
            rows={rows}
            rowKey={({ record }) => record.id}
            columns={columns}
            loading={isFetching}
            error={error}
            onRetry={() => void refetch()}
          />
        </div>
      )}
      {atCable && (
        <CableDialog {...{ device, all }} row={atCable} onClose={() => setAtCable(undefined)} />
      )}
    </Section>
  );
}

function InterfaceLinks({ device, hasAny }: { device: InventoryRecord; hasAny: boolean }) {
  const { canAnywhere } = usePermissions();
  const search = { deviceId: device.id };
  const params = { resource: 'interfaces' };
  return (
    <>
      {hasAny && (
        <PageLink className={links.link} to="/inventory/$resource" params={params} search={search}>
          As a list
        </PageLink>
      )}
      {canAnywhere('inventory:write') && (
        <PageLink
          className={links.link}
          to="/inventory/$resource/new"
          params={params}
          search={search}
        >
          New interface
        </PageLink>
      )}
    </>
  );
}

function CableDialog({ row, ...props }: Props & { row: DeviceInterface; onClose: () => void }) {
  if (!row.connection) return <ConnectDialog {...props} from={row.record} />;
  return <DisconnectDialog {...props} from={row.record.name} connection={row.connection} />;
}
