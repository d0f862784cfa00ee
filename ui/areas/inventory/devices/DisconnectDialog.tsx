import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { Schemas } from '../../../app/api.ts';
import { useLiveRefresh } from '../../../app/live.ts';
import { ConfirmDialog } from '../../../parts/ConfirmDialog.tsx';
import { DeleteDialog } from '../DeleteDialog.tsx';
import {
  inventoryRecordQuery,
  recordKey,
  resourceKey,
  type InventoryRecord,
  type Resource,
} from '../inventoryQueries.ts';
import { equipmentKey } from './deviceQueries.ts';

type Props = {
  device: InventoryRecord;
  all: readonly Resource[];
  /** The name of the interface. */
  from: string;
  connection: Schemas['Connection'];
  onClose: () => void;
};

/** Shows what a cable connects before it is deleted. */
export function DisconnectDialog({ device, all, from, connection, onClose }: Props) {
  const client = useQueryClient();
  const { data: cable, error } = useQuery(inventoryRecordQuery('cables', connection.cableId));
  useLiveRefresh(
    ['inventory.cable.*'],
    recordKey('cables', connection.cableId),
    ({ subject }) => subject.id === connection.cableId,
  );
  const resource = all.find(({ name }) => name === 'cables');
  const { deviceName, interfaceName } = connection;
  const far = [deviceName, interfaceName].filter((name) => name !== null).join(' ');
  const title = far === '' ? `Disconnect ${from}` : `Disconnect ${from} from ${far}`;
  const confirm = 'Delete the cable';
  if (!cable || !resource)
    return (
      <ConfirmDialog
        opened
        title={title}
        confirm={confirm}
        danger
        reason={error ? 'The cable could not be read.' : 'Loading the cable.'}
        problem={error}
        onConfirm={() => undefined}
        onClose={onClose}
      />
    );
  return (
    <DeleteDialog
      {...{ resource, all, title, confirm, onClose }}
      record={cable}
      onDeleted={() => {
        onClose();
        void client.invalidateQueries({ queryKey: equipmentKey(device.id) });
        void client.invalidateQueries({ queryKey: resourceKey('interfaces') });
      }}
    />
  );
}
