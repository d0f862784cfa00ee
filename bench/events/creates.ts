import { setTimeout as sleep } from 'node:timers/promises';
import { waitForArrivals, type BenchApi, type BenchEndpoint } from './endpoint.ts';
import { median, ms, perSecond, type BenchResult } from '../report.ts';

const ROUNDS = 3;
const SINGLES = 50;
/** Until Node has compiled what a create needs. */
const WARM_UP = 1_000;
const BULK = 1_000;

const cidr = (n: number) => `10.${n >> 8}.${n & 255}.0/24`;

/** Creates of prefixes while a webhook gets their events, and while none does. */
export async function measureCreates(
  api: BenchApi,
  endpoint: BenchEndpoint,
): Promise<BenchResult[]> {
  const call: BenchApi = (method, path, body) => api(method, path, body, 'platform');
  const newVrf = async (name: string) => (await call('POST', '/api/inventory/vrfs', { name })).id;
  const { id: webhookId } = await call('POST', '/api/webhooks', {
    endpointUrl: endpoint.url('/creates'),
    eventTypes: ['inventory.prefix.created'],
    enabled: false,
  });
  const enable = (enabled: boolean) => call('PUT', `/api/webhooks/${webhookId}`, { enabled });

  /** Creates prefixes one after the other. Returns when each was answered, and how long that took. */
  async function createSingly(count: number, vrfId: string) {
    const created: { id: string; durationMs: number; atMs: number }[] = [];
    for (let n = 0; n < count; n++) {
      const began = performance.now();
      const { id } = await call('POST', '/api/inventory/prefixes', { cidr: cidr(n), vrfId });
      const atMs = performance.now();
      created.push({ id, durationMs: atMs - began, atMs });
    }
    return created;
  }

  const [without, beside, arrivalsMs, bulkMs]: [number[], number[], number[], number[]] = [
    [],
    [],
    [],
    [],
  ];
  await createSingly(WARM_UP, await newVrf('warm-up'));
  for (let round = 0; round < ROUNDS; round++) {
    const alone = await createSingly(SINGLES, await newVrf(`without-${round}`));
    without.push(...alone.map(({ durationMs }) => durationMs));
    // Their events are published by then: those that are not would arrive, too.
    await sleep(500);
    await enable(true);
    const arrivals = endpoint.arrivalsAt('/creates');
    const from = arrivals.length;
    const created = await createSingly(SINGLES, await newVrf(`with-${round}`));
    beside.push(...created.map(({ durationMs }) => durationMs));
    await waitForArrivals(arrivals, from + SINGLES);
    const arrivedAt = new Map(arrivals.slice(from).map(({ recordId, atMs }) => [recordId, atMs]));
    arrivalsMs.push(...created.map(({ id, atMs }) => (arrivedAt.get(id) ?? Number.NaN) - atMs));

    const vrfId = await newVrf(`bulk-${round}`);
    const began = performance.now();
    await call('POST', '/api/inventory/bulk', {
      mutations: Array.from({ length: BULK }, (_, n) => ({
        resource: 'prefixes',
        operation: 'create',
        record: { cidr: cidr(n), vrfId },
      })),
    });
    await waitForArrivals(arrivals, from + SINGLES + BULK);
    bulkMs.push(performance.now() - began);
    await enable(false);
    await sleep(2_000);
  }
  return report({ without, beside, arrivalsMs, bulkMs });
}

function report(measured: Record<'without' | 'beside' | 'arrivalsMs' | 'bulkMs', number[]>) {
  const [alone, beside] = [median(measured.without), median(measured.beside)];
  const [arrival, bulk] = [median(measured.arrivalsMs), median(measured.bulkMs)];
  const row = { reference: '', ratio: '' };
  return [
    {
      ...row,
      measure: `${SINGLES} creates one after the other with a matching webhook, response to arrival, p50`,
      value: ms(arrival),
      target: '≤ 50 ms',
      met: arrival <= 50,
    },
    {
      measure: 'create of a prefix while a webhook matches, p50',
      value: ms(beside),
      reference: `${ms(alone)} without`,
      ratio: (beside / alone).toFixed(2),
      target: '≤ 1.3',
      met: beside / alone <= 1.3,
    },
    {
      ...row,
      measure: `batch of ${BULK} prefixes with a webhook on every event, from request to last arrival`,
      value: `${(bulk / 1_000).toFixed(1)} s`,
      target: '≤ 6 s',
      met: bulk <= 6_000,
    },
    {
      ...row,
      measure: 'the same, events of one batch written and delivered to one webhook',
      value: perSecond(BULK / (bulk / 1_000)),
      target: '≥ 250/s',
      met: BULK / (bulk / 1_000) >= 250,
    },
  ];
}
