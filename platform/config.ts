import ipaddr from 'ipaddr.js';
import type { NamedKey } from './aesGcm.ts';
import { readBackups } from './backupConfig.ts';
import { reader, type Env, type Reader } from './envReader.ts';
import type { LogLevelName } from './log.ts';

export type Role = 'all' | 'api' | 'worker';

export type TemporalSettings = {
  address: string;
  namespace: string;
  apiKey: string | undefined;
  tls: {
    serverName?: string;
    serverRootCACertificate?: Buffer;
    clientCertPair?: { crt: Buffer; key: Buffer };
  } | null;
  /** AES-256 keys of the payload codec, the first one encrypts. */
  codecKeys: readonly NamedKey[];
};

export type Config = ReturnType<typeof readConfig>;

export class ConfigError extends Error {}

const LOG_LEVELS: readonly LogLevelName[] = [
  'silent',
  'fatal',
  'error',
  'warn',
  'info',
  'debug',
  'trace',
];

function databaseUrl(read: Reader): string {
  const value = read.required('DATABASE_URL');
  if (value !== '' && !/^postgres(ql)?:\/\//.test(value))
    read.bad('DATABASE_URL', 'must begin with postgres://');
  return value;
}

function keys(read: Reader, name: string): NamedKey[] {
  const entries = (read.text(name) ?? '').split(',').filter((entry) => entry.trim() !== '');
  const keys = entries.map((entry) => {
    const [id = '', encoded = ''] = entry.trim().split(':', 2);
    const key = Buffer.from(encoded, 'base64');
    if (!/^[A-Za-z0-9_-]{1,32}$/.test(id) || key.length !== 32) {
      // The value is a secret: say what is wrong without showing it.
      read.bad(
        name,
        'each entry must be id:key, the id of letters, digits, - and _, the key 32 bytes in base64',
      );
    }
    return { id, key };
  });
  // Sealed under one and opened with the other, every new secret would be lost.
  if (new Set(keys.map(({ id }) => id)).size < keys.length)
    read.bad(name, 'names two keys with one id');
  return keys;
}

/** The origin under which browsers and identity providers reach the API. */
function publicUrl(read: Reader): string | undefined {
  const value = read.text('HOLDFAST_PUBLIC_URL');
  if (value === undefined) return undefined;
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol) || url.href !== `${url.origin}/`) {
    read.bad(
      'HOLDFAST_PUBLIC_URL',
      'must be http or https with a host and nothing after it, such as https://holdfast.example.net',
    );
  }
  return url?.origin;
}

function temporalTls(read: Reader): TemporalSettings['tls'] {
  const enabled = read.flag('TEMPORAL_TLS', false);
  const ca = read.file('TEMPORAL_TLS_SERVER_CA_CERT_PATH');
  const crt = read.file('TEMPORAL_TLS_CLIENT_CERT_PATH');
  const key = read.file('TEMPORAL_TLS_CLIENT_KEY_PATH');
  const serverName = read.text('TEMPORAL_TLS_SERVER_NAME');
  if ((crt === undefined) !== (key === undefined)) {
    read.bad(
      'TEMPORAL_TLS_CLIENT_CERT_PATH',
      'and TEMPORAL_TLS_CLIENT_KEY_PATH must be given together',
    );
  }
  if (!enabled && !ca && !crt && !serverName) return null;
  return {
    ...(serverName && { serverName }),
    ...(ca && { serverRootCACertificate: ca }),
    ...(crt && key && { clientCertPair: { crt, key } }),
  };
}

function temporal(read: Reader): TemporalSettings {
  const apiKey = read.text('TEMPORAL_API_KEY');
  const tls = temporalTls(read);
  return {
    address: read.text('TEMPORAL_ADDRESS') ?? '127.0.0.1:7233',
    namespace: read.text('TEMPORAL_NAMESPACE') ?? 'default',
    apiKey,
    // An API key over plain text would be readable on the way.
    tls: tls ?? (apiKey ? {} : null),
    codecKeys: keys(read, 'HOLDFAST_TEMPORAL_CODEC_KEYS'),
  };
}

const MIN_PREFIX = { ipv4: 8, ipv6: 16 } as const;

function isTooWide(cidr: string): boolean {
  const [network, length] = ipaddr.parseCIDR(cidr);
  return length < MIN_PREFIX[network.kind()];
}

/**
 * What is needed to read archives where there is no server. Throws `ConfigError`.
 */
export function readArchiveConfig(env: Env) {
  const read = reader(env);
  const config = {
    masterKeys: keys(read, 'HOLDFAST_MASTER_KEYS'),
    outboundAllow: read.cidrs('HOLDFAST_OUTBOUND_ALLOW'),
    backups: readBackups(read),
  };
  if (read.problems.length > 0) throw unusable(read.problems);
  return config;
}

const unusable = (problems: readonly string[]) =>
  new ConfigError(`The configuration is not usable:\n${problems.map((p) => `  ${p}`).join('\n')}`);

/**
 * The configuration of one process, from environment variables (docs/configuration.md).
 * Throws `ConfigError`, which names every bad variable and never shows a secret.
 */
export function readConfig(env: Env) {
  const read = reader(env);
  const config = {
    role: read.oneOf<Role>('HOLDFAST_ROLE', ['all', 'api', 'worker'], 'all'),
    host: read.text('HOLDFAST_HOST') ?? '127.0.0.1',
    port: read.integer('HOLDFAST_PORT', 8080, [0, 65_535]),
    metricsPort: read.integer('HOLDFAST_METRICS_PORT', 0, [0, 65_535]),
    logLevel: read.oneOf<LogLevelName>('HOLDFAST_LOG_LEVEL', LOG_LEVELS, 'info'),
    databaseUrl: databaseUrl(read),
    databasePool: read.integer('HOLDFAST_DATABASE_POOL', 20, [2, 200]),
    statementTimeoutMs: read.integer('HOLDFAST_STATEMENT_TIMEOUT_MS', 15_000, [100, 600_000]),
    trustedGateways: read.cidrs('HOLDFAST_TRUSTED_GATEWAYS'),
    outboundAllow: read.cidrs('HOLDFAST_OUTBOUND_ALLOW'),
    requireIfMatch: read.flag('HOLDFAST_REQUIRE_IF_MATCH', false),
    publicUrl: publicUrl(read),
    masterKeys: keys(read, 'HOLDFAST_MASTER_KEYS'),
    accessTokenSeconds: read.integer('HOLDFAST_ACCESS_TOKEN_SECONDS', 900, [1, 86_400]),
    sessionIdleSeconds: read.integer('HOLDFAST_SESSION_IDLE_SECONDS', 28_800, [1, 31_536_000]),
    sessionMaxSeconds: read.integer('HOLDFAST_SESSION_MAX_SECONDS', 604_800, [1, 31_536_000]),
    stopGraceMs: read.integer('HOLDFAST_STOP_GRACE_MS', 10_000, [0, 600_000]),
    heartbeatMs: read.integer('HOLDFAST_HEARTBEAT_MS', 10_000, [500, 600_000]),
    reconcileSeconds: read.integer('HOLDFAST_RECONCILE_SECONDS', 60, [1, 86_400]),
    sweepSeconds: read.integer('HOLDFAST_SWEEP_SECONDS', 5, [1, 86_400]),
    dispatchGraceMs: read.integer('HOLDFAST_DISPATCH_GRACE_MS', 6_000, [100, 60_000]),
    maxInlineRuns: read.integer('HOLDFAST_MAX_INLINE_RUNS', 100, [1, 1_000]),
    maxActivityRuns: read.integer('HOLDFAST_MAX_ACTIVITY_RUNS', 100, [1, 1_000]),
    maxDeliveryRuns: read.integer('HOLDFAST_MAX_DELIVERY_RUNS', 500, [1, 5_000]),
    taskQueue: read.text('HOLDFAST_TASK_QUEUE') ?? 'holdfast',
    backups: readBackups(read),
    temporal: temporal(read),
  };
  // To trust half the internet is the same as to have no gateway at all.
  if (config.trustedGateways.filter((cidr) => ipaddr.isValidCIDR(cidr)).some(isTooWide)) {
    read.bad(
      'HOLDFAST_TRUSTED_GATEWAYS',
      `must not trust networks wider than /${MIN_PREFIX.ipv4} (IPv4) or /${MIN_PREFIX.ipv6} (IPv6)`,
    );
  }
  if (read.problems.length > 0) throw unusable(read.problems);
  const unknown = Object.keys(env).filter(
    (name) => name.startsWith('HOLDFAST_') && !read.known.has(name),
  );
  return { ...config, unknownVariables: unknown };
}
