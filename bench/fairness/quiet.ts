import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchEndpoint, TenantApi } from './api.ts';

export const MEASURES = ['short job', 'long job', 'webhook', 'read', 'write'] as const;
export type Measure = (typeof MEASURES)[number];

/** Durations in milliseconds. */
export type Samples = Record<Measure, number[]>;

/** A delivery that has not arrived by then counts as this long. */
const MAX_WAIT_MS = 20_000;

const WAIT = { prefer: 'wait=60' };

/** A tenant with a site and a webhook, which does a little of everything. */
export async function prepareQuietTenant(api: TenantApi, endpoint: BenchEndpoint) {
  const { id: siteId } = await api.send('POST', '/api/inventory/sites', {
    name: 'quiet site',
    tenantId: api.tenant,
  });
  // A disabled webhook: each update of it emits an event.
  const subject = await api.send('POST', '/api/webhooks', {
    endpointUrl: endpoint.url('/never'),
    eventTypes: ['job.failed'],
    enabled: false,
  });
  await api.send('POST', '/api/webhooks', {
    endpointUrl: endpoint.url('/quiet'),
    eventTypes: ['webhook.updated'],
  });
  const job = (type: string, payload: object) =>
    api.send('POST', '/api/jobs', { type, payload }, WAIT);
  let updates = 0;

  async function deliver(): Promise<void> {
    const before = endpoint.arrivals.length;
    const startedAt = performance.now();
    await api.send('PUT', `/api/webhooks/${String(subject.id)}`, { description: `${updates++}` });
    while (endpoint.arrivals.length === before && performance.now() - startedAt < MAX_WAIT_MS)
      await sleep(1);
  }

  const actions: Record<Measure, () => Promise<unknown>> = {
    'short job': () => job('core.echo', {}),
    'long job': () => job('core.sleep', { durationMs: 0 }),
    webhook: deliver,
    read: () => api.send('GET', '/api/inventory/sites?limit=20'),
    write: () =>
      api.send('PUT', `/api/inventory/sites/${String(siteId)}`, { description: `${updates++}` }),
  };

  return {
    /** Does everything once in each round, one after the other, for at most `maxMs`. */
    async measure(rounds: number, maxMs: number): Promise<Samples> {
      const samples: Samples = {
        'short job': [],
        'long job': [],
        webhook: [],
        read: [],
        write: [],
      };
      const endsAt = performance.now() + maxMs;
      for (let round = 0; round < rounds && performance.now() < endsAt; round++) {
        for (const measure of MEASURES) {
          const startedAt = performance.now();
          await actions[measure]();
          samples[measure].push(performance.now() - startedAt);
        }
      }
      return samples;
    },
  };
}
