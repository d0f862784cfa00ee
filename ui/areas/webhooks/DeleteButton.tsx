import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';

/** Deletes a webhook. */
export function DeleteButton({ webhook }: { webhook: WebhookDetail }) {
  const { id, tenantId, version } = webhook;
  const [isOpen, setOpen] = useState(false);
  const navigate = useNavigate();
  const client = useQueryClient();
  const remove = useMutation({
    mutationFn: () =>
      answer(
        api.DELETE('/api/webhooks/{id}', {
          params: { path: { id }, header: { 'If-Match': `"${version}"` } },
        }),
      ),
    onSuccess: async () => {
      await navigate({ to: '/webhooks' });
      client.removeQueries({ queryKey: webhookKey(id) });
      void client.invalidateQueries({ queryKey: ['webhooks', 'list'] });
    },
    // Someone has changed it: the dialog goes on with what is on the page now.
    onError: () => void client.invalidateQueries({ queryKey: webhookKey(id) }),
  });
  return (
    <>
      <PermissionButton
        permission="webhook:delete"
        where={{ tenantId }}
        icon="trash"
        variant="default"
        onClick={() => setOpen(true)}
      >
        Delete
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          remove.reset();
        }}
        title={`Delete ${nameOf(webhook)}`}
        confirm="Delete webhook"
        danger
        onConfirm={() => remove.mutate()}
        busy={remove.isPending}
        problem={remove.error}
      >
        Its secret is deleted, and its pending deliveries are cancelled. Its finished deliveries can
        still be read.
      </ConfirmDialog>
    </>
  );
}
