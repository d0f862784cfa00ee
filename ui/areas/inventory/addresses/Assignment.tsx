import { useQuery } from '@tanstack/react-query';
import { DescriptionList } from '../../../parts/DescriptionList.tsx';
import { RecordLink } from '../../../parts/RecordLink.tsx';
import { Section } from '../../../parts/Section.tsx';
import { StatusBadge } from '../../../parts/StatusBadge.tsx';
import { inventoryRecordQuery, type InventoryRecord } from '../inventoryQueries.ts';
import classes from './Addresses.module.css';

const idOf = (value: unknown): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** What an address is assigned to: the interface, its device, and where that is. */
export function Assignment({ record }: { record: InventoryRecord }) {
  const [interfaceId, deviceId] = [idOf(record.interfaceId), idOf(record.deviceId)];
  const { data: device } = useQuery({
    ...inventoryRecordQuery('devices', deviceId ?? ''),
    enabled: deviceId !== undefined,
  });
  if (interfaceId === undefined)
    return (
      <Section title="Assigned to">
        <p className={classes.hint}>It is on no interface.</p>
      </Section>
    );
  const names = { ...record.included };
  const rackId = idOf(device?.rackId);
  const isPrimary = device && [device.primaryIp4Id, device.primaryIp6Id].includes(record.id);
  return (
    <Section title="Assigned to">
      <DescriptionList
        items={[
          {
            label: 'Interface',
            value: <RecordLink id={interfaceId} names={names} kind="interfaces" />,
          },
          {
            label: 'Device',
            value: (
              <span className={classes.device}>
                <RecordLink id={deviceId} names={names} kind="devices" />
                {typeof device?.status === 'string' && <StatusBadge status={device.status} plain />}
                {isPrimary === true && <span className={classes.hint}>its primary address</span>}
              </span>
            ),
          },
          rackId !== undefined && {
            label: 'Rack',
            value: (
              <span className={classes.device}>
                <RecordLink id={rackId} names={device?.included} kind="racks" />
                {typeof device?.position === 'number' && (
                  <span className={classes.hint}>
                    U{device.position} of the {String(device.face)}
                  </span>
                )}
              </span>
            ),
          },
          device !== undefined && {
            label: 'Site',
            value: <RecordLink id={idOf(device.siteId)} names={device.included} kind="sites" />,
          },
        ]}
      />
    </Section>
  );
}
