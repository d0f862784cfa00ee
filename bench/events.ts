import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Agent, request } from 'undici';
import { measureCreates } from './events/creates.ts';
import { measureFollowers } from './events/followers.ts';
import {
  startEndpoint,
  waitForArrivals,
  type BenchApi,
  type BenchEndpoint,
} from './events/endpoint.ts';
import { startBenchEnvironment, startProduct } from './fixture.ts';
import { load } from './load.ts';
import { ms, perSecond, quantile, type BenchResult } from './report.ts';

const IDLE = 200;
const WARM_UP = 30;
/** Records whose updates are the events: updates of one record wait for one another. */
const SUBJECTS = 20;
const THROUGHPUT = 1_000;
const HANGING = 1_000;
const ROUNDS = 3;

/**
 * Latency from the commit of an event to the endpoint, idle and while another endpoint hangs; events
 * per second; and creates of records of which a webhook gets the events.
 */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const endpoint = await startEndpoint();
  // A tenth of the streams is left to other tenants.
  const product = await startProduct(environment, [], { HOLDFAST_MAX_EVENT_STREAMS: '600' });
  const agent = new Agent({ connections: 20 });
  const api: BenchApi = async (method, path, body, tenant = 'bench') => {
    const answer = await request(`http://127.0.0.1:${product.ready}${path}`, {
      method,
      dispatcher: agent,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'x-service-actor-id': 'bench',
        'x-service-role-ids': tenant === 'platform' ? 'platform-admin' : 'operator',
        'x-service-tenant-id': tenant,
      },
    });
    const made = (await answer.body.json()) as { id: string };
    if (answer.statusCode > 201) throw new Error(`${answer.statusCode} ${JSON.stringify(made)}`);
    return made;
  };
  try {
    // Disabled webhooks: each update of one emits an event.
    const subjects: { id: string }[] = [];
    for (let n = 0; n < SUBJECTS; n++)
      subjects.push(
        await api('POST', '/api/webhooks', {
          endpointUrl: endpoint.url('/never'),
          eventTypes: ['job.failed'],
          enabled: false,
        }),
      );
    const emitEvent = (n: number) =>
      api('PUT', `/api/webhooks/${subjects[n % SUBJECTS]?.id ?? ''}`, { description: String(n) });
    const followed = await measureFollowers(product.ready, emitEvent);
    await load({ concurrency: 10, total: THROUGHPUT }, emitEvent);
    const written = await load({ concurrency: 10, total: THROUGHPUT }, emitEvent);
    await api('POST', '/api/webhooks', {
      endpointUrl: endpoint.url('/healthy'),
      eventTypes: ['webhook.updated'],
    });
    await emitSequentially(WARM_UP, emitEvent, endpoint);
    const idle = await emitSequentially(IDLE, emitEvent, endpoint);
    const rate = await throughput(emitEvent, endpoint, written.perSecond);
    const creates = await measureCreates(api, endpoint);
    const isolated = await isolation(api, emitEvent, endpoint, environment.databaseUrl);
    return [...latency(idle), followed, rate, ...creates, ...isolated];
  } finally {
    await product.stop();
    await agent.close();
    await endpoint.stop();
    await environment.stop();
  }
}

/** Emits events one after the other. Returns the latencies in milliseconds. */
async function emitSequentially(
  count: number,
  happen: (n: number) => Promise<unknown>,
  sink: BenchEndpoint,
): Promise<number[]> {
  const from = sink.arrivals.length;
  for (let n = 1; n <= count; n++) {
    await happen(n);
    await waitForArrivals(sink.arrivals, from + n);
    await sleep(20 + Math.random() * 30);
  }
  return sink.arrivals.slice(from).map(({ afterMs }) => afterMs);
}

async function throughput(
  happen: (n: number) => Promise<unknown>,
  sink: BenchEndpoint,
  writtenPerSecond: number,
): Promise<BenchResult> {
  const rates: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const from = sink.arrivals.length;
    const began = performance.now();
    await load({ concurrency: 10, total: THROUGHPUT }, happen);
    await waitForArrivals(sink.arrivals, from + THROUGHPUT);
    rates.push(THROUGHPUT / ((performance.now() - began) / 1_000));
    await sleep(2_000);
  }
  return {
    measure: `events written by one request each and delivered to one webhook, ${THROUGHPUT} at a time`,
    value: perSecond(quantile(rates, 0.5)),
    reference: `${perSecond(writtenPerSecond)} without a webhook`,
    ratio: (quantile(rates, 0.5) / writtenPerSecond).toFixed(2),
    target: '≥ 250/s',
    met: quantile(rates, 0.5) >= 250,
  };
}

function latency(idle: readonly number[]): BenchResult[] {
  const [p50, p99] = [quantile(idle, 0.5), quantile(idle, 0.99)];
  return [
    {
      measure: 'event from commit to first byte at the endpoint, idle, p50',
      value: ms(p50),
      reference: '',
      ratio: '',
      target: '≤ 40 ms',
      met: p50 <= 40,
    },
    {
      measure: 'the same, p99',
      value: ms(p99),
      reference: '',
      ratio: '',
      target: '≤ 150 ms',
      met: p99 <= 150,
    },
  ];
}

/** Latency of a healthy endpoint alone, and beside a hanging one with pending deliveries. */
async function isolation(
  api: BenchApi,
  happen: (n: number) => Promise<unknown>,
  sink: BenchEndpoint,
  url: string,
): Promise<BenchResult[]> {
  const before = await emitSequentially(IDLE, happen, sink);
  await api('POST', '/api/webhooks', {
    endpointUrl: sink.url('/hanging'),
    eventTypes: ['job.created'],
  });
  await load({ concurrency: 10, total: HANGING }, (n) =>
    api('POST', '/api/jobs', { type: 'core.echo', payload: { n } }),
  );
  await waitForJobs(url);
  const beside = await emitSequentially(IDLE, happen, sink);
  const waiting = await countPending(url);
  if (waiting < HANGING || sink.hanging() === 0) throw new Error(`Only ${waiting} deliveries wait`);
  const [alone, with99] = [quantile(before, 0.99), quantile(beside, 0.99)];
  const [alone50, with50] = [quantile(before, 0.5), quantile(beside, 0.5)];
  return [
    {
      measure: `healthy endpoint beside a hanging one with ${waiting} deliveries waiting, p99`,
      value: ms(with99),
      reference: `${ms(alone)} without`,
      ratio: (with99 / alone).toFixed(2),
      target: '≤ 2',
      met: with99 / alone <= 2,
    },
    {
      measure: 'the same, p50',
      value: ms(with50),
      reference: `${ms(alone50)} without`,
      ratio: (with50 / alone50).toFixed(2),
      target: '',
      met: true,
    },
  ];
}

async function query(url: string, sql: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ count: number }>(sql);
  await client.end();
  return rows[0]?.count ?? 0;
}

const countPending = (url: string) =>
  query(url, `SELECT count(*) FROM deliveries WHERE status = 'pending'`);

async function waitForJobs(url: string): Promise<void> {
  while (
    (await query(
      url,
      `SELECT count(*) FROM jobs WHERE status IN ('queued', 'running') AND type <> 'webhook.deliver'`,
    )) > 0
  )
    await sleep(200);
}
