import { load } from '../load.ts';
import { ms, perSecond, quantile, type BenchResult } from '../report.ts';
import { openApi, vrf, type Api } from './api.ts';

const WRITERS = 8;
const WRITES = { rounds: 3, each: 240 };
const ALLOCATIONS = { rounds: 5, size: 50 };

/** Several writers in one VRF compared with one, and allocations from one prefix that start together. */
export async function measureConcurrency(port: string): Promise<BenchResult[]> {
  const { api, close } = openApi(port, ALLOCATIONS.size);
  try {
    return [...(await measureWriters(api)), ...(await measureAllocations(api))];
  } finally {
    await close();
  }
}

async function measureWriters(api: Api): Promise<BenchResult[]> {
  const rates: Record<number, number[]> = { 1: [], [WRITERS]: [] };
  // In turns; the first round warms up.
  for (let round = 0; round <= WRITES.rounds; round++)
    for (const concurrency of [1, WRITERS]) {
      const vrfId = await vrf(api, `writers-${concurrency}-${round}`);
      await api('POST', 'prefixes', { cidr: '10.0.0.0/8', vrfId });
      const { perSecond: rate } = await load({ concurrency, total: WRITES.each }, (n) =>
        api('POST', 'prefixes', { cidr: `10.${n >> 8}.${n & 255}.0/24`, vrfId }),
      );
      if (round > 0) rates[concurrency]?.push(rate);
    }
  const one = quantile(rates[1] ?? [], 0.5);
  const many = quantile(rates[WRITERS] ?? [], 0.5);
  return [
    {
      measure: `prefixes created in one VRF by ${WRITERS} writers, compared with one`,
      value: perSecond(many),
      reference: perSecond(one),
      ratio: (many / one).toFixed(2),
      target: '≥ 3 ×',
      met: many / one >= 3,
    },
  ];
}

async function measureAllocations(api: Api): Promise<BenchResult[]> {
  const durationsMs: number[] = [];
  const vrfId = await vrf(api, 'allocations');
  for (let round = 0; round <= ALLOCATIONS.rounds; round++) {
    const cidr = `10.${round}.0.0/16`;
    const pool = await api('POST', 'prefixes', { cidr, vrfId, allocationMode: 'pool' });
    const path = `prefixes/${String(pool.body.id)}/allocate`;
    const results = await Promise.all(
      Array.from({ length: ALLOCATIONS.size }, () => api('POST', path, { kind: 'address' })),
    );
    const distinct = new Set(results.map(({ body }) => body.address));
    if (distinct.size < ALLOCATIONS.size) throw new Error('An address was allocated twice');
    if (round > 0) durationsMs.push(...results.map(({ durationMs }) => durationMs));
  }
  const p99 = quantile(durationsMs, 0.99);
  return [
    {
      measure: `${ALLOCATIONS.size} addresses allocated concurrently from one prefix, p99`,
      value: ms(p99),
      reference: '',
      ratio: '',
      target: '≤ 300 ms',
      met: p99 <= 300,
    },
  ];
}
