import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { startChild, type Child } from '../dev/child.ts';
import { PLATFORM } from '../domain/access/scope.ts';
import { statusOf } from '../domain/auth/tokens.ts';
import { systemCaller } from '../domain/shared/caller.ts';
import { DAY_MS } from '../domain/shared/durations.ts';
import { ignoreConflict } from '../domain/shared/errors.ts';
import { pageOf } from '../domain/shared/lists.ts';
import type { Composition } from './composition/index.ts';

const POOL = 'default';
const ACCOUNT = 'local-runner';
const EXAMPLES = path.resolve(import.meta.dirname, '../examples/job-types');
const COMPILE_CACHE = path.resolve(import.meta.dirname, 'compileCache.js');
const MAIN = path.resolve(import.meta.dirname, 'main.ts');

/** A token is replaced this long before it expires. */
const RENEW_BEFORE_MS = 30 * DAY_MS;
const STOP_LIMIT_MS = 45_000;

/** Variables of `npm start` that its runner gets, too. All others are its own. */
const PASSED_ON = [
  'PATH',
  'HOME',
  'LANG',
  'TZ',
  'HOLDFAST_LOG_LEVEL',
  'HOLDFAST_STOP_GRACE_MS',
  'HOLDFAST_TEMPORAL_CODEC_KEYS',
  'HOLDFAST_RUNNER_SLOTS',
  'HOLDFAST_RUNNER_SECRETS',
  'HOLDFAST_RUNNER_WRAPPER',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_TRACES_SAMPLER',
  'OTEL_TRACES_SAMPLER_ARG',
  'TEMPORAL_NAMESPACE',
  'TEMPORAL_API_KEY',
  'TEMPORAL_TLS',
  'TEMPORAL_TLS_SERVER_NAME',
  'TEMPORAL_TLS_SERVER_CA_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_CERT_PATH',
  'TEMPORAL_TLS_CLIENT_KEY_PATH',
];

type LocalRunner = Pick<Child, 'ended'> & { logFile: string; stop(): Promise<void> };

const caller = systemCaller(PLATFORM, 'npm-start');

/** Creates the pool of this machine, if there is none. It accepts what its folders declare. */
async function ensurePool({ pools }: Composition): Promise<void> {
  const fields = { description: 'The runner of npm start', acceptTypes: ['*'] };
  await pools.create(caller, POOL, fields).catch(ignoreConflict);
}

async function findOrCreateAccount({ serviceAccounts }: Composition): Promise<string> {
  const { items } = await serviceAccounts.list(caller, { name: ACCOUNT }, pageOf(1));
  const [known] = items;
  const account = known ?? (await serviceAccounts.create(caller, { name: ACCOUNT }));
  return account.id;
}

type SavedToken = { id: string; secret: string };

/** The saved token, if it can still be used. */
async function readToken(
  { apiTokens }: Composition,
  file: string,
): Promise<SavedToken | undefined> {
  try {
    const saved = JSON.parse(await readFile(`${file}.json`, 'utf8')) as SavedToken;
    const token = await apiTokens.find(caller, saved.id);
    const isLasting = token.expiresAt.getTime() - Date.now() > RENEW_BEFORE_MS;
    return statusOf(token, new Date()) === 'active' && isLasting ? saved : undefined;
  } catch {
    return undefined;
  }
}

/** Writes the token of the runner to a file that only this user can read. */
async function prepareToken(deps: Composition, file: string): Promise<void> {
  const saved = await readToken(deps, file);
  if (saved) return;
  const account = await findOrCreateAccount(deps);
  const { token, secret } = await deps.apiTokens.createForService(caller, account, {
    name: 'npm start',
    pools: [POOL],
  });
  const options = { mode: 0o600 };
  await writeFile(file, secret, options);
  await writeFile(`${file}.json`, JSON.stringify({ id: token.id, secret }), options);
}

/** The environment of the runner: nothing that opens the database, and no master key. */
export function runnerEnvironment(
  env: NodeJS.ProcessEnv,
  { folder, base, temporalAddress }: { folder: string; base: string; temporalAddress: string },
): Record<string, string> {
  const passedOn = PASSED_ON.flatMap((name) => {
    const value = env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(passedOn),
    HOLDFAST_ROLE: 'runner',
    HOLDFAST_URL: base,
    HOLDFAST_RUNNER_TOKEN_FILE: path.join(folder, 'runner.token'),
    HOLDFAST_RUNNER_POOL: POOL,
    HOLDFAST_RUNNER_TYPES: `${path.join(folder, 'job-types')},${EXAMPLES}`,
    HOLDFAST_RUNNER_FOLDER: path.join(folder, 'runs'),
    TEMPORAL_ADDRESS: temporalAddress,
  };
}

/**
 * Starts a runner as a second process, over `job-types/` of the data folder and the examples. Errors: its
 * token cannot be made; it cannot be started.
 */
export async function startLocalRunner(
  deps: Composition,
  settings: { folder: string; base: string; temporalAddress: string },
  onSpawn: (pid: number) => Promise<void>,
): Promise<LocalRunner> {
  const { folder } = settings;
  await mkdir(path.join(folder, 'job-types'), { recursive: true });
  await ensurePool(deps);
  await prepareToken(deps, path.join(folder, 'runner.token'));
  const logFile = path.join(folder, 'runner.log');
  // The folder says whose runner it is, to those who list processes and to the next start.
  const limits = ['--max-semi-space-size=4', '--max-old-space-size=256'];
  const args = ['--import', COMPILE_CACHE, ...limits, MAIN, folder];
  const child = await startChild(process.execPath, args, {
    logFile,
    stopSignal: 'SIGTERM',
    onSpawn,
    options: { env: runnerEnvironment(process.env, settings), cwd: folder },
  });
  return { ended: child.ended, logFile, stop: () => child.stop(STOP_LIMIT_MS) };
}
