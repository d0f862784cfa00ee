import { hash } from 'node:crypto';
import { sortedJson } from '../domain/shared/sortedJson.ts';
import type { NamedKey } from './aesGcm.ts';
import type { Config } from './config.ts';

/** Settings that all processes of an installation need alike, by group, and the variables that have them. */
export const SHARED_SETTINGS = {
  retention: 'HOLDFAST_RETENTION_…_DAYS',
  quotas: 'HOLDFAST_QUOTA_…',
  shares: 'HOLDFAST_TENANT_SHARE_PERCENT',
  temporal: 'HOLDFAST_TASK_QUEUE and TEMPORAL_NAMESPACE',
  codecKeys: 'HOLDFAST_TEMPORAL_CODEC_KEYS',
  backups: 'HOLDFAST_BACKUP_…',
  jobTypes: 'HOLDFAST_JOB_TYPES',
} as const;

export type SharedSettings = Readonly<Record<keyof typeof SHARED_SETTINGS, string>>;

type Shared = Pick<
  Config,
  'retention' | 'quotas' | 'tenantSharePercent' | 'taskQueue' | 'backups'
> & { temporal: Pick<Config['temporal'], 'namespace' | 'codecKeys'> };

const sha256 = (value: string | Buffer): string => hash('sha256', value, 'base64url');

const keyIds = (keys: readonly NamedKey[]): string[] =>
  keys.map(({ id, key }) => `${id} ${sha256(key)}`).sort();

/**
 * Digests of the settings that all processes need alike. `moduleTypes` are the names of the job types of modules:
 * the paths of the modules may differ from one machine to another.
 */
export function digestSettings(config: Shared, moduleTypes: readonly string[]): SharedSettings {
  const { retention, quotas, tenantSharePercent, taskQueue, temporal, backups } = config;
  const { bucket, prefix, endpoint } = backups.s3 ?? {};
  const values: Record<keyof SharedSettings, unknown> = {
    retention,
    quotas,
    shares: tenantSharePercent,
    temporal: [taskQueue, temporal.namespace],
    codecKeys: keyIds(temporal.codecKeys),
    backups: { store: backups.store, folder: backups.folder, bucket, prefix, endpoint },
    jobTypes: [...moduleTypes].sort(),
  };
  return Object.fromEntries(
    Object.entries(values).map(([group, value]) => [group, sha256(sortedJson(value)).slice(0, 16)]),
  ) as SharedSettings;
}
