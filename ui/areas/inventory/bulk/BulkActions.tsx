import { useState } from 'react';
import type { InventoryRecord } from '../inventoryQueries.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { commonWhere } from '../../../parts/where.ts';
import { whereOf, whereOfDeletion } from '../whereOf.ts';
import { BulkChangeDialog } from './BulkChangeDialog.tsx';
import { BulkDeleteDialog } from './BulkDeleteDialog.tsx';
import type { BulkProps } from './useBulk.ts';

type Props = Omit<BulkProps, 'versions' | 'where' | 'changed' | 'takePresent'> & {
  rows: readonly InventoryRecord[];
};

const versionsOf = (rows: readonly InventoryRecord[]): ReadonlyMap<string, number> =>
  new Map(rows.map(({ id, version }) => [id, version]));

/** What can be done with several records together: as they are listed when it is chosen. */
export function BulkActions({ rows, ...props }: Props) {
  const [open, setOpen] = useState<{
    dialog: 'change' | 'delete';
    asked: Pick<BulkProps, 'ids' | 'versions' | 'where'>;
  }>();
  const close = () => setOpen(undefined);
  const onDone = () => {
    close();
    props.onDone();
  };
  const ends = { onClose: close, onDone };
  const { name } = props.resource;
  const where = {
    change: commonWhere(rows.map((row) => whereOf(name, row))),
    delete: commonWhere(rows.map((row) => whereOfDeletion(name, row))),
  };
  const start = (dialog: 'change' | 'delete') => {
    setOpen({
      dialog,
      asked: { ids: props.ids, versions: versionsOf(rows), where: where[dialog] },
    });
  };
  const present = versionsOf(rows);
  const asked = open && {
    ...open.asked,
    changed: [...open.asked.versions].filter(([id, version]) =>
      present.has(id) ? present.get(id) !== version : false,
    ).length,
    takePresent: () => {
      const versions = new Map([...open.asked.versions, ...present]);
      setOpen({ ...open, asked: { ...open.asked, versions } });
    },
  };
  return (
    <>
      <PermissionButton
        permission="inventory:write"
        where={where.change}
        variant="default"
        icon="edit"
        onClick={() => start('change')}
      >
        Change …
      </PermissionButton>
      <PermissionButton
        permission="inventory:write"
        where={where.delete}
        variant="default"
        icon="trash"
        onClick={() => start('delete')}
      >
        Delete …
      </PermissionButton>
      {asked && open.dialog === 'change' && <BulkChangeDialog {...props} {...asked} {...ends} />}
      {asked && open.dialog === 'delete' && <BulkDeleteDialog {...props} {...asked} {...ends} />}
    </>
  );
}
