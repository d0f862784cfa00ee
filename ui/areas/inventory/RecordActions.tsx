import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useShortcuts } from '../../app/shortcuts.ts';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { DeleteDialog } from './DeleteDialog.tsx';
import type { InventoryRecord, Resource } from './inventoryQueries.ts';
import { labelIn } from './resources.ts';
import { whereOf, whereOfDeletion } from './whereOf.ts';

type Props = { resource: Resource; all: readonly Resource[]; record: InventoryRecord };

/** What can be done with a record. */
export function RecordActions({ resource, all, record }: Props) {
  const navigate = useNavigate();
  const { can } = usePermissions();
  const where = whereOf(resource.name, record);
  const edit = () =>
    void navigate({
      to: '/inventory/$resource/$recordId/edit',
      params: { resource: resource.name, recordId: record.id },
    });
  useShortcuts(
    can('inventory:write', where)
      ? [{ keys: 'e', label: `Edit the ${resource.singular}`, run: edit }]
      : [],
  );
  const [isDeleting, setDeleting] = useState(false);
  return (
    <>
      <PermissionButton permission="inventory:write" where={where} icon="edit" onClick={edit}>
        Edit
      </PermissionButton>
      <PermissionButton
        permission="inventory:write"
        where={whereOfDeletion(resource.name, record)}
        icon="trash"
        variant="default"
        onClick={() => setDeleting(true)}
      >
        Delete
      </PermissionButton>
      {isDeleting && (
        <DeleteDialog
          {...{ resource, all, record }}
          title={`Delete the ${resource.singular} ${labelIn(resource, record)}`}
          confirm={`Delete ${resource.singular}`}
          onClose={() => setDeleting(false)}
          onDeleted={() =>
            navigate({ to: '/inventory/$resource', params: { resource: resource.name } })
          }
        />
      )}
    </>
  );
}
