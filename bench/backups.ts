import { execFile, spawn } from 'node:child_process';
import { access, chmod, chown, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { openDatabase } from '../db/core/knex.ts';
import { migrateUp } from '../db/core/migrate.ts';
import { freePort } from '../dev/freePort.ts';
import { createLog } from '../platform/log.ts';
import { ROOT, startBed, startProgram, type BenchProcess } from './fixture.ts';
import type { Result } from './report.ts';

const run = promisify(execFile);

/** Debian's server and client, of one version: a client does not dump a newer server. */
const BIN = '/usr/lib/postgresql/15/bin';
const ROWS = 1_000_000;
const ROUNDS = 3;
/** Restores take minutes, most of which PostgreSQL makes indexes. */
const RESTORES = 2;
const KEYS = `bench:${Buffer.alloc(32, 5).toString('base64')}`;

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const seconds = (value: number) => `${value.toFixed(1)} s`;
const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

/** A server of Debian's PostgreSQL in a folder that is thrown away, run by the account postgres. */
async function startDebianPostgres() {
  await access(`${BIN}/postgres`).catch(() => {
    throw new Error("This benchmark needs Debian's PostgreSQL 15: apt-get install postgresql-15");
  });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-bench-pg-'));
  const { stdout } = await run('id', ['-u', 'postgres']);
  await chown(folder, Number(stdout), -1);
  await chmod(folder, 0o711);
  const as = (program: string, ...args: string[]) =>
    run('runuser', ['-u', 'postgres', '--', path.join(BIN, program), ...args], {
      maxBuffer: 1 << 26,
      cwd: '/',
    });
  await as('initdb', '-D', `${folder}/data`, '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8');
  const port = await freePort(0);
  const server = spawn(
    'runuser',
    [
      '-u',
      'postgres',
      '--',
      `${BIN}/postgres`,
      '-D',
      `${folder}/data`,
      '-p',
      String(port),
      '-c',
      'listen_addresses=127.0.0.1',
      '-c',
      `unix_socket_directories=${folder}`,
      '-c',
      'shared_buffers=512MB',
      '-c',
      'max_wal_size=4GB',
    ],
    { stdio: 'ignore', cwd: '/' },
  );
  const url = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  for (
    let tries = 0;
    tries < 100 &&
    !(await run(`${BIN}/pg_isready`, ['-h', '127.0.0.1', '-p', String(port)]).then(
      () => true,
      () => false,
    ));
    tries++
  )
    await new Promise((resolve) => setTimeout(resolve, 100));
  return {
    folder,
    url,
    tool: (program: string, ...args: string[]) =>
      run(path.join(BIN, program), args, { maxBuffer: 1 << 26 }),
    async sql(name: string, ...statements: string[]) {
      const client = new pg.Client({ connectionString: url(name) });
      await client.connect();
      for (const statement of statements) await client.query(statement);
      await client.end();
    },
    async stop() {
      await as('pg_ctl', '-D', `${folder}/data`, 'stop', '-m', 'fast');
      server.unref();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

type Server = Awaited<ReturnType<typeof startDebianPostgres>>;

async function makeDatabase(server: Server, name: string, migrated: boolean): Promise<string> {
  await server.sql(
    'postgres',
    `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
    `CREATE DATABASE ${name}`,
  );
  if (!migrated) return server.url(name);
  const db = openDatabase({
    url: server.url(name),
    poolSize: 3,
    statementTimeoutMs: 0,
    log: createLog('silent', false),
  });
  await migrateUp(db);
  await db.destroy();
  return server.url(name);
}

const FILL = [
  `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) VALUES ('vrf_bench', 'platform', 'bench', true)`,
  `INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode) VALUES ('pfx_bench', 'platform', '10.0.0.0/8', 'vrf_bench', 'active', 'pool')`,
  `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status, dns_name, description)
   SELECT 'ipa_' || lpad(n::text, 26, '0'), 'platform', set_masklen('10.0.0.0'::inet + n, 24), 'vrf_bench', 'active', 'host-' || n || '.example.net', 'made for the benchmark, number ' || md5(n::text) FROM generate_series(1, ${ROWS}) AS n`,
  'ANALYZE',
];

const took = async (work: () => Promise<unknown>): Promise<number> => {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1_000;
};

/** The memory of a process: what it has now, and the most it has had while `work` ran, ten times a second. */
async function watched(pid: number, work: () => Promise<unknown>): Promise<number> {
  const pss = async () =>
    Number(/^Pss:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) *
    1_024;
  let most = 0;
  let watching = true;
  const watch = (async () => {
    while (watching) {
      most = Math.max(most, await pss());
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  await work();
  watching = false;
  await watch;
  return most;
}

const api =
  (product: BenchProcess) =>
  async (method: string, url: string, body?: object): Promise<Record<string, unknown>> => {
    const answer = await fetch(`http://127.0.0.1:${product.ready}/api/${url}`, {
      method,
      ...(body && { body: JSON.stringify(body) }),
      headers: {
        'content-type': 'application/json',
        prefer: 'wait=60',
        'x-service-actor-id': 'bench',
        'x-service-role-ids': 'platform-admin',
        'x-service-tenant-id': 'platform',
      },
    });
    const json = (await answer.json()) as Record<string, unknown>;
    if (answer.status >= 300)
      throw new Error(`${answer.status} ${JSON.stringify(json).slice(0, 500)}`);
    return json;
  };

/** Making and restoring a backup of a million addresses, against PostgreSQL's own tools on the same server. */
export async function bench(): Promise<Result[]> {
  const [bed, server] = [await startBed(), await startDebianPostgres()];
  const archives = path.join(server.folder, 'archives');
  await mkdir(archives);
  const source = await makeDatabase(server, 'source', true);
  await server.sql('source', ...FILL);
  const env = { DATABASE_URL: source, HOLDFAST_MASTER_KEYS: KEYS, HOLDFAST_BACKUP_DIR: archives };
  const product = await startProgram(
    ['api/main.ts'],
    {
      ...env,
      HOLDFAST_PORT: '0',
      HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
      HOLDFAST_LOG_LEVEL: 'info',
      TEMPORAL_ADDRESS: bed.temporalAddress,
    },
    /"port":(\d+)[^]*the worker is polling/,
  );
  try {
    return [
      ...(await measure(server, product, archives, env)),
      ...(await measureChanges(server, product)),
    ];
  } finally {
    await product.stop();
    await server.stop();
    await bed.stop();
  }
}

async function measure(
  server: Server,
  product: BenchProcess,
  archives: string,
  env: Record<string, string>,
): Promise<Result[]> {
  const call = api(product);
  const pid = product.child.pid ?? 0;
  const dump = path.join(server.folder, 'dump');
  const [ours, portable, theirs]: number[][] = [[], [], []];
  const idle = await watched(pid, () => new Promise((resolve) => setTimeout(resolve, 1_000)));
  let peak = 0;
  let archive = '';
  for (let round = 0; round < ROUNDS; round++) {
    theirs?.push(await took(() => server.tool('pg_dump', '-Fc', '-f', dump, server.url('source'))));
    peak = Math.max(
      peak,
      await watched(pid, async () => {
        ours?.push(
          await took(async () => {
            archive = String(
              (await call('POST', 'backup/create', { label: `round ${round}` })).archive,
            );
          }),
        );
      }),
    );
    portable?.push(
      await took(() => call('POST', 'backup/create', { engine: 'portable', label: 'portable' })),
    );
  }
  const sizes = {
    ours: (await stat(path.join(archives, archive))).size,
    theirs: (await stat(dump)).size,
  };
  const [restored, pgRestored]: number[][] = [[], []];
  for (let round = 0; round < RESTORES; round++) {
    const empty = await makeDatabase(server, 'empty', false);
    pgRestored?.push(await took(() => server.tool('pg_restore', '-d', empty, dump)));
    const target = await makeDatabase(server, 'target', true);
    restored?.push(
      await took(() =>
        run(process.execPath, ['commands/archive.ts', 'restore', path.join(archives, archive)], {
          cwd: ROOT,
          env: { ...process.env, ...env, DATABASE_URL: target, HOLDFAST_LOG_LEVEL: 'silent' },
        }),
      ),
    );
  }
  const [made, dumped, back, pgBack] = [
    median(ours ?? []),
    median(theirs ?? []),
    median(restored ?? []),
    median(pgRestored ?? []),
  ];
  return [
    {
      measure: `backup of ${ROWS} addresses, from the request to the end: read, sealed, read again, median of ${ROUNDS}`,
      value: seconds(made),
      reference: `${seconds(dumped)} pg_dump -Fc`,
      ratio: `${(dumped / made).toFixed(2)} × as fast`,
      aim: '≥ 1.5 ×',
      met: dumped / made >= 1.5,
    },
    {
      measure: 'the same, engine portable',
      value: seconds(median(portable ?? [])),
      reference: `${seconds(dumped)} pg_dump -Fc`,
      ratio: `${(dumped / median(portable ?? [])).toFixed(2)} × as fast`,
      aim: '',
      met: true,
    },
    {
      measure: 'its archive',
      value: mib(sizes.ours),
      reference: `${mib(sizes.theirs)} pg_dump -Fc`,
      ratio: (sizes.ours / sizes.theirs).toFixed(2),
      aim: '',
      met: true,
    },
    {
      measure: 'memory (PSS) of the process above idle while backups are made, most',
      value: mib(peak - idle),
      reference: `${mib(idle)} idle`,
      ratio: '',
      aim: '≤ 200 MiB',
      met: peak - idle <= 200 * 2 ** 20,
    },
    {
      measure: `restore onto an empty database by the command, start of the command included, of ${RESTORES}`,
      value: seconds(back),
      reference: `${seconds(pgBack)} pg_restore`,
      ratio: `${(pgBack / back).toFixed(2)} × as fast`,
      aim: '≥ 1 ×',
      met: pgBack / back >= 1,
    },
  ];
}

/** Restores into an installation that runs, of which a part or all has changed. */
async function measureChanges(server: Server, product: BenchProcess): Promise<Result[]> {
  const call = api(product);
  const pid = product.child.pid ?? 0;
  const { id } = await call('POST', 'backup/create', { label: 'changes' });
  const idle = await watched(pid, () => new Promise((resolve) => setTimeout(resolve, 1_000)));
  const results: Result[] = [];
  for (const [what, sql] of [
    [
      'one address in a hundred was changed',
      "UPDATE ip_addresses SET description = 'changed' WHERE right(id, 2) = '00'",
    ],
    ['all addresses were deleted', 'DELETE FROM ip_addresses'],
  ] as const) {
    await server.sql('source', sql);
    let time = 0;
    const peak = await watched(pid, async () => {
      time = await took(async () => {
        const { jobId } = await call('POST', 'backup/restore', {
          backupId: id,
          safetyBackup: false,
        });
        for (let status = 'running'; status !== 'succeeded';) {
          const job = await call('GET', `jobs/${String(jobId)}`);
          if (job.status === 'failed') throw new Error(JSON.stringify(job.error));
          status = String(job.status);
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      });
    });
    results.push({
      measure: `restore into a running installation, ${what}, from the request to the end`,
      value: seconds(time),
      reference: '',
      ratio: '',
      aim: '',
      met: true,
    });
    results.push({
      measure: 'memory (PSS) of the process above idle meanwhile, most',
      value: mib(peak - idle),
      reference: `${mib(idle)} idle`,
      ratio: '',
      aim: '≤ 200 MiB',
      met: peak - idle <= 200 * 2 ** 20,
    });
  }
  return results;
}
