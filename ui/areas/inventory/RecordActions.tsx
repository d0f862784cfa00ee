import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { useShortcuts } from '../../app/shortcuts.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { usePermissions } from '../../parts/permissions.tsx';
import { AskButton } from './AskButton.tsx';
import {
  onePath,
  recordKey,
  resourceKey,
  type InventoryRecord,
  type Resource,
} from './inventoryQueries.ts';
import { PlanPanel } from './PlanPanel.tsx';
import { whyNotApply } from './planState.ts';
import { labelIn, whereOf } from './resources.ts';
import { usePlan, type Mutation } from './usePlan.ts';

type Props = { resource: Resource; all: readonly Resource[]; record: InventoryRecord };

/** What can be done with a record. */
export function RecordActions({ resource, all, record }: Props) {
  const navigate = useNavigate();
  const { can } = usePermissions();
  const where = whereOf(record);
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
        where={where}
        icon="trash"
        variant="default"
        onClick={() => setDeleting(true)}
      >
        Delete
      </PermissionButton>
      {isDeleting && (
        <DeleteDialog {...{ resource, all, record }} onClose={() => setDeleting(false)} />
      )}
    </>
  );
}

function useDelete({ resource, record }: Props) {
  const navigate = useNavigate();
  const client = useQueryClient();
  const { id, version } = record;
  return useMutation({
    mutationFn: () => {
      const params = { path: { id }, header: { 'If-Match': `"${version}"` } };
      return answer(api.DELETE(onePath(resource.name), { params }));
    },
    onSuccess: async () => {
      await navigate({ to: '/inventory/$resource', params: { resource: resource.name } });
      client.removeQueries({ queryKey: recordKey(resource.name, id) });
      void client.invalidateQueries({ queryKey: resourceKey(resource.name) });
    },
    onError: () => void client.invalidateQueries({ queryKey: recordKey(resource.name, id) }),
  });
}

/** Shows who uses the record and what else changes before it is deleted. */
function DeleteDialog({ onClose, ...props }: Props & { onClose: () => void }) {
  const { resource, all, record } = props;
  const { id, version } = record;
  const mutation: Mutation = { resource: resource.name, operation: 'delete', record: { id } };
  const plan = usePlan(mutation);
  const { mutate, isPending, error } = useDelete(props);
  const title = `Delete the ${resource.singular} ${labelIn(resource, record)}`;
  const reason = whyNotApply(plan, false);
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={title}
      confirm={`Delete ${resource.singular}`}
      danger
      reason={reason}
      onConfirm={() => mutate()}
      busy={isPending}
      problem={error}
    >
      <PlanPanel key={version} plan={plan} all={all} names={record.included} nothing="" />
      <AskButton
        mutation={mutation}
        title={title}
        where={whereOf(record)}
        reason={reason}
        onAsked={onClose}
      />
    </ConfirmDialog>
  );
}
