import { useState } from 'react';
import type { InventoryRecord } from '../inventoryQueries.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { commonWhere } from '../../../parts/where.ts';
import { whereOf, whereOfDeletion } from '../whereOf.ts';
import { BulkChangeDialog } from './BulkChangeDialog.tsx';
import { BulkDeleteDialog } from './BulkDeleteDialog.tsx';
import type { BulkProps } from './useBulk.ts';

type Props = Omit<BulkProps, 'versions' | 'where'> & { rows: readonly InventoryRecord[] };

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
    const versions = new Map(rows.map(({ id, version }) => [id, version]));
    setOpen({ dialog, asked: { ids: props.ids, versions, where: where[dialog] } });
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
      {open?.dialog === 'change' && <BulkChangeDialog {...props} {...open.asked} {...ends} />}
      {open?.dialog === 'delete' && <BulkDeleteDialog {...props} {...open.asked} {...ends} />}
    </>
  );
}
