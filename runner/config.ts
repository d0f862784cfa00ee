import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { POOL_NAME } from '../domain/runners/definition.ts';
import { errorMessage } from '../domain/shared/errorMessage.ts';
import { configError, readInstance, readLogLevel, readTemporal } from '../platform/config.ts';
import { createEnvReader, type Env, type EnvReader } from '../platform/envReader.ts';
import { readTracing } from '../platform/tracing/config.ts';
import { defaultWorkFolder } from './heartbeat.ts';

export type RunnerConfig = ReturnType<typeof readRunnerConfig>;

/** A runner executes what others have written: it must not have what opens the database. */
const FORBIDDEN = ['DATABASE_URL', 'HOLDFAST_MASTER_KEYS'];

/** The wrapper of commands as a JSON array of texts; empty if it is not set. Error: a phrase. */
export function readWrapper(value: string | undefined): string[] {
  if (value === undefined || value.trim() === '') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    parsed = undefined;
  }
  if (!Array.isArray(parsed) || !parsed.every((each) => typeof each === 'string' && each !== ''))
    throw new Error('HOLDFAST_RUNNER_WRAPPER must be a JSON array of texts, such as ["bwrap"]');
  return parsed as string[];
}

function readUrl(read: EnvReader): string {
  read.required('HOLDFAST_URL');
  const requirement =
    'must be the http or https URL of the API, such as https://holdfast.example.net';
  return read.url('HOLDFAST_URL', requirement) ?? '';
}

const TOKEN = /^hfw_[\x21-\x7e]{16,200}$/;

/** The token that a file has now; undefined if it cannot be read, or has none. */
export async function readTokenFile(file: string): Promise<string | undefined> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return TOKEN.test(text.trim()) ? text.trim() : undefined;
}

/** Reads the runner token, of which no message shows anything. */
function readToken(read: EnvReader): string {
  const [name, value] = readTokenText(read);
  if (value !== undefined && !TOKEN.test(value))
    read.addProblem(name, 'must be a runner token: hfw_…');
  if (value === undefined) read.addProblem(name, 'or HOLDFAST_RUNNER_TOKEN_FILE is required');
  return value ?? '';
}

function readTokenText(read: EnvReader): [name: string, value: string | undefined] {
  const name = 'HOLDFAST_RUNNER_TOKEN';
  const file = read.text(`${name}_FILE`);
  const value = read.text(name);
  if (file === undefined) return [name, value];
  if (value !== undefined) read.addProblem(name, `must not be set beside ${name}_FILE`);
  try {
    return [`${name}_FILE`, readFileSync(file, 'utf8').trim()];
  } catch (error) {
    const reason = errorMessage(error);
    read.addProblem(`${name}_FILE`, `cannot read the file (${reason})`);
    return [name, ''];
  }
}

const listOf = (value: string | undefined, separator: string | RegExp): string[] =>
  (value ?? '')
    .split(separator)
    .map((part) => part.trim())
    .filter((part) => part !== '');

function readPools(read: EnvReader): string[] {
  const pools = listOf(read.text('HOLDFAST_RUNNER_POOL') ?? 'default', ',');
  for (const pool of pools)
    if (!new RegExp(POOL_NAME).test(pool))
      read.addProblem('HOLDFAST_RUNNER_POOL', `"${pool}" is not the name of a pool`);
  return [...new Set(pools)];
}

function wrapperOf(read: EnvReader): string[] {
  try {
    return readWrapper(read.text('HOLDFAST_RUNNER_WRAPPER'));
  } catch {
    read.addProblem('HOLDFAST_RUNNER_WRAPPER', 'must be a JSON array of texts, such as ["bwrap"]');
    return [];
  }
}

/**
 * Reads the configuration of a runner from environment variables (docs/configuration.md). Error:
 * `ConfigError`, also if a variable is set that a runner must not have.
 */
export function readRunnerConfig(env: Env) {
  const read = createEnvReader(env);
  for (const name of FORBIDDEN)
    if (read.text(name) !== undefined)
      read.addProblem(name, 'must not be set for a runner: commands could read it');
  const config = {
    url: readUrl(read),
    token: readToken(read),
    tokenFile: read.text('HOLDFAST_RUNNER_TOKEN_FILE'),
    pools: readPools(read),
    typeFolders: listOf(read.text('HOLDFAST_RUNNER_TYPES') ?? '/etc/holdfast/job-types', ','),
    slots: read.integer('HOLDFAST_RUNNER_SLOTS', 10, [1, 1_000]),
    workFolder: path.resolve(read.text('HOLDFAST_RUNNER_FOLDER') ?? defaultWorkFolder()),
    secretsFolder: read.text('HOLDFAST_RUNNER_SECRETS'),
    wrapper: wrapperOf(read),
    instance: readInstance(read),
    tracing: readTracing(read),
    stopGraceMs: read.integer('HOLDFAST_STOP_GRACE_MS', 10_000, [0, 600_000]),
    logLevel: readLogLevel(read),
    temporal: readTemporal(read),
  };
  if (config.typeFolders.length === 0)
    read.addProblem('HOLDFAST_RUNNER_TYPES', 'must name at least one folder');
  if (read.problems.length > 0) throw configError(read.problems);
  return { ...config, unknownVariables: read.unknownVariables(/^HOLDFAST_RUNNER_/) };
}
