import { useMutation, useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';
import { ConfirmDialog } from '../../parts/ConfirmDialog.tsx';
import { PermissionButton } from '../../parts/PermissionButton.tsx';
import { useAsked } from '../../parts/useAsked.ts';
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

const verbOf = ({ enabled }: WebhookDetail): string => (enabled ? 'Disable' : 'Enable');

/** Disables a webhook, or enables it. */
export function EnableButton({ webhook }: { webhook: WebhookDetail }) {
  const { asked, isOpen, ask, close } = useAsked(webhook);
  const change = useChange(asked, close);
  const verb = verbOf(asked);
  return (
    <>
      <PermissionButton
        permission="webhook:write"
        where={{ tenantId: webhook.tenantId }}
        icon={webhook.enabled ? 'pause' : 'play'}
        variant="default"
        onClick={ask}
      >
        {verbOf(webhook)}
      </PermissionButton>
      <ConfirmDialog
        opened={isOpen}
        onClose={() => {
          close();
          change.reset();
        }}
        title={`${verb} ${nameOf(asked)}`}
        confirm={`${verb} webhook`}
        onConfirm={() => change.mutate()}
        busy={change.isPending}
        problem={change.error}
      >
        {asked.enabled
          ? 'It receives no more events, and its pending deliveries are cancelled. A replay can send them after it is enabled again.'
          : 'It receives the events from now on. Those that happened while it was disabled can be sent with a replay.'}
      </ConfirmDialog>
    </>
  );
}
