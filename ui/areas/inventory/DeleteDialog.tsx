import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { useStarted } from '../../parts/versioned/useStarted.ts';
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
import { usePlan, type Mutation } from './usePlan.ts';
import { whereOfDeletion } from './whereOf.ts';

type Props = {
  resource: Resource;
  all: readonly Resource[];
  record: InventoryRecord;
  title: string;
  confirm: string;
  onClose: () => void;
  /** Leads away from the record, which is no longer there. */
  onDeleted: () => Promise<void> | void;
};

function useDelete({ resource, record, onDeleted }: Props) {
  const client = useQueryClient();
  const { started, watch } = useStarted(record);
  const { id, version } = started;
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => {
      const params = { path: { id }, header: { 'If-Match': `"${version}"` } };
      return watch(answer(api.DELETE(onePath(resource.name), { params })));
    },
    onSuccess: async () => {
      await onDeleted();
      client.removeQueries({ queryKey: recordKey(resource.name, id) });
      void client.invalidateQueries({ queryKey: resourceKey(resource.name) });
    },
    onError: () => void client.invalidateQueries({ queryKey: recordKey(resource.name, id) }),
  });
  return { version, mutate, isPending, error };
}

/** Shows who uses the record and what else changes before it is deleted. */
export function DeleteDialog(props: Props) {
  const { resource, all, record, title, confirm, onClose } = props;
  const { id } = record;
  const { version, mutate, isPending, error } = useDelete(props);
  const mutation: Mutation = { resource: resource.name, operation: 'delete', record: { id } };
  // What is confirmed is about the version that was shown.
  const plan = usePlan({ ...mutation, record: { id, version } }, { refused: error });
  const reason = whyNotApply(plan, false);
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={title}
      confirm={confirm}
      danger
      reason={reason}
      onConfirm={() => mutate()}
      busy={isPending}
      problem={error}
    >
      <PlanPanel key={version} plan={plan} all={all} names={record.included} nothing="" />
      {/* A request is planned again when it is decided. */}
      <AskButton
        mutation={mutation}
        title={title}
        where={whereOfDeletion(resource.name, record)}
        reason={reason}
        onAsked={onClose}
      />
    </ConfirmDialog>
  );
}
