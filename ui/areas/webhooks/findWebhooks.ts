import { answer, api } from '../../app/api.ts';
import type { Found } from '../../parts/list/search.ts';
import { nameOf } from './webhookText.ts';

/** Webhooks by description or host; without a text the newest ones. */
export async function findWebhooks(text: string, signal: AbortSignal): Promise<Found[]> {
  if (text === '') {
    const query = { limit: 10 };
    const { items } = await answer(api.GET('/api/webhooks', { params: { query }, signal }));
    return items.map((webhook) => ({
      id: webhook.id,
      label: nameOf(webhook),
      detail: webhook.tenantId,
    }));
  }
  const query = { q: text, kinds: 'webhooks' };
  const { items } = await answer(api.GET('/api/search', { params: { query }, signal }));
  return items.map(({ id, label, tenantId }) => ({ id, label, detail: tenantId ?? undefined }));
}
