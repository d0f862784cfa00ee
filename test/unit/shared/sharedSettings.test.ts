import { expect, test } from '@jest/globals';
import { readConfig } from '../../../platform/config.ts';
import { digestSettings, type SharedSettings } from '../../../platform/sharedSettings.ts';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');

const digests = (env: Record<string, string> = {}, moduleTypes: string[] = []): SharedSettings =>
  digestSettings(
    readConfig({ DATABASE_URL: 'postgres://h/db', TEMPORAL_ADDRESS: 'h:7233', ...env }),
    moduleTypes,
  );

const CHANGES: Record<keyof SharedSettings, Record<string, string>[]> = {
  retention: [{ HOLDFAST_RETENTION_JOBS_DAYS: '5' }],
  quotas: [{ HOLDFAST_QUOTA_UNFINISHED_JOBS: '5' }],
  shares: [{ HOLDFAST_TENANT_SHARE_PERCENT: '5' }],
  temporal: [{ HOLDFAST_TASK_QUEUE: 'other' }, { TEMPORAL_NAMESPACE: 'other' }],
  codecKeys: [
    { HOLDFAST_TEMPORAL_CODEC_KEYS: `a:${key(1)}` },
    { HOLDFAST_TEMPORAL_CODEC_KEYS: `a:${key(2)}` },
  ],
  backups: [{ HOLDFAST_BACKUP_DIR: '/srv/backups' }],
  jobTypes: [],
};

test.each(Object.entries(CHANGES))('the digest of %s changes with its variables', (group, all) => {
  const own = digests();
  const others = [
    ...all.map((env) => digests(env)),
    ...(group === 'jobTypes' ? [digests({}, ['acme.x'])] : []),
  ];
  for (const other of others)
    expect(other).toEqual({
      ...own,
      [group]: expect.not.stringMatching(own[group as keyof SharedSettings]),
    });
  expect(new Set(others.map((other) => other[group as keyof SharedSettings])).size).toBe(
    others.length,
  );
});

test('digests do not depend on an order, nor on what may differ', () => {
  const codec = (ids: string[]) => ({
    HOLDFAST_TEMPORAL_CODEC_KEYS: ids.map((id) => `${id}:${key(id.charCodeAt(0))}`).join(','),
  });
  expect(digests(codec(['a', 'b']), ['x.a', 'x.b'])).toEqual(
    digests(codec(['b', 'a']), ['x.b', 'x.a']),
  );
  const allowed = {
    HOLDFAST_ROLE: 'worker',
    HOLDFAST_DATABASE_POOL: '7',
    HOLDFAST_BACKUP_S3_BUCKET: 'archives',
    HOLDFAST_BACKUP_S3_SECRET_ACCESS_KEY: 's',
  };
  const [one, other] = ['k1', 'k2'].map((id) =>
    digests({ ...allowed, HOLDFAST_BACKUP_S3_ACCESS_KEY_ID: id }),
  );
  expect(one).toEqual(other);
});
