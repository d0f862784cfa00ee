import { BulkDialog } from './BulkDialog.tsx';
import type { BulkProps } from './useBulk.ts';

/** Deletes several records, after it has shown who uses them. */
export function BulkDeleteDialog(props: BulkProps & { onClose: () => void }) {
  const { resource, ids } = props;
  const changes = ids.map((id) => ({
    ...{ resource: resource.name, operation: 'delete' as const },
    record: { id },
  }));
  return <BulkDialog {...props} verb="Delete" changes={changes} nothing="" />;
}
