import { useState } from 'react';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import { BulkChangeDialog } from './BulkChangeDialog.tsx';
import { BulkDeleteDialog } from './BulkDeleteDialog.tsx';
import type { BulkProps } from './useBulk.ts';

/** What can be done with several records together. */
export function BulkActions(props: BulkProps) {
  const [open, setOpen] = useState<'change' | 'delete'>();
  const close = () => setOpen(undefined);
  return (
    <>
      <PermissionButton
        permission="inventory:write"
        variant="default"
        icon="edit"
        onClick={() => setOpen('change')}
      >
        Change …
      </PermissionButton>
      <PermissionButton
        permission="inventory:write"
        variant="default"
        icon="trash"
        onClick={() => setOpen('delete')}
      >
        Delete …
      </PermissionButton>
      {open === 'change' && <BulkChangeDialog {...props} onClose={close} />}
      {open === 'delete' && <BulkDeleteDialog {...props} onClose={close} />}
    </>
  );
}
