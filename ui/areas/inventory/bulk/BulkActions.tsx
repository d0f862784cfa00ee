import { useState } from 'react';
import type { InventoryRecord } from '../inventoryQueries.ts';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { BulkChangeDialog } from './BulkChangeDialog.tsx';
import { BulkDeleteDialog } from './BulkDeleteDialog.tsx';
import type { BulkProps } from './useBulk.ts';

type Props = Omit<BulkProps, 'versions'> & { rows: readonly InventoryRecord[] };

/** What can be done with several records together: as they are listed when it is chosen. */
export function BulkActions({ rows, ...props }: Props) {
  const [open, setOpen] = useState<{
    dialog: 'change' | 'delete';
    versions: BulkProps['versions'];
  }>();
  const close = () => setOpen(undefined);
  const start = (dialog: 'change' | 'delete') =>
    setOpen({ dialog, versions: new Map(rows.map(({ id, version }) => [id, version])) });
  return (
    <>
      <PermissionButton
        permission="inventory:write"
        variant="default"
        icon="edit"
        onClick={() => start('change')}
      >
        Change …
      </PermissionButton>
      <PermissionButton
        permission="inventory:write"
        variant="default"
        icon="trash"
        onClick={() => start('delete')}
      >
        Delete …
      </PermissionButton>
      {open?.dialog === 'change' && (
        <BulkChangeDialog {...props} versions={open.versions} onClose={close} />
      )}
      {open?.dialog === 'delete' && (
        <BulkDeleteDialog {...props} versions={open.versions} onClose={close} />
      )}
    </>
  );
}
