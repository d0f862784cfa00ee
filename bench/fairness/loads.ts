import { setTimeout as sleep } from 'node:timers/promises';
import type { BenchEndpoint, TenantApi } from './api.ts';

/** What a noisy tenant does. `start` resolves when it is at its worst, with the function that ends it. */
export type Load = { name: string; start(): Promise<() => Promise<unknown>> };

const SLEEPING = 110;
const HANGING = 40;
const SCHEDULES = 300;
const STREAMS = 200;
const CHILDREN = 1_000;
const MOVES = 20;
const LOOPS = 4;
const IMPORT_ROWS = 20_000;
const ADDRESSES = 20_000;
const BATCH = 1_000;

/** Waits after a refusal, so that the load is not the refusals themselves. */
const REFUSED_MS = 100;

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);

/** Repeats `action` in `count` loops until the returned function is called. */
function repeat(count: number, action: (n: number) => Promise<number>): () => Promise<void> {
  let stopped = false;
  const loops = numbers(count).map(async (n) => {
    while (!stopped) {
      const status = await action(n).catch(() => 0);
      if (status === 0 || status >= 400) await sleep(REFUSED_MS);
    }
  });
  return async () => {
    stopped = true;
    await Promise.all(loops);
  };
}

const inTens = async <T>(count: number, action: (n: number) => Promise<T>): Promise<T[]> => {
  const results: T[] = [];
  for (let from = 0; from < count; from += 10)
    results.push(
      ...(await Promise.all(numbers(Math.min(10, count - from)).map((n) => action(from + n)))),
    );
  return results;
};

const sleepJob = (api: TenantApi) =>
  api.send('POST', '/api/jobs', { type: 'core.sleep', payload: { durationMs: 600_000 } });

const cancelJobs = (api: TenantApi, jobs: readonly Record<string, unknown>[]) =>
  inTens(jobs.length, (n) => api.attempt('POST', `/api/jobs/${String(jobs[n]?.id)}/cancel`));

const sleepingJobs = (api: TenantApi): Load => ({
  name: `${SLEEPING} sleeping jobs`,
  async start() {
    const jobs = await inTens(SLEEPING, () => sleepJob(api));
    return () => cancelJobs(api, jobs);
  },
});

const hangingWebhooks = (api: TenantApi, endpoint: BenchEndpoint): Load => ({
  name: `${HANGING} hanging webhooks`,
  async start() {
    const webhooks = await inTens(HANGING, () =>
      api.send('POST', '/api/webhooks', {
        endpointUrl: endpoint.url('/hanging'),
        eventTypes: ['job.created'],
      }),
    );
    await inTens(HANGING, () => api.send('POST', '/api/jobs', { type: 'core.echo', payload: {} }));
    return () =>
      inTens(HANGING, (n) =>
        api.attempt('PUT', `/api/webhooks/${String(webhooks[n]?.id)}`, { enabled: false }),
      );
  },
});

const minutelySchedules = (api: TenantApi): Load => ({
  name: `${SCHEDULES} schedules a minute`,
  async start() {
    const schedules = await inTens(SCHEDULES, (n) =>
      api.send('POST', '/api/schedules', {
        name: `noisy ${n}`,
        cronExpression: '* * * * *',
        jobType: 'core.echo',
        payload: {},
      }),
    );
    // The minute turns within the measurement.
    await sleep(60_000 - (Date.now() % 60_000));
    return () =>
      inTens(SCHEDULES, (n) => api.attempt('DELETE', `/api/schedules/${String(schedules[n]?.id)}`));
  },
});

const logStreams = (api: TenantApi): Load => ({
  name: `as many log streams as it gets, of ${STREAMS}`,
  async start() {
    const job = await sleepJob(api);
    const closers = await inTens(STREAMS, (n) =>
      api.open('GET', `/api/jobs/${String(job.id)}/logs?follow=true`, undefined, {
        'x-service-actor-id': `noisy-${n}`,
      }),
    );
    return async () => {
      closers.forEach((close) => close?.());
      await cancelJobs(api, [job]);
    };
  },
});

async function validationLoops(api: TenantApi): Promise<Load> {
  const vrf = await api.send('POST', '/api/inventory/vrfs', {
    name: 'noisy',
    tenantId: api.tenant,
  });
  const prefix = (cidr: string) => ({ cidr, vrfId: vrf.id });
  const parent = await api.send('POST', '/api/inventory/prefixes', prefix('10.0.0.0/12'));
  await api.send('POST', '/api/inventory/bulk', {
    mutations: numbers(CHILDREN).map((n) => ({
      resource: 'prefixes',
      operation: 'create',
      record: prefix(`10.${n >> 8}.${n & 255}.0/24`),
    })),
  });
  const mutations = numbers(MOVES).map((n) => ({
    resource: 'prefixes',
    operation: 'update',
    record: { id: parent.id, cidr: n % 2 === 0 ? '10.16.0.0/12' : '10.0.0.0/12' },
  }));
  return {
    name: `${LOOPS} loops of validations with ${CHILDREN} effects`,
    start: () =>
      Promise.resolve(
        repeat(LOOPS, () => api.attempt('POST', '/api/validation/inventory', { mutations })),
      ),
  };
}

/** Searches, exports and validations without a pause, each loop as another user of the tenant. */
async function expensiveReads(api: TenantApi): Promise<Load> {
  const vrf = await api.send('POST', '/api/inventory/vrfs', {
    name: 'reads',
    tenantId: api.tenant,
  });
  const address = (n: number) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}/32`;
  for (let from = 0; from < ADDRESSES; from += BATCH)
    await api.send('POST', '/api/inventory/bulk', {
      mutations: numbers(BATCH).map((n) => ({
        resource: 'ip-addresses',
        operation: 'create',
        record: { address: address(from + n), vrfId: vrf.id, dnsName: `host-${from + n}.example` },
      })),
    });
  const validation = {
    mutations: numbers(MOVES).map((n) => ({
      resource: 'prefixes',
      operation: 'create',
      record: { cidr: `10.${n}.0.0/16`, vrfId: vrf.id },
    })),
  };
  const reads = [
    (as: Record<string, string>) =>
      api.attempt('GET', '/api/inventory/ip-addresses?q=host&limit=200', undefined, as),
    (as: Record<string, string>) =>
      api.attempt('GET', '/api/inventory/ip-addresses/export', undefined, as),
    (as: Record<string, string>) =>
      api.attempt('POST', '/api/validation/inventory', validation, as),
  ];
  return {
    name: `${LOOPS} loops of searches, ${LOOPS} of exports and ${LOOPS} of validations`,
    start: () =>
      Promise.resolve(
        repeat(LOOPS * reads.length, async (n) => {
          const read = reads[n % reads.length];
          return read ? read({ 'x-service-actor-id': `noisy-${n}` }) : 0;
        }),
      ),
  };
}

const imports = (api: TenantApi): Load => ({
  name: `${LOOPS} loops of imports of ${IMPORT_ROWS} rows`,
  async start() {
    for (const n of numbers(LOOPS))
      await api.send('POST', '/api/inventory/vrfs', { name: `i${n}`, tenantId: api.tenant });
    const fileOf = (n: number) =>
      [
        'cidr,vrfId.name',
        ...numbers(IMPORT_ROWS).map((row) => `10.${row >> 8}.${row & 255}.0/24,i${n}`),
      ].join('\n');
    const files = numbers(LOOPS).map(fileOf);
    return repeat(LOOPS, (n) =>
      api.attempt('POST', '/api/inventory/import?resource=prefixes', files[n] ?? '', {
        'content-type': 'text/csv',
        prefer: 'wait=60',
      }),
    );
  },
});

/** The loads by the names that `HOLDFAST_BENCH_LOADS` has, in the order in which they run. */
const LOADS = {
  jobs: sleepingJobs,
  webhooks: hangingWebhooks,
  schedules: minutelySchedules,
  streams: logStreams,
  validations: validationLoops,
  reads: expensiveReads,
  imports,
};
export type LoadName = keyof typeof LOADS;

const isLoadName = (name: string): name is LoadName => Object.hasOwn(LOADS, name);

/** The loads named in `text`, separated by commas; all of them without a text. */
export function chosenLoads(text = Object.keys(LOADS).join()): LoadName[] {
  const names = text.split(',');
  const unknown = names.filter((name) => !isLoadName(name));
  if (unknown.length > 0)
    throw new Error(`Unknown: ${unknown.join(', ')}. Loads: ${Object.keys(LOADS).join(', ')}`);
  return names.filter(isLoadName);
}

export const prepareLoad = async (
  name: LoadName,
  api: TenantApi,
  endpoint: BenchEndpoint,
): Promise<Load> => LOADS[name](api, endpoint);
