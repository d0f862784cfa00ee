import pg from 'pg';
import type { Page } from 'playwright-core';
import { request } from 'undici';
import { startInstallation, type Installation } from './console/installation.ts';
import { watchMaps } from './console/map.ts';
import { watchScroll, type ScrollReport } from './console/scroll.ts';
import { startBenchEnvironment } from './fixture.ts';
import { ms, quantile, type BenchResult } from './report.ts';
import { fillEstates, siteOf } from './search/estate.ts';

/** How many times `npm run demo-data`: 20 are 1,000,000 addresses. */
const ESTATES = Number(process.env.HOLDFAST_BENCH_ESTATES ?? 20);
const LOADS = 5;
const SEARCHES = 10;
const ROWS = 100_000;
const LINES = 10_000;
const LOG_JOB = 'job_01jd0cmxk5e5v8kyzwq0q8s3rt';
const KB = 1_000;
/** Files of the first page that are printed. */
const SHOWN_BYTES = 2 * KB;

const LIMITS = {
  scriptBytes: 200 * KB,
  readyMs: 1_500,
  logMs: 1_000,
  searchMs: 150,
  frameMs: 33,
  mapMs: 500,
  mapFrameMs: 17,
};

/** What a user of the console waits for: the first page, a long list, a long log, a search. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const client = new pg.Client({ connectionString: environment.databaseUrl });
  await client.connect();
  try {
    await fillEstates(client, ESTATES);
    await client.query('SET session_replication_role = origin');
    await insertLongLog(client);
    // Lists of the inventory are not what is measured: their budgets would make the searches wait.
    const env = { HOLDFAST_READ_BUDGET_MS: '1000000' };
    const installation = await startInstallation(environment, env);
    try {
      return await measure(installation);
    } finally {
      await installation.stop();
    }
  } finally {
    await client.end();
    await environment.stop();
  }
}

async function measure(installation: Installation): Promise<BenchResult[]> {
  const user = await installation.createUser('bench', 'Bench', { roleId: 'platform-admin' });
  const open = (options = {}) => installation.open(user, options);
  return [
    ...(await firstPage(open)),
    ...(await longList(await open())),
    ...(await longLog(await open())),
    ...(await searches(await open())),
    ...(await maps(installation, await open())),
  ];
}

type Open = () => Promise<Page>;

const atMost = (measure: string, value: number, limit: number, text: string): BenchResult => ({
  measure,
  value: text,
  reference: '',
  ratio: '',
  target: '',
  met: value <= limit,
});

const kilobytes = (bytes: number): string => `${(bytes / KB).toFixed(0)} KB`;

/** A measure with a duration as its limit. */
const within = (measure: string, value: number, limit: number): BenchResult => ({
  ...atMost(measure, value, limit, ms(value)),
  target: `≤ ${limit} ms`,
});

/** Opens the first page, and waits for its last part. */
async function timeToReady(page: Page): Promise<number> {
  const startedAt = performance.now();
  await page.goto('/');
  await page.getByRole('region', { name: 'System' }).getByText('PostgreSQL').waitFor();
  return performance.now() - startedAt;
}

async function firstPage(open: Open): Promise<BenchResult[]> {
  const cold: number[] = [];
  const again: number[] = [];
  for (let n = 0; n < LOADS; n++) {
    const page = await open();
    cold.push(await timeToReady(page));
    again.push(await timeToReady(page));
    await page.context().close();
  }
  const page = await open();
  await timeToReady(page);
  const [br, gzip] = [await transferred(page, 'br'), await transferred(page, 'gzip')];
  await page.context().close();
  return [
    {
      ...atMost('first page: JavaScript over https (Brotli)', br.script, LIMITS.scriptBytes, ''),
      value: kilobytes(br.script),
      target: `≤ ${kilobytes(LIMITS.scriptBytes)}`,
    },
    atMost('first page: JavaScript over http (gzip)', 0, 0, kilobytes(gzip.script)),
    atMost('first page: all files over https', 0, 0, kilobytes(br.all)),
    within('first page ready in a new browser, p50', quantile(cold, 0.5), LIMITS.readyMs),
    within('the same after a reload, p50', quantile(again, 0.5), LIMITS.readyMs),
  ];
}

/** Runs in the page: the addresses of the page and its files. Responses of the API are data. */
const FILES = `['navigation', 'resource']
  .flatMap((kind) => performance.getEntriesByType(kind))
  .map(({ name }) => name)
  .filter((name) => !new URL(name).pathname.startsWith('/api/'))`;

type Encoding = 'br' | 'gzip';

/** Bytes of the files that a page has loaded; prints those of the large ones. */
async function transferred(
  page: Page,
  encoding: Encoding,
): Promise<{ script: number; all: number }> {
  let [script, all] = [0, 0];
  for (const url of await page.evaluate<string[]>(FILES)) {
    const headers = { 'accept-encoding': encoding, accept: 'text/html, */*' };
    const { body } = await request(url, { headers });
    const { byteLength } = await body.arrayBuffer();
    if (byteLength >= SHOWN_BYTES) process.stderr.write(`${encoding} ${byteLength} ${url}\n`);
    all += byteLength;
    if (url.endsWith('.js')) script += byteLength;
  }
  return { script, all };
}

/** The list of jobs with as many rows, as the server would send them if it had no pages. */
async function longList(page: Page): Promise<BenchResult[]> {
  await page.route(/\/api\/jobs\?/, (route) => route.fulfill({ json: jobList(ROWS) }));
  await page.goto('/jobs');
  await page.getByRole('grid').getByRole('row').nth(5).waitFor();
  const steady = await watchScroll(page, { frames: 240, pixels: 120 });
  // As with the scroll bar: further in each frame than any rows that are drawn ahead.
  const dragged = await watchScroll(page, { frames: 240, pixels: 2_000 });
  await page.context().close();
  return [
    ...scrollResults('scrolling', steady),
    atMost(
      'dragging the scroll bar: time of a frame, p50',
      0,
      0,
      ms(quantile(dragged.frameMs, 0.5)),
    ),
  ];
}

function scrollResults(name: string, { rows, blank, frameMs }: ScrollReport): BenchResult[] {
  const list = `${name} through ${rows.toLocaleString('en')} rows`;
  return [
    { ...atMost(`${list}: frames with a gap`, blank, 0, String(blank)), target: '0' },
    within(`${list}: time of a frame, p50`, quantile(frameMs, 0.5), LIMITS.frameMs),
    atMost(`${list}: time of a frame, p99`, 0, 0, ms(quantile(frameMs, 0.99))),
  ];
}

/** A page of the list with all of them; each differs in its id and time. */
function jobList(count: number): object {
  const at = (n: number) => new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString();
  return {
    items: Array.from({ length: count }, (_, n) => ({
      id: `job_${String(n).padStart(26, '0')}`,
      type: 'core.echo',
      status: n % 9 === 0 ? 'failed' : 'succeeded',
      tenantId: 'platform',
      siteId: null,
      deviceId: null,
      attempts: 1,
      attempt: 1,
      createdBy: 'bench',
      source: { kind: 'api', id: null },
      createdAt: at(n),
      updatedAt: at(n + 2),
      startedAt: at(n + 1),
      finishedAt: at(n + 2),
      progress: null,
      error: null,
    })),
    nextCursor: null,
    count: { value: count, exact: false },
    facets: {},
    included: { labels: {}, people: {} },
  };
}

/** A job that has ended, with a log. */
async function insertLongLog(client: pg.Client): Promise<void> {
  await client.query(
    `INSERT INTO jobs (id, type, tenant_id, status, payload, retry_policy, result, attempts, log_count, run_id, created_by, authority,
       source_kind, created_at, updated_at, started_at, finished_at, checked_at)
     VALUES ($1, 'core.echo', 'platform', 'succeeded', '{}',
       '{"maxAttempts": 3, "initialIntervalSeconds": 1, "backoffCoefficient": 2, "maxIntervalSeconds": 60, "nonRetryableCodes": []}',
       '{}', 1, $2, gen_random_uuid()::text, 'bench', '{"actorId": "bench", "grants": []}', 'api', now(), now(), now(), now(), now())`,
    [LOG_JOB, LINES],
  );
  await client.query(
    `INSERT INTO job_logs (job_id, line, attempt, level, message, at)
     SELECT $1, line, 1, CASE WHEN line % 50 = 0 THEN 'warn' ELSE 'info' END,
       'interface et-0/0/' || line || ' has been compared with its record, and is as it should be', now()
     FROM generate_series(1, $2::integer) AS line`,
    [LOG_JOB, LINES],
  );
}

async function longLog(page: Page): Promise<BenchResult[]> {
  const times: number[] = [];
  for (let n = 0; n < LOADS; n++) {
    await page.goto('/jobs');
    await page.getByRole('grid').waitFor();
    const startedAt = performance.now();
    await page.getByRole('grid').getByRole('link').first().click();
    await page
      .getByText(/has been compared with its record/)
      .first()
      .waitFor();
    times.push(performance.now() - startedAt);
  }
  await page.context().close();
  const log = `log of ${LINES.toLocaleString('en')} lines opens, p50`;
  return [within(log, quantile(times, 0.5), LIMITS.logMs)];
}

async function searches(page: Page): Promise<BenchResult[]> {
  const times: number[] = [];
  await page.goto('/');
  await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
  for (let n = 0; n < SEARCHES; n++) {
    const { network } = siteOf(n);
    await page.keyboard.press('/');
    const field = page.getByRole('combobox', { name: 'Search' });
    const answered = page.waitForResponse(/\/api\/search\?/);
    await field.fill(`${network}.1.14`);
    const timing = (await answered).request().timing();
    await page
      .getByRole('option')
      .filter({ hasText: `${network}.1.14` })
      .first()
      .waitFor();
    times.push(timing.responseEnd - timing.requestStart);
    await page.keyboard.press('Escape');
  }
  await page.context().close();
  const addresses = (ESTATES * 50_000).toLocaleString('en');
  return [
    within(`search of ${addresses} addresses answers, p50`, quantile(times, 0.5), LIMITS.searchMs),
  ];
}

async function maps(installation: Installation, page: Page): Promise<BenchResult[]> {
  const reports = await watchMaps(installation, page);
  await page.context().close();
  return reports.flatMap(({ network, prefixes, openMs, frameMs }) => {
    const map = `map of ${network} with ${prefixes.toLocaleString('en')} prefixes`;
    return [
      within(`${map} opens, p50`, openMs, LIMITS.mapMs),
      within(`${map}: time of a frame, p50`, quantile(frameMs, 0.5), LIMITS.mapFrameMs),
      atMost(`${map}: time of a frame, p95`, 0, 0, ms(quantile(frameMs, 0.95))),
    ];
  });
}
