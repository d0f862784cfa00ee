import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';

function useChange({ id, version, enabled }: WebhookDetail, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answer(
        api.PUT('/api/webhooks/{id}', {
          params: { path: { id }, header: { 'If-Match': `"${version}"` } },
          body: { enabled: !enabled },
        }),
      ),
    onSuccess: onDone,
    onSettled: async () => {
      await client.invalidateQueries({ queryKey: webhookKey(id) });
      void client.invalidateQueries({ queryKey: ['webhooks', 'list'] });
    },
  });
}

/** Disables a webhook, or enables it. */
export function EnableButton({ webhook }: { webhook: WebhookDetail }) {
  const { tenantId, enabled } = webhook;
  const [isOpen, setOpen] = useState(false);
  const change = useChange(webhook, () => setOpen(false));
  const verb = enabled ? 'Disable' : 'Enable';
  return (
    <>
      <PermissionButton
        permission="webhook:write"
        where={{ tenantId }}
        icon={enabled ? 'pause' : 'play'}
        variant="default"
        onClick={() => setOpen(true)}
      >
        {verb}
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          setOpen(false);
          change.reset();
        }}
        title={`${verb} ${nameOf(webhook)}`}
        confirm={`${verb} webhook`}
        onConfirm={() => change.mutate()}
        busy={change.isPending}
        problem={change.error}
      >
        {enabled
          ? 'It receives no more events, and its pending deliveries are cancelled. A replay can send them after it is enabled again.'
          : 'It receives the events from now on. Those that happened while it was disabled can be sent with a replay.'}
      </ConfirmDialog>
    </>
  );
}
