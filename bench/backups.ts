import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { access, chmod, chown, mkdir, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { openDatabase } from '../db/core/knex.ts';
import { migrateUp } from '../db/core/migrate.ts';
import { freePort } from '../dev/freePort.ts';
import { createLog } from '../platform/log.ts';
import { ROOT, startBenchEnvironment, startProgram, type BenchProcess } from './fixture.ts';
import { median, type BenchResult } from './report.ts';

const run = promisify(execFile);

/** Server and client must have the same version: pg_dump rejects newer servers. */
const BIN = '/usr/lib/postgresql/15/bin';
const ROWS = Number(process.env.HOLDFAST_BENCH_ADDRESSES ?? 1_000_000);
const ROUNDS = 3;
/** A restore takes minutes, mostly for indexes. */
const RESTORES = 2;
const KEYS = `bench:${Buffer.alloc(32, 5).toString('base64')}`;

const seconds = (value: number) => `${value.toFixed(1)} s`;
const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;

const CLIENT_OUTPUT = { maxBuffer: 1 << 26 };

/** Runs a program of PostgreSQL as the account postgres. */
const runAsPostgres = (program: string, ...args: string[]) =>
  run('runuser', ['-u', 'postgres', '--', path.join(BIN, program), ...args], {
    ...CLIENT_OUTPUT,
    cwd: '/',
  });

/** Starts Debian's PostgreSQL on a temporary folder, as the account postgres. */
async function startDebianPostgres() {
  await access(`${BIN}/postgres`).catch(() => {
    throw new Error("This benchmark needs Debian's PostgreSQL 15: apt-get install postgresql-15");
  });
  const folder = await initialiseCluster();
  const port = await freePort(0);
  const server = spawnServer(folder, port);
  await waitUntilReady(port);
  const url = (name: string) => `postgres://postgres@127.0.0.1:${port}/${name}`;
  return {
    folder,
    url,
    tool: (program: string, ...args: string[]) => run(path.join(BIN, program), args, CLIENT_OUTPUT),
    async sql(name: string, ...statements: string[]) {
      const client = new pg.Client({ connectionString: url(name) });
      await client.connect();
      for (const statement of statements) await client.query(statement);
      await client.end();
    },
    async stop() {
      await runAsPostgres('pg_ctl', '-D', `${folder}/data`, 'stop', '-m', 'fast');
      server.unref();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Creates a database cluster in the folder `data` of a temporary folder, which it returns. */
async function initialiseCluster(): Promise<string> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'holdfast-bench-pg-'));
  const { stdout } = await run('id', ['-u', 'postgres']);
  await chown(folder, Number(stdout), -1);
  await chmod(folder, 0o711);
  const options = ['-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8'];
  await runAsPostgres('initdb', '-D', `${folder}/data`, ...options);
  return folder;
}

function spawnServer(folder: string, port: number): ChildProcess {
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    'shared_buffers=512MB',
    'max_wal_size=4GB',
  ].flatMap((setting) => ['-c', setting]);
  const server = [`${BIN}/postgres`, '-D', `${folder}/data`, '-p', String(port), ...settings];
  return spawn('runuser', ['-u', 'postgres', '--', ...server], { stdio: 'ignore', cwd: '/' });
}

async function waitUntilReady(port: number): Promise<void> {
  const isReady = () =>
    run(`${BIN}/pg_isready`, ['-h', '127.0.0.1', '-p', String(port)]).then(
      () => true,
      () => false,
    );
  for (let tries = 0; tries < 100 && !(await isReady()); tries++)
    await new Promise((resolve) => setTimeout(resolve, 100));
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

const measureSeconds = async (work: () => Promise<unknown>): Promise<number> => {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1_000;
};

/** Returns the peak memory (PSS) of a process while `work` runs, sampled every 100 ms. */
async function peakMemory(pid: number, work: () => Promise<unknown>): Promise<number> {
  const pss = async () =>
    Number(/^Pss:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) *
    1_024;
  let peak = 0;
  let running = true;
  const watch = (async () => {
    while (running) {
      peak = Math.max(peak, await pss());
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  await work();
  running = false;
  await watch;
  return peak;
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

/** Backup and restore of a million addresses, compared with pg_dump and pg_restore. */
export async function bench(): Promise<BenchResult[]> {
  const [environment, server] = [await startBenchEnvironment(), await startDebianPostgres()];
  const archives = path.join(server.folder, 'archives');
  await mkdir(archives);
  const source = await makeDatabase(server, 'source', true);
  await server.sql('source', ...FILL);
  const env = { DATABASE_URL: source, HOLDFAST_MASTER_KEYS: KEYS, HOLDFAST_BACKUP_DIR: archives };
  const product = await startProgram(
    ['processes/main.ts'],
    {
      ...env,
      HOLDFAST_PORT: '0',
      HOLDFAST_TRUSTED_GATEWAYS: '127.0.0.0/8',
      HOLDFAST_LOG_LEVEL: 'info',
      TEMPORAL_ADDRESS: environment.temporalAddress,
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
    await environment.stop();
  }
}

async function measure(
  server: Server,
  product: BenchProcess,
  archives: string,
  env: Record<string, string>,
): Promise<BenchResult[]> {
  const dump = path.join(server.folder, 'dump');
  const backups = await measureBackups(server, product, dump);
  const archive = path.join(archives, backups.archive);
  const sizes = { ours: (await stat(archive)).size, theirs: (await stat(dump)).size };
  const restores = await measureRestores(server, archive, dump, env);
  return [...backupResults(backups, sizes), restoreResult(restores)];
}

type BackupMeasures = {
  /** Durations in seconds. */
  ours: number[];
  portable: number[];
  pgDump: number[];
  /** Memory of the process in bytes. */
  idle: number;
  peak: number;
  /** File name of the last archive. */
  archive: string;
};

async function measureBackups(
  server: Server,
  product: BenchProcess,
  dump: string,
): Promise<BackupMeasures> {
  const call = api(product);
  const pid = product.child.pid ?? 0;
  // A process in service has run other jobs; the first one loads code.
  await call('POST', 'jobs', { type: 'core.echo', payload: { message: 'first' } });
  const idle = await peakMemory(pid, () => new Promise((resolve) => setTimeout(resolve, 1_000)));
  const measures: BackupMeasures = {
    ours: [],
    portable: [],
    pgDump: [],
    idle,
    peak: 0,
    archive: '',
  };
  for (let round = 0; round < ROUNDS; round++) {
    measures.pgDump.push(
      await measureSeconds(() => server.tool('pg_dump', '-Fc', '-f', dump, server.url('source'))),
    );
    const backUp = async () => {
      const backup = await call('POST', 'backup/create', { label: `round ${round}` });
      measures.archive = String(backup.archive);
    };
    const peak = await peakMemory(
      pid,
      async () => void measures.ours.push(await measureSeconds(backUp)),
    );
    measures.peak = Math.max(measures.peak, peak);
    measures.portable.push(
      await measureSeconds(() =>
        call('POST', 'backup/create', { engine: 'portable', label: 'portable' }),
      ),
    );
  }
  return measures;
}

/** Durations in seconds. */
type RestoreMeasures = { ours: number[]; pgRestore: number[] };

async function measureRestores(
  server: Server,
  archive: string,
  dump: string,
  env: Record<string, string>,
): Promise<RestoreMeasures> {
  const measures: RestoreMeasures = { ours: [], pgRestore: [] };
  for (let round = 0; round < RESTORES; round++) {
    const empty = await makeDatabase(server, 'empty', false);
    measures.pgRestore.push(
      await measureSeconds(() => server.tool('pg_restore', '-d', empty, dump)),
    );
    const target = await makeDatabase(server, 'target', true);
    const restore = () =>
      run(process.execPath, ['processes/cli/archive.ts', 'restore', archive], {
        cwd: ROOT,
        env: { ...process.env, ...env, DATABASE_URL: target, HOLDFAST_LOG_LEVEL: 'silent' },
      });
    measures.ours.push(await measureSeconds(restore));
  }
  return measures;
}

function backupResults(
  { ours, portable, pgDump, idle, peak }: BackupMeasures,
  sizes: { ours: number; theirs: number },
): BenchResult[] {
  const [made, dumped] = [median(ours), median(pgDump)];
  return [
    {
      measure: `backup of ${ROWS} addresses, including encryption and verification, median of ${ROUNDS}`,
      value: seconds(made),
      reference: `${seconds(dumped)} pg_dump -Fc`,
      ratio: `${(dumped / made).toFixed(2)} × speed`,
      target: '≥ 1.5 ×',
      met: dumped / made >= 1.5,
    },
    {
      measure: 'the same, engine portable',
      value: seconds(median(portable)),
      reference: `${seconds(dumped)} pg_dump -Fc`,
      ratio: `${(dumped / median(portable)).toFixed(2)} × speed`,
      target: '',
      met: true,
    },
    {
      measure: 'its archive',
      value: mib(sizes.ours),
      reference: `${mib(sizes.theirs)} pg_dump -Fc`,
      ratio: (sizes.ours / sizes.theirs).toFixed(2),
      target: '',
      met: true,
    },
    {
      measure: 'peak memory (PSS) above idle of the process during backups',
      value: mib(peak - idle),
      reference: `${mib(idle)} idle`,
      ratio: '',
      target: '≤ 200 MiB',
      met: peak - idle <= 200 * 2 ** 20,
    },
  ];
}

function restoreResult({ ours, pgRestore }: RestoreMeasures): BenchResult {
  const [back, pgBack] = [median(ours), median(pgRestore)];
  return {
    measure: `restore to an empty database with the command, including its start, of ${RESTORES}`,
    value: seconds(back),
    reference: `${seconds(pgBack)} pg_restore, one job`,
    ratio: `${(pgBack / back).toFixed(2)} × speed`,
    target: '≥ 1.2 ×',
    met: pgBack / back >= 1.2,
  };
}

/** Restores to a running installation, after some or all records have changed. */
async function measureChanges(server: Server, product: BenchProcess): Promise<BenchResult[]> {
  const call = api(product);
  const pid = product.child.pid ?? 0;
  const { id } = await call('POST', 'backup/create', { label: 'changes' });
  const idle = await peakMemory(pid, () => new Promise((resolve) => setTimeout(resolve, 1_000)));
  const results: BenchResult[] = [];
  for (const [what, sql] of [
    [
      '1 % of the addresses were changed',
      "UPDATE ip_addresses SET description = 'changed' WHERE right(id, 2) = '00'",
    ],
    ['all addresses were deleted', 'DELETE FROM ip_addresses'],
  ] as const) {
    await server.sql('source', sql);
    let time = 0;
    const peak = await peakMemory(pid, async () => {
      time = await measureSeconds(async () => {
        const { jobId } = await call('POST', 'backup/restore', {
          backupId: id,
          preRestoreBackup: false,
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
      measure: `restore to a running installation after ${what}`,
      value: seconds(time),
      reference: '',
      ratio: '',
      target: '',
      met: true,
    });
    results.push({
      measure: 'peak memory (PSS) above idle of the process during this restore',
      value: mib(peak - idle),
      reference: `${mib(idle)} idle`,
      ratio: '',
      target: '≤ 200 MiB',
      met: peak - idle <= 200 * 2 ** 20,
    });
  }
  return results;
}
