import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Agent, request } from 'undici';
import { createPasswords } from '../services/auth/passwords.ts';
import { startBenchEnvironment, startProduct } from './fixture.ts';
import { ms, quantile, type BenchResult } from './report.ts';
import { fillEstates, siteOf } from './search/estate.ts';

/** How many times `npm run demo-data`: 20 are 800 sites and 1,000,000 addresses. */
const ESTATES = Number(process.env.HOLDFAST_BENCH_ESTATES ?? 20);
const REQUESTS = 20;
const WARM_UP = 3;
const MAX_P50_MS = 50;
const PASSWORD = 'a password for the benchmark';
/** A caller who searches alone has no pauses: the last one must not count as active. */
const QUIET_MS = 300;

/** Who searches, at which site; `grants` are those of an account, without them a gateway names the caller. */
type Searcher = { name: string; tenant?: string; site: number; grants?: readonly Grant[] };
type Grant = { level: 'tenant' | 'site' | 'device'; id: string; tenant: string };

const device = `dev_${String(45 * 50 + 6).padStart(26, '0')}`;
const siteGrant = (number: number): Grant => ({
  level: 'site',
  id: siteOf(number).id,
  tenant: 'large',
});
const SEARCHERS: readonly Searcher[] = [
  { name: 'the platform', tenant: 'platform', site: 5 },
  { name: 'a tenant with half of all', tenant: 'large', site: 45 },
  { name: 'a tenant with 5 %', tenant: 'medium', site: 91 },
  { name: 'a tenant with four sites', tenant: 'small', site: 95 },
  { name: 'a tenant with one site', tenant: 'tenant-99', site: 99 },
  { name: 'a user of one site', site: 45, grants: [siteGrant(45)] },
  {
    name: 'a user of one device',
    site: 45,
    grants: [{ level: 'device', id: device, tenant: 'large' }],
  },
  {
    name: 'a user of 150 sites',
    site: 45,
    grants: [0, 1, 2, 3, 4, 5, 6, 7]
      .flatMap((hundred) => Array.from({ length: 50 }, (_, i) => hundred * 100 + 40 + i))
      .slice(0, 150)
      .map(siteGrant),
  },
];

/** What is searched, from the names at the site of the caller. */
const TEXTS: readonly [name: string, q: (site: ReturnType<typeof siteOf>) => string][] = [
  ['the name of a device', ({ name }) => `${name}-d7`],
  ['the beginning of names', ({ name }) => `${name}-d`],
  ['a name that every device has', () => 'et-0/0/3'],
  ['a text that every interface has', () => 'et-0'],
  ['a part of few names', () => 'd50.example'],
  ['two words', ({ name }) => `${name} example`],
  ['a part that many have in another order', () => 'ample.exa'],
  ['a text that nothing has', () => 'zzqxw'],
  ['a misspelled name', () => 'aristta'],
  ['one letter', () => 'a'],
  ['one letter that no name begins with', () => 'n'],
  ['two letters', () => 'et'],
  ['two letters that no name begins with', () => 'ex'],
  ['a number', () => '20'],
  ['an address', ({ network }) => `${network}.1.14`],
  ['a network', ({ network }) => `${network}.1.0/24`],
  ['the beginning of an address', ({ network }) => `${network}.`],
  ['a MAC address', ({ macAddress }) => macAddress.replaceAll(':', '-')],
  ['a serial number', ({ serial }) => serial],
  ['a title', ({ name }) => `replace ${name}-d7`],
];

/** The p50 of searches of many kinds, for callers who may read all, much and little. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const client = new pg.Client({ connectionString: environment.databaseUrl });
  await client.connect();
  try {
    await fillEstates(client, ESTATES);
    await createAccounts(client);
    process.stderr.write(`${ESTATES} estates\n`);
    const product = await startProduct(environment, [], { HOLDFAST_READ_BUDGET_MS: '1000000' });
    try {
      return await measure(product.ready);
    } finally {
      await product.stop();
    }
  } finally {
    await client.end();
    await environment.stop();
  }
}

const accountOf = (i: number) => `usr_searcher${i}`;

/** Accounts of the searchers with grants. */
async function createAccounts(client: pg.Client): Promise<void> {
  const hash = await createPasswords().hash(PASSWORD);
  await client.query('SET session_replication_role = origin');
  for (const [i, { grants = [] }] of SEARCHERS.entries()) {
    if (grants.length === 0) continue;
    await client.query(
      `INSERT INTO users (id, provider_id, username, display_name, tenant_id, enabled, password_hash, created_at, updated_at)
       VALUES ($1, 'local', $1, $1, 'large', true, $2, now(), now())`,
      [accountOf(i), hash],
    );
    for (const [n, { level, id, tenant }] of grants.entries())
      await client.query(
        `INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, ${level === 'tenant' ? '' : `${level}_id,`} created_by, created_at)
         VALUES ($1, 'assignment', $2, 'viewer', $3, $4, ${level === 'tenant' ? '' : '$5,'} 'bench', now())`,
        [`asg_${i}_${n}`, accountOf(i), level, tenant, ...(level === 'tenant' ? [] : [id])],
      );
  }
}

type Answer = { items?: unknown[]; incomplete?: unknown[]; accessToken?: string };

/** Sends requests to a port of this machine, with the headers of a searcher. */
async function openSearch(port: string, i: number, { tenant, grants }: Searcher) {
  const dispatcher = new Agent({ connections: 1 });
  const send = async (path: string, headers: Record<string, string>, body?: object) => {
    const { statusCode, body: answer } = await request(`http://127.0.0.1:${port}${path}`, {
      method: body ? 'POST' : 'GET',
      dispatcher,
      headers: { 'content-type': 'application/json', ...headers },
      body: body ? JSON.stringify(body) : null,
    });
    const json = (await answer.json()) as Answer;
    if (statusCode >= 300) throw new Error(`${path} ${statusCode} ${JSON.stringify(json)}`);
    return json;
  };
  const login = { username: accountOf(i), password: PASSWORD };
  const headers: Record<string, string> = grants
    ? {
        authorization: `Bearer ${(await send('/api/auth/login/local', {}, login)).accessToken ?? ''}`,
      }
    : {
        'x-service-actor-id': 'bench',
        'x-service-role-ids': 'platform-admin',
        'x-service-tenant-id': tenant ?? '',
      };
  return {
    search: (q: string) => send(`/api/search?q=${encodeURIComponent(q)}`, headers),
    close: () => dispatcher.close(),
  };
}

async function measure(port: string): Promise<BenchResult[]> {
  const results: BenchResult[] = [];
  for (const [i, searcher] of SEARCHERS.entries()) {
    const { search, close } = await openSearch(port, i, searcher);
    await sleep(QUIET_MS);
    for (const [name, textOf] of TEXTS) {
      const q = textOf(siteOf(searcher.site));
      const durationsMs: number[] = [];
      let found: Answer = {};
      for (let n = 0; n < REQUESTS + WARM_UP; n++) {
        const startedAt = performance.now();
        found = await search(q);
        if (n >= WARM_UP) durationsMs.push(performance.now() - startedAt);
      }
      results.push(resultOf(`${searcher.name}: ${name}`, durationsMs, found));
    }
    await close();
  }
  return results;
}

function resultOf(
  measure: string,
  durationsMs: readonly number[],
  { items = [], incomplete = [] }: Answer,
): BenchResult {
  const p50 = quantile(durationsMs, 0.5);
  process.stderr.write(
    `${measure}: ${ms(p50)}, ${items.length} found, ${incomplete.length} incomplete\n`,
  );
  return {
    measure: `${measure}, p50`,
    value: ms(p50),
    reference: `${items.length} found`,
    ratio: '',
    target: `≤ ${MAX_P50_MS} ms`,
    met: p50 <= MAX_P50_MS && incomplete.length === 0,
  };
}
