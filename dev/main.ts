import path from 'node:path';
import { startProcess } from '../api/process.ts';
import { stopOnSignals } from '../processes/shutdown.ts';
import { installRuntime } from '../composition.ts';
import { openDatabase } from '../db/core/knex.ts';
import { migrateUp } from '../db/core/migrate.ts';
import { ConfigError, readConfig } from '../platform/config.ts';
import { createLog } from '../platform/log.ts';
import { freePort } from './freePort.ts';
import { masterKeys } from './masterKeys.ts';
import { endLeftovers } from './orphanProcesses.ts';
import { FolderInUse, lockFolder } from './lock.ts';
import { createSay } from './say.ts';
import { dataFolder, notesIn, startStack } from './stack.ts';

const LOOPBACK = '127.0.0.0/8,::1/128';
const DEFAULT_PORT = 8_080;

/** `npm start`: PostgreSQL, Temporal, API and worker on this machine, in one command. */
async function main(): Promise<void> {
  const say = createSay();
  const began = Date.now();
  const folder = await dataFolder(path.resolve(process.env.HOLDFAST_DATA_DIR ?? '.holdfast'));
  let description = `Holdfast is starting on ${folder}.`;
  const lock = await lockFolder(folder, () => description);

  // Bad settings are told before anything is started.
  const settings = readConfig({ DATABASE_URL: 'postgres://unused', ...process.env });
  const log = createLog(settings.logLevel);
  // Until everything runs, stopping is ending whatever was started so far.
  let stop: () => Promise<unknown> = () => endLeftovers(notesIn(folder), folder);
  let stopping = false;
  stopOnSignals(log, async () => {
    stopping = true;
    description = `Holdfast is stopping on ${folder}.`;
    await stop();
  });

  const stack = await startStack({ folder, env: process.env, say });
  stop = stack.stop;
  void stack.broken.then(async (what) => {
    if (stopping) return;
    stopping = true;
    description = `Holdfast is stopping on ${folder}.`;
    say.line(`${what}. Stopping.`);
    await stop().finally(() => process.exit(1));
  });
  const port = process.env.HOLDFAST_PORT ? settings.port : await freePort(DEFAULT_PORT);
  const { HOLDFAST_DATA_DIR: _, ...env } = process.env;
  const config = readConfig({
    HOLDFAST_TRUSTED_GATEWAYS: LOOPBACK,
    HOLDFAST_OUTBOUND_ALLOW: LOOPBACK,
    HOLDFAST_MASTER_KEYS: await masterKeys(folder),
    HOLDFAST_BACKUP_DIR: path.join(folder, 'backups'),
    ...env,
    HOLDFAST_PORT: String(port),
    DATABASE_URL: stack.databaseUrl,
    TEMPORAL_ADDRESS: stack.temporalAddress,
  });
  installRuntime(log);
  const running = await Promise.resolve()
    .then(() => migrate(config.databaseUrl, log))
    .then(() => startProcess(config, log))
    .catch(async (error: unknown) => {
      stopping = true;
      await stack.stop();
      throw error;
    });
  stop = async () => {
    await running.stop();
    await stack.stop();
    await lock.release();
  };

  const base = `http://127.0.0.1:${running.port}`;
  description = `Holdfast already runs on ${folder}: ${base}/api`;
  await untilReady(running, say);
  const first = await running.deps.administrator.first();
  say.line(
    welcome({
      base,
      folder,
      temporalUi: stack.temporalUi,
      trusted: config.trustedGateways,
      first,
      seconds: (Date.now() - began) / 1_000,
    }),
  );
}

async function migrate(databaseUrl: string, log: ReturnType<typeof createLog>): Promise<void> {
  const db = openDatabase({ url: databaseUrl, poolSize: 3, statementTimeoutMs: 0, log });
  try {
    const names = await migrateUp(db);
    if (names.length > 0) log.info({ migrations: names }, 'schema brought up to date');
  } finally {
    await db.destroy();
  }
}

const READY_LIMIT_MS = 60_000;

/** Waits until every part is ready; says which is missing when that takes too long. */
async function untilReady(
  { deps }: Awaited<ReturnType<typeof startProcess>>,
  say: ReturnType<typeof createSay>,
) {
  const until = Date.now() + READY_LIMIT_MS;
  for (;;) {
    const report = await deps.readiness.report();
    if (report.status === 'ready') return;
    if (Date.now() > until)
      return void say.line(`Not everything is ready yet: ${JSON.stringify(report.parts)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

type Welcome = {
  base: string;
  folder: string;
  temporalUi: string | undefined;
  trusted: readonly string[];
  seconds: number;
  first: { username: string; oneTimePassword: string } | undefined;
};

const firstLogin = (first: Welcome['first']) =>
  first
    ? `
The first administrator is made. This is shown once:

  User name          ${first.username}
  One-time password  ${first.oneTimePassword}
`
    : '';

const welcome = ({ base, folder, temporalUi, trusted, seconds, first }: Welcome) => `
Holdfast is ready after ${seconds.toFixed(1)} s.

  API                ${base}/api
  API reference      ${base}/api/docs
  Temporal Web UI    ${temporalUi ?? 'where your Temporal server has it'}
  Data               ${folder}
${firstLogin(first)}
Identity headers are believed from ${trusted.join(' and ')}: whoever can reach this port from there can be anybody.
Ctrl-C stops everything; the data stays.
`;

main().catch((error: unknown) => {
  const expected = error instanceof ConfigError || error instanceof FolderInUse;
  process.stderr.write(
    `${error instanceof Error ? (expected ? error.message : `Holdfast cannot start: ${error.message}`) : String(error)}\n`,
  );
  process.exit(1);
});
