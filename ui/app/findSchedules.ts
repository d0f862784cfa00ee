import type { Found } from '../parts/list/search.ts';
import { answer, api } from './api.ts';

/** Schedules by name; without a text the newest ones. */
export async function findSchedules(text: string, signal: AbortSignal): Promise<Found[]> {
  if (text === '') {
    const { items } = await answer(
      api.GET('/api/schedules', { params: { query: { limit: 10 } }, signal }),
    );
    return items.map(({ id, name, tenantId }) => ({ id, label: name, detail: tenantId }));
  }
  const { items } = await answer(
    api.GET('/api/search', { params: { query: { q: text, kinds: 'schedules' } }, signal }),
  );
  return items.map(({ id, label, tenantId }) => ({ id, label, detail: tenantId ?? undefined }));
}
