import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { useDeletion } from '../../parts/versioned/useDeletion.ts';
import { webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';

/** Deletes a webhook. */
export function DeleteButton({ webhook }: { webhook: WebhookDetail }) {
  const { id, tenantId } = webhook;
  const navigate = useNavigate();
  const client = useQueryClient();
  const { started, ask, dialog } = useDeletion(webhook, {
    remove: (header) =>
      answer(api.DELETE('/api/webhooks/{id}', { params: { path: { id }, header } })),
    onDeleted: async () => {
      await navigate({ to: '/webhooks' });
      client.removeQueries({ queryKey: webhookKey(id) });
      void client.invalidateQueries({ queryKey: ['webhooks', 'list'] });
    },
    queryKey: webhookKey(id),
  });
  return (
    <>
      <PermissionButton
        permission="webhook:delete"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        onClick={ask}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog {...dialog} title={`Delete ${nameOf(started)}`} confirm="Delete webhook">
        Its secret is deleted, and its pending deliveries are cancelled. Its finished deliveries can
        still be read.
      </ConfirmDialog>
    </>
  );
}
