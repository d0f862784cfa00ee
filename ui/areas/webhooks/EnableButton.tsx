import { useQueryClient } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';
import { ConfirmedButton } from '../../parts/ConfirmedButton.tsx';
import { webhookKey, type WebhookDetail } from './webhookQueries.ts';
import { nameOf } from './webhookText.ts';

/** Disables a webhook, or enables it. */
export function EnableButton({ webhook }: { webhook: WebhookDetail }) {
  const { id, tenantId, version, enabled } = webhook;
  const client = useQueryClient();
  const verb = enabled ? 'Disable' : 'Enable';
  return (
    <ConfirmedButton
      permission="webhook:write"
      where={{ tenantId }}
      icon={enabled ? 'pause' : 'play'}
      label={verb}
      title={`${verb} ${nameOf(webhook)}`}
      confirm={`${verb} webhook`}
      run={() =>
        answer(
          api.PUT('/api/webhooks/{id}', {
            params: { path: { id }, header: { 'If-Match': `"${version}"` } },
            body: { enabled: !enabled },
          }),
        )
      }
      onSettled={async () => {
        await client.invalidateQueries({ queryKey: webhookKey(id) });
        void client.invalidateQueries({ queryKey: ['webhooks', 'list'] });
      }}
    >
      {enabled
        ? 'It receives no more events, and its pending deliveries are cancelled. A replay can send them after it is enabled again.'
        : 'It receives the events from now on. Those that happened while it was disabled can be sent with a replay.'}
    </ConfirmedButton>
  );
}
