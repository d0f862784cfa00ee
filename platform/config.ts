import ipaddr from 'ipaddr.js';
import { forEachQuota, MAX_QUOTA, QUOTAS, type QuotaValues } from '../domain/access/quotas.ts';
import {
  forEachPeriod,
  MAX_DAYS,
  PERIODS,
  type RetentionDays,
} from '../domain/retention/retention.ts';
import type { NamedKey } from './aesGcm.ts';
import { readAllowedNetwork } from './addressGuard.ts';
import { readBackupConfig } from './backupConfig.ts';
import { DEFAULT_PORT } from './defaultPort.ts';
import { createEnvReader, type Env, type EnvReader } from './envReader.ts';
import { readNetwork } from './network.ts';
import { readTracing } from './tracing/config.ts';
import { defaultInstance, LOG_LEVELS } from './log.ts';

export type ProcessRole = 'all' | 'api' | 'worker';

export type TemporalSettings = {
  address: string;
  namespace: string;
  apiKey: string | undefined;
  tls: {
    serverName?: string;
    serverRootCACertificate?: Buffer;
    clientCertPair?: { crt: Buffer; key: Buffer };
  } | null;
  /** AES-256 keys of the payload codec. The first one encrypts; all decrypt. */
  codecKeys: readonly NamedKey[];
};

export type Config = ReturnType<typeof readConfig>;

export class ConfigError extends Error {}

/**
 * True for a URL of which each part is what it was meant to be: an unescaped `/`, `?` or `#` in the password ends it,
 * and the rest, with the `@` before the host, is part of what follows.
 */
function isDatabaseUrl(value: string): boolean {
  // Without a host, as for a socket, the driver accepts a user, too.
  const url = URL.parse(value.replace('@/', '@localhost/'));
  if (!url) return false;
  const afterHost = url.pathname === '' ? url.search : url.pathname;
  return url.hash === '' && !afterHost.includes('@');
}

function readDatabaseUrl(read: EnvReader): string {
  const value = read.required('DATABASE_URL');
  if (value === '') return value;
  // The password is a secret, so the message shows no part of the value.
  if (!/^postgres(ql)?:\/\//.test(value))
    read.addProblem('DATABASE_URL', 'must start with postgres://');
  else if (!isDatabaseUrl(value))
    read.addProblem(
      'DATABASE_URL',
      'must be postgres://user:password@host:port/name; in the parts, write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25',
    );
  return value;
}

function readKeys(read: EnvReader, name: string): NamedKey[] {
  const entries = (read.text(name) ?? '').split(',').filter((entry) => entry.trim() !== '');
  const keys = entries.map((entry) => {
    const [id = '', encoded = ''] = entry.trim().split(':', 2);
    const key = Buffer.from(encoded, 'base64');
    if (!/^[A-Za-z0-9_-]{1,32}$/.test(id) || key.length !== 32) {
      // The value is a secret, so the message does not show it.
      read.addProblem(
        name,
        'each entry must be id:key, the id made of letters, digits, - and _, the key 32 bytes in base64',
      );
    }
    return { id, key };
  });
  // Secrets are encrypted with one of the two and decrypted with the other, which fails.
  if (new Set(keys.map(({ id }) => id)).size < keys.length)
    read.addProblem(name, 'has two keys with the same id');
  return keys;
}

/** Reads the hosts, as URLs have them, under which gateways send identity headers. */
function readGatewayHosts(read: EnvReader): string[] {
  const name = 'HOLDFAST_GATEWAY_HOSTS';
  return read.texts(name).map((text) => {
    const host = URL.parse(`http://${text}`);
    if (host?.host !== host?.hostname || host?.href !== `http://${host?.hostname}/`)
      read.addProblem(
        name,
        'must be host names or addresses without ports, such as localhost, [::1]',
      );
    return host?.hostname ?? text;
  });
}

const MIN_METRICS_TOKEN_LENGTH = 16;

/** Reads the token with which monitoring reads the metrics. */
function readMetricsToken(read: EnvReader): string | undefined {
  const value = read.text('HOLDFAST_METRICS_TOKEN');
  // The value is a secret, so the message does not show it.
  if (value !== undefined && !/^[\x21-\x7e]{16,512}$/.test(value))
    read.addProblem(
      'HOLDFAST_METRICS_TOKEN',
      `must be ${MIN_METRICS_TOKEN_LENGTH} to 512 printable ASCII characters without spaces`,
    );
  return value;
}

function readTemporalTls(read: EnvReader): TemporalSettings['tls'] {
  const enabled = read.flag('TEMPORAL_TLS', false);
  const ca = read.file('TEMPORAL_TLS_SERVER_CA_CERT_PATH');
  const crt = read.file('TEMPORAL_TLS_CLIENT_CERT_PATH');
  const key = read.file('TEMPORAL_TLS_CLIENT_KEY_PATH');
  const serverName = read.text('TEMPORAL_TLS_SERVER_NAME');
  if ((crt === undefined) !== (key === undefined)) {
    read.addProblem(
      'TEMPORAL_TLS_CLIENT_CERT_PATH',
      'requires TEMPORAL_TLS_CLIENT_KEY_PATH, and vice versa',
    );
  }
  if (!enabled && !ca && !crt && !serverName) return null;
  return {
    ...(serverName && { serverName }),
    ...(ca && { serverRootCACertificate: ca }),
    ...(crt && key && { clientCertPair: { crt, key } }),
  };
}

export function readTemporal(read: EnvReader): TemporalSettings {
  const apiKey = read.text('TEMPORAL_API_KEY');
  const tls = readTemporalTls(read);
  return {
    address: read.text('TEMPORAL_ADDRESS') ?? '127.0.0.1:7233',
    namespace: read.text('TEMPORAL_NAMESPACE') ?? 'default',
    apiKey,
    // An API key is never sent without encryption.
    tls: tls ?? (apiKey ? {} : null),
    codecKeys: readKeys(read, 'HOLDFAST_TEMPORAL_CODEC_KEYS'),
  };
}

/** The database, and how many connections the installation needs there. */
const readDatabase = (read: EnvReader) => ({
  databaseUrl: readDatabaseUrl(read),
  databasePool: read.integer('HOLDFAST_DATABASE_POOL', 20, [2, 200]),
  databaseWaitMs: read.integer('HOLDFAST_DATABASE_WAIT_MS', 5_000, [100, 60_000]),
  /** Processes of the installation, as the operator has said; 0: not said. */
  processes: read.integer('HOLDFAST_PROCESSES', 0, [0, 1_000]),
  otherConnections: read.integer('HOLDFAST_DATABASE_OTHER_CONNECTIONS', 10, [0, 10_000]),
});

/** How many jobs may wait. */
const readQueueLimits = (read: EnvReader) => ({
  all: read.integer('HOLDFAST_QUEUE_LIMIT', 20_000, [1, 1_000_000]),
  tenant: read.integer('HOLDFAST_QUEUE_LIMIT_TENANT', 5_000, [1, 1_000_000]),
});

/** Reads the name of the process in its log lines. */
export function readInstance(read: EnvReader): string {
  const value = read.text('HOLDFAST_INSTANCE') ?? defaultInstance();
  if (!/^[\x21-\x7e]{1,128}$/.test(value))
    read.addProblem('HOLDFAST_INSTANCE', 'must be 1 to 128 visible ASCII characters');
  return value;
}

export const readLogLevel = (read: EnvReader) =>
  read.oneOf('HOLDFAST_LOG_LEVEL', LOG_LEVELS, 'info');

/** What a process shows of itself. */
const readMonitoring = (read: EnvReader) => ({
  instance: readInstance(read),
  metricsPort: read.integer('HOLDFAST_METRICS_PORT', 0, [0, 65_535]),
  metricsToken: readMetricsToken(read),
  logLevel: readLogLevel(read),
  tracing: readTracing(read),
});

/** A version of the workers of this installation: the name of their deployment in Temporal, and a build id. */
export type Deployment = { name: string; buildId: string };

const DEPLOYMENT_TEXT = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$/;

/** Reads the task queue and the version of the worker; without a build id Temporal knows nothing of versions. */
function readDeployment(read: EnvReader) {
  const taskQueue = read.text('HOLDFAST_TASK_QUEUE') ?? 'holdfast';
  const name = read.text('HOLDFAST_DEPLOYMENT') ?? taskQueue;
  const buildId = read.text('HOLDFAST_BUILD_ID');
  for (const [variable, value] of [
    ['HOLDFAST_DEPLOYMENT', name],
    ['HOLDFAST_BUILD_ID', buildId],
  ] as const)
    if (value !== undefined && !DEPLOYMENT_TEXT.test(value))
      read.addProblem(variable, 'must be 1 to 100 letters, digits, -, _ and dots');
  return {
    taskQueue,
    deploymentName: name,
    deployment: buildId === undefined ? undefined : ({ name, buildId } satisfies Deployment),
  };
}

/** How many attempts a worker makes concurrently. */
const readMaxRuns = (read: EnvReader) => ({
  maxInlineRuns: read.integer('HOLDFAST_MAX_INLINE_RUNS', 100, [1, 1_000]),
  maxActivityRuns: read.integer('HOLDFAST_MAX_ACTIVITY_RUNS', 100, [1, 1_000]),
  maxDeliveryRuns: read.integer('HOLDFAST_MAX_DELIVERY_RUNS', 500, [1, 5_000]),
});

/** The name of a setting as variables have it: `JOB_LOGS` for `jobLogs`. */
const inWords = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();

/** Reads the default limits of what a tenant may own: `HOLDFAST_QUOTA_UNFINISHED_JOBS`, … */
const readQuotas = (read: EnvReader): QuotaValues =>
  forEachQuota((name) => {
    return read.integer(`HOLDFAST_QUOTA_${inWords(name)}`, QUOTAS[name].fallback, [0, MAX_QUOTA]);
  });

/** Reads how long records are kept by default: `HOLDFAST_RETENTION_JOB_LOGS_DAYS`, …; 0: for ever. */
const readRetention = (read: EnvReader): RetentionDays =>
  forEachPeriod((period) => {
    const name = `HOLDFAST_RETENTION_${inWords(period)}_DAYS`;
    const days = read.integer(name, PERIODS[period].fallbackDays, [0, MAX_DAYS]);
    return days === 0 ? null : days;
  });

const MIN_TRUSTED_PREFIX = { ipv4: 8, ipv6: 16 } as const;

function isTooWide(cidr: string): boolean {
  const [network, length] = ipaddr.parseCIDR(cidr);
  return length < MIN_TRUSTED_PREFIX[network.kind()];
}

/**
 * Reads the configuration that commands need to read archives without a database. Error:
 * `ConfigError`.
 */
export function readArchiveConfig(env: Env) {
  const read = createEnvReader(env);
  const config = {
    masterKeys: readKeys(read, 'HOLDFAST_MASTER_KEYS'),
    outboundAllow: read.networks('HOLDFAST_OUTBOUND_ALLOW', readAllowedNetwork),
    backups: readBackupConfig(read),
  };
  if (read.problems.length > 0) throw configError(read.problems);
  return config;
}

/** Reads the configuration of commands that use nothing but the database. Error: `ConfigError`. */
export function readDatabaseConfig(env: Env) {
  const read = createEnvReader(env);
  const config = { databaseUrl: readDatabaseUrl(read), logLevel: readLogLevel(read) };
  if (read.problems.length > 0) throw configError(read.problems);
  return config;
}

/** The error that names the problems of a configuration. */
export const configError = (problems: readonly string[]) =>
  new ConfigError(`Invalid configuration:\n${problems.map((p) => `  ${p}`).join('\n')}`);

/**
 * Reads the configuration of a process from environment variables (docs/configuration.md).
 * Error: `ConfigError`, which names every invalid variable and never shows a secret.
 */
export function readConfig(env: Env) {
  const read = createEnvReader(env);
  const config = {
    role: read.oneOf<ProcessRole>('HOLDFAST_ROLE', ['all', 'api', 'worker'], 'all'),
    host: read.text('HOLDFAST_HOST') ?? '127.0.0.1',
    port: read.integer('HOLDFAST_PORT', DEFAULT_PORT, [0, 65_535]),
    ...readMonitoring(read),
    ...readDatabase(read),
    statementTimeoutMs: read.integer('HOLDFAST_STATEMENT_TIMEOUT_MS', 15_000, [100, 600_000]),
    questionTimeoutMs: read.integer('HOLDFAST_QUESTION_TIMEOUT_MS', 10_000, [100, 600_000]),
    searchTimeoutMs: read.integer('HOLDFAST_SEARCH_TIMEOUT_MS', 300, [50, 60_000]),
    trustedGateways: read.networks('HOLDFAST_TRUSTED_GATEWAYS', readNetwork),
    gatewayHosts: readGatewayHosts(read),
    outboundAllow: read.networks('HOLDFAST_OUTBOUND_ALLOW', readAllowedNetwork),
    strangerBudget: read.integer('HOLDFAST_STRANGER_BUDGET', 600, [20, 1_000_000]),
    readBudgetMs: read.integer('HOLDFAST_READ_BUDGET_MS', 500, [10, 1_000_000]),
    requireIfMatch: read.flag('HOLDFAST_REQUIRE_IF_MATCH', false),
    // Under which browsers and identity providers reach the API.
    publicUrl: read.origin('HOLDFAST_PUBLIC_URL', 'https://holdfast.example.net'),
    // The address of the Temporal Web UI, to which pages link.
    temporalUiUrl: read.url(
      'HOLDFAST_TEMPORAL_UI_URL',
      'must be an http or https URL without user name, query and fragment',
    ),
    masterKeys: readKeys(read, 'HOLDFAST_MASTER_KEYS'),
    accessTokenSeconds: read.integer('HOLDFAST_ACCESS_TOKEN_SECONDS', 900, [1, 86_400]),
    refreshLeewaySeconds: read.integer('HOLDFAST_REFRESH_LEEWAY_SECONDS', 20, [0, 300]),
    sessionIdleSeconds: read.integer('HOLDFAST_SESSION_IDLE_SECONDS', 28_800, [1, 31_536_000]),
    sessionMaxSeconds: read.integer('HOLDFAST_SESSION_MAX_SECONDS', 604_800, [1, 31_536_000]),
    tokenMaxDays: read.integer('HOLDFAST_TOKEN_MAX_DAYS', 366, [1, 3_660]),
    tokenRequestsPerMinute: read.integer(
      'HOLDFAST_TOKEN_REQUESTS_PER_MINUTE',
      6_000,
      [1, 1_000_000],
    ),
    keepAliveMs: read.integer('HOLDFAST_KEEP_ALIVE_MS', 65_000, [1_000, 7_200_000]),
    stopDelayMs: read.integer('HOLDFAST_STOP_DELAY_MS', 5_000, [0, 120_000]),
    stopGraceMs: read.integer('HOLDFAST_STOP_GRACE_MS', 10_000, [0, 600_000]),
    heartbeatMs: read.integer('HOLDFAST_HEARTBEAT_MS', 10_000, [500, 600_000]),
    reconcileSeconds: read.integer('HOLDFAST_RECONCILE_SECONDS', 60, [1, 86_400]),
    catchUpSeconds: read.integer('HOLDFAST_CATCH_UP_SECONDS', 5, [1, 86_400]),
    dispatchGraceMs: read.integer('HOLDFAST_DISPATCH_GRACE_MS', 6_000, [100, 60_000]),
    ...readMaxRuns(read),
    queueLimits: readQueueLimits(read),
    maxEventStreams: read.integer('HOLDFAST_MAX_EVENT_STREAMS', 500, [10, 4_000]),
    tenantSharePercent: read.integer('HOLDFAST_TENANT_SHARE_PERCENT', 50, [1, 100]),
    ...readDeployment(read),
    jobTypeModules: read.texts('HOLDFAST_JOB_TYPES'),
    quotas: readQuotas(read),
    retention: readRetention(read),
    backups: readBackupConfig(read),
    temporal: readTemporal(read),
  };
  // Trusting such a network would let most clients forge identity headers.
  if (config.trustedGateways.some(isTooWide)) {
    read.addProblem(
      'HOLDFAST_TRUSTED_GATEWAYS',
      `must not trust networks wider than /${MIN_TRUSTED_PREFIX.ipv4} (IPv4) or /${MIN_TRUSTED_PREFIX.ipv6} (IPv6)`,
    );
  }
  if (read.problems.length > 0) throw configError(read.problems);
  return { ...config, unknownVariables: read.unknownVariables(/^HOLDFAST_(?!RUNNER_)/) };
}

/** Variables of what listens. Kubernetes sets some of them in pods: for a Service `holdfast`, `HOLDFAST_PORT=tcp://…`. */
const OF_LISTENERS = /^HOLDFAST_(HOST|(METRICS_)?PORT)$/;

/** Reads the configuration of a command as that of a process that does not listen. Error: `ConfigError`. */
export const readCommandConfig = (env: Env) =>
  readConfig(Object.fromEntries(Object.entries(env).filter(([name]) => !OF_LISTENERS.test(name))));
