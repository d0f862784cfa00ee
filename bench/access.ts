import { Agent, request } from 'undici';
import { openDatabase, type Knex } from '../db/core/knex.ts';
import { emptyTrail, writeTrail } from '../db/core/unitOfWork.ts';
import { Job } from '../db/models/Job.ts';
import { sealAudit } from '../db/audit/chain.ts';
import { DEFAULT_RETRY } from '../domain/jobs/retry.ts';
import { createIds } from '../platform/ids.ts';
import { createLog } from '../platform/log.ts';
import { createPasswords } from '../services/auth/passwords.ts';
import { startBed, startProgram } from './fixture.ts';
import { load } from './load.ts';
import { ms, perSecond, quantile, type Result } from './report.ts';

const TENANTS = 20_000;
const GRANTS = 10_000;
const JOBS = 200_000;
const REQUESTS = 400;
const WARM_UP = 50;
const WRITES = { atOnce: 20, total: 2_000 };
const WRITE_ROUNDS = 5;
const ONE_BY_ONE = { atOnce: 1, total: 500 };
const PASSWORD = 'a password for the benchmark';

const median = (values: number[]) => quantile(values, 0.5);

/** A list for somebody with 10,000 grants against the same list unscoped; and what the audit trail costs a write. */
export async function bench(): Promise<Result[]> {
  const bed = await startBed();
  const db = openDatabase({
    url: bed.databaseUrl,
    poolSize: WRITES.atOnce,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  try {
    await fill(db);
    const lists = await measureLists({
      DATABASE_URL: bed.databaseUrl,
      TEMPORAL_ADDRESS: '127.0.0.1:1',
    });
    return [...lists, ...(await measureAudit(db))];
  } finally {
    await db.destroy();
    await bed.stop();
  }
}

/** Jobs spread over tenants, half of which the user with the grants sees; one with few; one who sees all. */
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
  const grants = (user: string, from: string, where: string) =>
    db.raw(
      `INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
     SELECT 'asg_' || ? || ? || n, 'assignment', ?, 'viewer', 'tenant', ? || n, 'bench', now() FROM generate_series(1, ?) AS n WHERE ${where}`,
      [user, from, user, from, TENANTS],
    );
  await db.raw(`INSERT INTO grants (id, kind, user_id, role_id, level, tenant_id, created_by, created_at)
    VALUES ('asg_all', 'assignment', 'usr_1', 'viewer', 'platform', 'platform', 'bench', now())`);
  await grants('usr_2', 't', 'n % 2 = 0');
  // Ten thousand grants of which next to none has jobs: one tenant in a thousand.
  await grants('usr_3', 'x', `n <= ${GRANTS}`);
  await grants('usr_3', 't', 'n % 1000 = 0');
  await grants('usr_4', 't', 'n = 7');
  await db.raw(
    `INSERT INTO jobs (id, type, tenant_id, status, payload, retry_policy, created_by, authority, source_kind, created_at, updated_at, finished_at, checked_at)
     SELECT 'job_' || lpad(n::text, 26, '0'), 'core.echo', 't' || (1 + (n * 7919) % ?), 'succeeded', '{}', '{}', 'bench', '{}', 'api', now(), now(), now(), now()
     FROM generate_series(1, ?) AS n`,
    [TENANTS, JOBS],
  );
  await db.raw('VACUUM ANALYZE');
}

async function measureLists(env: Record<string, string>): Promise<Result[]> {
  const product = await startProgram(
    ['api/main.ts'],
    { HOLDFAST_PORT: '0', HOLDFAST_ROLE: 'api', HOLDFAST_LOG_LEVEL: 'info', ...env },
    /"port":(\d+).*listening/,
  );
  const agent = new Agent({ connections: 1 });
  const base = `http://127.0.0.1:${product.ready}`;
  const signIn = async (username: string) => {
    const answer = await request(`${base}/api/auth/login/local`, {
      method: 'POST',
      dispatcher: agent,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username, password: PASSWORD }),
    });
    return ((await answer.body.json()) as { accessToken: string }).accessToken;
  };
  const once = async (token: string) => {
    const began = performance.now();
    const answer = await request(`${base}/api/jobs?limit=50`, {
      dispatcher: agent,
      headers: { authorization: `Bearer ${token}` },
    });
    const { items } = (await answer.body.json()) as { items: unknown[] };
    if (items.length === 0) throw new Error('The list is empty');
    return performance.now() - began;
  };
  const names = ['everywhere', 'many', 'rare', 'one'] as const;
  const tokens = Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await signIn(name)] as const)),
  );
  const firstMs = await once(tokens.many ?? '');
  const took: Record<string, number[]> = { everywhere: [], many: [], rare: [], one: [] };
  // In turns, so that what the machine does beside falls on all.
  for (let n = 0; n < REQUESTS + WARM_UP; n++) {
    for (const name of names) {
      const tookMs = await once(tokens[name] ?? '');
      if (n >= WARM_UP) took[name]?.push(tookMs);
    }
  }
  await agent.close();
  await product.stop();
  const unscoped = median(took.everywhere ?? []);
  const row = (measure: string, value: number, aim = ''): Result => ({
    measure,
    value: ms(value),
    reference: `${ms(unscoped)} unscoped`,
    ratio: (value / unscoped).toFixed(2),
    aim,
    met: aim === '' || value / unscoped <= 1.5,
  });
  return [
    row(
      'list of 200,000 jobs, first page, with 10,000 grants that cover half of them, p50',
      median(took.many ?? []),
      '≤ 1.5',
    ),
    row('the same with 10,020 grants that cover 1 in 1,000, p50', median(took.rare ?? [])),
    row('the same with one grant, p50', median(took.one ?? [])),
    row('the first request after 10,000 grants have changed', firstMs),
  ];
}

/** Commits of a job and its outbox row, with and without the audit entry, while entries are sealed as in the product. */
async function measureAudit(db: Knex): Promise<Result[]> {
  const ids = createIds();
  const write = (audited: boolean) => async () => {
    const trail = emptyTrail();
    const [id, at] = [ids.next('job'), new Date()];
    trail.inserts.push(
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
      ),
    );
    if (audited) {
      trail.audit.push({
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
    await writeTrail(db, trail);
  };
  const rates = { plain: [] as number[], audited: [] as number[] };
  const singles = { plain: [] as number[], audited: [] as number[] };
  await load({ atOnce: 20, total: 500 }, write(true));
  for (let round = 0; round < WRITE_ROUNDS; round++) {
    rates.plain.push((await load(WRITES, write(false))).perSecond);
    singles.plain.push(...(await load(ONE_BY_ONE, write(false))).tookMs);
    let sealing = true;
    const sealer = (async () => {
      while (sealing) {
        await sealAudit(db, 1_000);
        await new Promise((resolve) => setTimeout(resolve, 1_000));
      }
    })();
    rates.audited.push((await load(WRITES, write(true))).perSecond);
    singles.audited.push(...(await load(ONE_BY_ONE, write(true))).tookMs);
    sealing = false;
    await sealer;
  }
  const [plain, audited] = [median(rates.plain), median(rates.audited)];
  const [plainMs, auditedMs] = [median(singles.plain), median(singles.audited)];
  return [
    {
      measure: 'commit of a record with its audit entry, one at a time, p50',
      value: ms(auditedMs),
      reference: `${ms(plainMs)} without entry`,
      ratio: (auditedMs / plainMs).toFixed(2),
      aim: '',
      met: true,
    },
    {
      measure: 'commits of a record with its audit entry, 20 at once, while entries are sealed',
      value: perSecond(audited),
      reference: `${perSecond(plain)} without entry`,
      ratio: (audited / plain).toFixed(2),
      aim: '',
      met: true,
    },
  ];
}
