import type { ReactNode } from 'react';
import { Exact } from '../../../parts/Exact.tsx';
import { formatCount, labelOfField } from '../../../parts/format.ts';
import type { GridColumn } from '../../../parts/grid/types.ts';
import { labelOf, type Names } from '../../../parts/names.ts';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import type { InventoryRecord } from '../inventoryQueries.ts';
import type { DeviceInterface } from './deviceQueries.ts';
import classes from './Devices.module.css';

type Column = GridColumn<DeviceInterface>;

const KILO = 1_000;

/** A speed as people say it: `10 Gbit/s`. */
export function speedText(mbps: number | null): string {
  if (mbps === null) return '';
  return mbps >= KILO && mbps % 100 === 0 ? `${mbps / KILO} Gbit/s` : `${formatCount(mbps)} Mbit/s`;
}

/** The other end of a cable, and the cable. */
function Peer({ connection }: DeviceInterface): ReactNode {
  if (!connection) return null;
  const { cableId, cableStatus, interfaceId, interfaceName, deviceId, deviceName } = connection;
  return (
    <span className={classes.peer}>
      {deviceId !== null && (
        <>
          <RecordLink id={deviceId} label={deviceName} />
          <span className={classes.muted}>/</span>
        </>
      )}
      {interfaceName === null ? (
        <span className={classes.muted}>You may not read it</span>
      ) : (
        <RecordLink id={interfaceId} label={interfaceName} />
      )}
      <span className={classes.cable}>
        <RecordLink
          id={cableId}
          label={cableStatus === 'connected' ? 'cable' : `cable, ${cableStatus}`}
        />
      </span>
    </span>
  );
}

const peerText = ({ connection }: DeviceInterface): string =>
  connection ? `${connection.deviceName ?? ''} ${connection.interfaceName ?? ''}`.trim() : '';

/** The addresses of an interface; the primary ones of the device are marked. */
function Addresses({ row, device }: { row: DeviceInterface; device: InventoryRecord }): ReactNode {
  const primary = [device.primaryIp4Id, device.primaryIp6Id];
  return row.addresses.map(({ id, address }, index) => (
    <span key={id}>
      {index > 0 && ', '}
      <RecordLink id={id} label={address} />
      {primary.includes(id) && <span className={classes.muted}> primary</span>}
    </span>
  ));
}

function Vlan({ row: { record }, names }: { row: DeviceInterface; names: Names }): ReactNode {
  const { mode, untaggedVlanId } = record;
  return (
    <>
      {untaggedVlanId !== null && <RecordLink id={untaggedVlanId} names={names} kind="vlans" />}
      {mode !== null && <span className={classes.muted}> {mode}</span>}
    </>
  );
}

const kindText = ({ record }: DeviceInterface): string =>
  [labelOfField(record.kind), speedText(record.speedMbps)].filter((text) => text !== '').join(', ');

function State({ record: { enabled, managementOnly } }: DeviceInterface): ReactNode {
  return (
    <>
      <StatusBadge status={enabled ? 'enabled' : 'disabled'} plain />
      {managementOnly && <span className={classes.muted}> mgmt</span>}
    </>
  );
}

const HARDWARE: readonly Column[] = [
  {
    id: 'kind',
    header: 'Kind',
    width: 130,
    hideBelow: 860,
    cell: (row) => kindText(row),
    text: kindText,
  },
  {
    id: 'macAddress',
    header: 'MAC address',
    width: 140,
    grow: 0,
    hideBelow: 1_000,
    cell: ({ record }) => <Exact text={record.macAddress ?? ''} />,
    text: ({ record }) => record.macAddress ?? '',
  },
];

/** What to show of an interface of a device. */
export function interfaceColumns(device: InventoryRecord, names: Names): Column[] {
  return [
    {
      id: 'name',
      header: 'Name',
      width: 110,
      cell: ({ record: { id, name } }) => <RecordLink id={id} label={name} />,
      text: ({ record }) => record.name,
    },
    {
      id: 'peer',
      header: 'Connected to',
      width: 150,
      grow: 2,
      cell: (row) => <Peer {...row} />,
      text: peerText,
    },
    {
      id: 'state',
      header: 'State',
      width: 92,
      grow: 0,
      hideBelow: 480,
      cell: (row) => <State {...row} />,
      text: ({ record }) => (record.enabled ? 'enabled' : 'disabled'),
    },
    {
      id: 'addresses',
      header: 'Addresses',
      width: 140,
      grow: 2,
      hideBelow: 560,
      cell: (row) => <Addresses row={row} device={device} />,
      text: ({ addresses }) => addresses.map(({ address }) => address).join(', '),
    },
    {
      id: 'vlan',
      header: 'VLAN',
      width: 100,
      hideBelow: 660,
      cell: (row) => <Vlan row={row} names={names} />,
      text: ({ record }) => labelOf(names, record.untaggedVlanId ?? '', 'vlans') ?? '',
    },
    ...HARDWARE,
  ];
}
