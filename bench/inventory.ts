import pg from 'pg';
import { measureConcurrency } from './inventory/concurrency.ts';
import { openApi, vrf, type Api } from './inventory/api.ts';
import { startBenchEnvironment, startProduct } from './fixture.ts';
import { median, ms, perSecond, type BenchResult } from './report.ts';

const SINGLES = 400;
/** Until Node has compiled what a create needs. */
const WARM_UP = 1_000;
const BULK = { rounds: 5, size: 1_000 };
const IMPORT = { rounds: 3, size: 10_000 };
const ADDRESSES = 1_000_000;
const USED = 100_000;
const REQUESTS = 200;

/** Single and batch writes, imports, deep pages and allocation of free addresses. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const client = new pg.Client({ connectionString: environment.databaseUrl });
  await client.connect();
  const product = await startProduct(environment);
  const { api, close } = openApi(product.ready, 1);
  try {
    return [
      ...(await measureWrites(api, client)),
      ...(await measureBatches(api)),
      ...(await measureFiles(api)),
      ...(await measureConcurrency(product.ready)),
      ...(await measureSpace(api, client)),
      ...(await measurePages(api, client)),
    ];
  } finally {
    await close();
    await product.stop();
    await client.end();
    await environment.stop();
  }
}

const cidr = (n: number) => `10.${n >> 8}.${n & 255}.0/24`;

async function measureWrites(api: Api, client: pg.Client): Promise<BenchResult[]> {
  const vrfId = await vrf(api, 'single');
  await api('POST', 'prefixes', { cidr: '10.0.0.0/8', vrfId });
  const [ours, bare]: [number[], number[]] = [[], []];
  for (let n = 0; n < SINGLES + WARM_UP; n++) {
    const { durationMs } = await api('POST', 'prefixes', { cidr: cidr(n), vrfId });
    const began = performance.now();
    await client.query('BEGIN');
    await client.query({
      name: 'bare',
      text: "INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode) VALUES ($1, 'platform', $2, $3, 'active', 'static')",
      values: [`pfx_bare${n}`, `172.${n >> 8}.${n & 255}.0/24`, vrfId],
    });
    await client.query('COMMIT');
    if (n < WARM_UP) continue;
    ours.push(durationMs);
    bare.push(performance.now() - began);
  }
  const [single, insert] = [median(ours), median(bare)];
  return [
    {
      measure:
        'create a prefix over HTTP, with all rules, p50, compared with BEGIN, INSERT, COMMIT',
      value: ms(single),
      reference: ms(insert),
      ratio: (single / insert).toFixed(2),
      target: '≤ 3 ×',
      met: single / insert <= 3,
    },
    {
      measure: 'the same, by itself',
      value: ms(single),
      reference: '',
      ratio: '',
      target: '≤ 3 ms',
      met: single <= 3,
    },
  ];
}

async function measureBatches(api: Api): Promise<BenchResult[]> {
  const [bulk, reparented]: [number[], number[]] = [[], []];
  for (let round = 0; round < BULK.rounds; round++) {
    const into = await vrf(api, `bulk-${round}`);
    const mutations = Array.from({ length: BULK.size }, (_, n) => ({
      resource: 'prefixes',
      operation: 'create',
      record: { cidr: cidr(n), vrfId: into },
    }));
    bulk.push((await api('POST', 'bulk', { mutations })).durationMs);
    const parent = { cidr: '10.0.0.0/8', vrfId: into };
    reparented.push((await api('POST', 'prefixes', parent)).durationMs);
  }
  return [
    {
      measure: `batch of ${BULK.size} prefixes in one request, p50`,
      value: ms(median(bulk)),
      reference: '',
      ratio: '',
      target: '≤ 250 ms',
      met: median(bulk) <= 250,
    },
    {
      measure: `create a prefix around ${BULK.size} others, which it becomes the parent of, p50`,
      value: ms(median(reparented)),
      reference: '',
      ratio: '',
      target: '≤ 300 ms',
      met: median(reparented) <= 300,
    },
  ];
}

async function measureFiles(api: Api): Promise<BenchResult[]> {
  const rates: number[] = [];
  for (let round = 0; round < IMPORT.rounds; round++) {
    const name = `file-${round}`;
    await vrf(api, name);
    const file = [
      'cidr,vrfId.name',
      ...Array.from({ length: IMPORT.size }, (_, n) => `10.${n >> 8}.${n & 255}.0/24,${name}`),
    ].join('\n');
    const { durationMs, body } = await api('POST', 'import?resource=prefixes', file, {
      'content-type': 'text/csv',
      prefer: 'wait=60',
    });
    const { created } = body.counts as { created: number };
    if (created !== IMPORT.size) throw new Error(`Only ${created} rows came in`);
    rates.push((IMPORT.size * 1_000) / durationMs);
  }
  const rate = median(rates);
  return [
    {
      measure: `import of ${IMPORT.size} prefixes as CSV, from request to completion of the job`,
      value: perSecond(rate),
      reference: '',
      ratio: '',
      target: '≥ 2500/s',
      met: rate >= 2_500,
    },
  ];
}

/** Allocation in a prefix whose first 100,000 addresses are allocated. */
async function measureSpace(api: Api, client: pg.Client): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  for (const [cidr, first] of [
    ['10.0.0.0/8', '10.0.0.0'],
    ['2001:db8::/32', '2001:db8::'],
  ] as const) {
    const vrfId = await vrf(api, `space ${cidr.replace('/', ' ')}`);
    const { body } = await api('POST', 'prefixes', { cidr, vrfId, allocationMode: 'pool' });
    await client.query(
      `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status) SELECT 'ipa_' || $2 || lpad(n::text, 10, '0'), 'platform', $1::inet + n, $2, 'active' FROM generate_series(1, ${USED}) AS n`,
      [first, vrfId],
    );
    await client.query('ANALYZE ip_addresses');
    const allocate = () => api('POST', `prefixes/${String(body.id)}/allocate`, { kind: 'address' });
    const firstTook = (await allocate()).durationMs;
    const durationsMs: number[] = [];
    for (let n = 0; n < REQUESTS; n++) durationsMs.push((await allocate()).durationMs);
    results.push({
      measure: `next free address of ${cidr}, with ${USED} allocated, p50`,
      value: ms(median(durationsMs)),
      reference: '',
      ratio: '',
      target: '≤ 8 ms',
      met: median(durationsMs) <= 8,
    });
    results.push({
      measure: 'the same, the first time',
      value: ms(firstTook),
      reference: '',
      ratio: '',
      target: '≤ 8 ms',
      met: firstTook <= 8,
    });
  }
  return results;
}

async function measurePages(api: Api, client: pg.Client): Promise<BenchResult[]> {
  await client.query(
    `INSERT INTO ip_addresses (id, tenant_id, address, status) SELECT 'ipa_' || lpad(n::text, 26, '0'), 'platform', '100.64.0.0'::inet + n, 'active' FROM generate_series(1, ${ADDRESSES}) AS n`,
  );
  await client.query('VACUUM ANALYZE ip_addresses');
  let cursor = '';
  for (let page = 0; page < 250; page++) {
    cursor = String(
      (
        await api(
          'GET',
          `ip-addresses?limit=200&sort=address${cursor === '' ? '' : `&cursor=${cursor}`}`,
        )
      ).body.nextCursor,
    );
  }
  const timed = async (query: string) => {
    const durationsMs: number[] = [];
    for (let n = 0; n < REQUESTS + WARM_UP; n++) {
      const page = await api('GET', `ip-addresses?limit=50&sort=address${query}`);
      if (n >= WARM_UP) durationsMs.push(page.durationMs);
    }
    return median(durationsMs);
  };
  const [first, deep] = [await timed(''), await timed(`&cursor=${cursor}`)];
  return [
    {
      measure: `first page of ${ADDRESSES} addresses, p50`,
      value: ms(first),
      reference: '',
      ratio: '',
      target: '≤ 10 ms',
      met: first <= 10,
    },
    {
      measure: 'page 1,001, p50, compared with the first',
      value: ms(deep),
      reference: ms(first),
      ratio: (deep / first).toFixed(2),
      target: '≤ 10 ms, the same',
      met: deep <= 10,
    },
  ];
}
