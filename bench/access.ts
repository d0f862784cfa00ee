import { Agent, request } from 'undici';
import { openDatabase, type Knex } from '../db/core/knex.ts';
import { emptyUnitOfWork, writeUnitOfWork } from '../db/core/unitOfWork.ts';
import { Job } from '../db/models/Job.ts';
import { sealEntries } from '../db/audit/chain.ts';
import { DEFAULT_RETRY } from '../domain/jobs/retry.ts';
import { createIds } from '../platform/ids.ts';
import { createLog } from '../platform/log.ts';
import { createPasswords } from '../services/auth/passwords.ts';
import { measureTokens } from './access/tokens.ts';
import { startBenchEnvironment, startProgram } from './fixture.ts';
import { load } from './load.ts';
import { median, ms, perSecond, type BenchResult } from './report.ts';

const TENANTS = 20_000;
const GRANTS = 10_000;
const JOBS = 200_000;
const REQUESTS = 400;
const WARM_UP = 50;
const WRITES = { concurrency: 20, total: 2_000 };
const WRITE_ROUNDS = 5;
const SEQUENTIAL = { concurrency: 1, total: 500 };
const PASSWORD = 'a password for the benchmark';

/** Lists of a user with 10,000 grants compared with unscoped ones; API tokens; the cost of audit entries. */
export async function bench(): Promise<BenchResult[]> {
  const environment = await startBenchEnvironment();
  const db = openDatabase({
    url: environment.databaseUrl,
    poolSize: WRITES.concurrency,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  try {
    await db.transaction(async (trx) => {
      // There are more tenants than a transaction can lock (`share_tenant` of the schema).
      await trx.raw(`SET LOCAL holdfast.restoring = 'on'`);
      await fill(trx);
    });
    await db.raw('VACUUM ANALYZE');
    const env = { DATABASE_URL: environment.databaseUrl, TEMPORAL_ADDRESS: '127.0.0.1:1' };
    const lists = await measureLists(env);
    const tokens = await measureTokens(db, env, 'usr_4');
    return [...lists, ...tokens, ...(await measureAudit(db))];
  } finally {
    await db.destroy();
    await environment.stop();
  }
}

/** Creates jobs in many tenants, and users who see all, half, 0.1 % and one of the tenants. */
async function fill(db: Knex): Promise<void> {
  const passwordHash = await createPasswords().hash(PASSWORD);
  for (const [name, id] of [
    ['everywhere', 'usr_1'],
    ['many', 'usr_2'],
    ['rare', 'usr_3'],
    ['one', 'usr_4'],
  ] as const) {
    await db('users').insert({
      id,
      provider_id: 'local',
      username: name,
      display_name: name,
      tenant_id: 'platform',
      enabled: true,
      password_hash: passwordHash,
      created_at: new Date(),
      updated_at: new Date(),
    });
  }
  const grants = (user: string, from: string, condition: string) =>
    db.raw(
      `INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
     SELECT 'asg_' || ? || ? || n, 'assignment', ?, 'viewer', 'tenant', ? || n, 'bench', now() FROM generate_series(1, ?) AS n WHERE ${condition}`,
      [user, from, user, from, TENANTS],
    );
  await db.raw(`INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
    VALUES ('asg_all', 'assignment', 'usr_1', 'viewer', 'platform', 'platform', 'bench', now())`);
  await grants('usr_2', 't', 'n % 2 = 0');
  // Ten thousand grants for tenants without jobs, and grants for one tenant in a thousand.
  await grants('usr_3', 'x', `n <= ${GRANTS}`);
  await grants('usr_3', 't', 'n % 1000 = 0');
  await grants('usr_4', 't', 'n = 7');
  await db.raw(
    `INSERT INTO jobs (id, type, tenant_id, status, payload, retry_policy, created_by, authority, source_kind, created_at, updated_at, finished_at, checked_at)
     SELECT 'job_' || lpad(n::text, 26, '0'), 'core.echo', 't' || (1 + (n * 7919) % ?), 'succeeded', '{}', '{}', 'bench', '{"actorId": "bench", "grants": []}', 'api', now(), now(), now(), now()
     FROM generate_series(1, ?) AS n`,
    [TENANTS, JOBS],
  );
}

const USERS = ['everywhere', 'many', 'rare', 'one'] as const;

type Durations = Record<(typeof USERS)[number], number[]>;

async function measureLists(env: Record<string, string>): Promise<BenchResult[]> {
  const product = await startProgram(
    ['processes/main.ts'],
    { HOLDFAST_PORT: '0', HOLDFAST_ROLE: 'api', HOLDFAST_LOG_LEVEL: 'info', ...env },
    /"port":(\d+).*listening/,
  );
  const api = connect(`http://127.0.0.1:${product.ready}`);
  const tokens = {
    everywhere: await api.signIn('everywhere'),
    many: await api.signIn('many'),
    rare: await api.signIn('rare'),
    one: await api.signIn('one'),
  };
  const firstMs = await api.listJobs(tokens.many);
  const durationsMs: Durations = { everywhere: [], many: [], rare: [], one: [] };
  // Alternating, so that other load on the machine affects all measures equally.
  for (let n = 0; n < REQUESTS + WARM_UP; n++) {
    for (const name of USERS) {
      const durationMs = await api.listJobs(tokens[name]);
      if (n >= WARM_UP) durationsMs[name].push(durationMs);
    }
  }
  await api.close();
  await product.stop();
  return listResults(durationsMs, firstMs);
}

/** The requests of the measurement, over one connection. */
function connect(base: string) {
  const agent = new Agent({ connections: 1 });
  return {
    async signIn(username: string): Promise<string> {
      const answer = await request(`${base}/api/auth/login/local`, {
        method: 'POST',
        dispatcher: agent,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username, password: PASSWORD }),
      });
      return ((await answer.body.json()) as { accessToken: string }).accessToken;
    },

    /** Reads the first page, and returns how long that took, in milliseconds. */
    async listJobs(token: string): Promise<number> {
      const startedAt = performance.now();
      const answer = await request(`${base}/api/jobs?limit=50`, {
        dispatcher: agent,
        headers: { authorization: `Bearer ${token}` },
      });
      const { items } = (await answer.body.json()) as { items: unknown[] };
      if (items.length === 0) throw new Error('The list is empty');
      return performance.now() - startedAt;
    },

    close: () => agent.close(),
  };
}

function listResults(durationsMs: Durations, firstMs: number): BenchResult[] {
  const unscoped = median(durationsMs.everywhere);
  const row = (measure: string, value: number, target = ''): BenchResult => ({
    measure,
    value: ms(value),
    reference: `${ms(unscoped)} unscoped`,
    ratio: (value / unscoped).toFixed(2),
    target,
    met: target === '' || value / unscoped <= 1.5,
  });
  return [
    row(
      'first page of 200,000 jobs, with 10,000 grants that cover half of them, p50',
      median(durationsMs.many),
      '≤ 1.5',
    ),
    row('the same with 10,020 grants that cover 1 in 1,000, p50', median(durationsMs.rare)),
    row('the same with one grant, p50', median(durationsMs.one)),
    row('the first request after 10,000 grants have changed', firstMs),
  ];
}

/** Commits of a job with and without its audit entry, while the audit log is sealed. */
async function measureAudit(db: Knex): Promise<BenchResult[]> {
  const write = createWriter(db);
  const rates = { plain: [] as number[], audited: [] as number[] };
  const singles = { plain: [] as number[], audited: [] as number[] };
  await load({ concurrency: 20, total: 500 }, write(true));
  for (let round = 0; round < WRITE_ROUNDS; round++) {
    rates.plain.push((await load(WRITES, write(false))).perSecond);
    singles.plain.push(...(await load(SEQUENTIAL, write(false))).durationsMs);
    await whileSealing(db, async () => {
      rates.audited.push((await load(WRITES, write(true))).perSecond);
      singles.audited.push(...(await load(SEQUENTIAL, write(true))).durationsMs);
    });
  }
  const [plain, audited] = [median(rates.plain), median(rates.audited)];
  const [plainMs, auditedMs] = [median(singles.plain), median(singles.audited)];
  return [
    {
      measure: 'commit of a record with its audit entry, one at a time, p50',
      value: ms(auditedMs),
      reference: `${ms(plainMs)} without entry`,
      ratio: (auditedMs / plainMs).toFixed(2),
      target: '',
      met: true,
    },
    {
      measure:
        'commits of a record with its audit entry, 20 concurrently, while entries are sealed',
      value: perSecond(audited),
      reference: `${perSecond(plain)} without entry`,
      ratio: (audited / plain).toFixed(2),
      target: '',
      met: true,
    },
  ];
}

/** Returns the function that commits one job, with its audit entry or without. */
function createWriter(db: Knex) {
  const ids = createIds();
  return (audited: boolean) => async (): Promise<void> => {
    const work = emptyUnitOfWork();
    const [id, at] = [ids.next('job'), new Date()];
    work.inserts.push(queuedJob(id, at));
    if (audited) {
      work.audit.push({
        id: ids.next('aud'),
        tenantId: 'bench',
        actorId: 'bench',
        via: 'gateway',
        action: 'job.create',
        outcome: 'done',
        subject: { type: 'job', id },
        before: null,
        after: { type: 'core.echo', tenantId: 'bench', status: 'queued', createdBy: 'bench' },
        requestId: 'bench',
        address: '127.0.0.1',
        at,
      });
    }
    await writeUnitOfWork(db, work);
  };
}

const queuedJob = (id: string, at: Date): Job =>
  Job.fromJson(
    {
      id,
      type: 'core.echo',
      tenantId: 'bench',
      status: 'queued',
      payload: {},
      retryPolicy: DEFAULT_RETRY,
      createdBy: 'bench',
      authority: {},
      sourceKind: 'api',
      createdAt: at,
      updatedAt: at,
      checkedAt: at,
    },
    { skipValidation: true },
  );

/** Does `work` while entries are sealed once a second. */
async function whileSealing(db: Knex, work: () => Promise<void>): Promise<void> {
  let sealing = true;
  const sealer = (async () => {
    while (sealing) {
      await sealEntries(db, 1_000);
      await new Promise((resolve) => setTimeout(resolve, 1_000));
    }
  })();
  await work();
  sealing = false;
  await sealer;
}
