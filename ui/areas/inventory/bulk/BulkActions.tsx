import { useState } from 'react';
import { PermissionButton } from '../../../parts/PermissionButton.tsx';
import type { Resource } from '../inventoryQueries.ts';
import { BulkChangeDialog } from './BulkChangeDialog.tsx';
import { BulkDeleteDialog } from './BulkDeleteDialog.tsx';

export type BulkProps = {
  resource: Resource;
  all: readonly Resource[];
  /** The records that were selected: never all that a filter matches. */
  ids: readonly string[];
  onDone: () => void;
};

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
