import { expect, test } from '@jest/globals';
import { Job } from '../../../db/models/Job.ts';
import type { RemoteJobType } from '../../../domain/jobs/jobType.ts';
import { concurrencyKey } from '../../../services/runners/concurrency.ts';

const ON_DEVICE = { target_site_id: 'sit_1', target_device_id: 'dev_1' };
const ON_SITE = { target_site_id: 'sit_1', target_device_id: null };
const WITHOUT = { target_site_id: null, target_device_id: null };

test.each([
  [undefined, ON_DEVICE, 'net.deploy'],
  ['type', ON_DEVICE, 'net.deploy'],
  ['tenant', ON_DEVICE, 'net.deploy/red'],
  ['tenant', WITHOUT, 'net.deploy/red'],
  ['target', ON_DEVICE, 'net.deploy/dev_1'],
  ['target', ON_SITE, 'net.deploy/sit_1'],
  ['target', WITHOUT, 'net.deploy/red'],
])('limited per %s, with the target %j, attempts count as %s', (per, target, key) => {
  const concurrency = { limit: 1, ...(per !== undefined && { per }) };
  const type = { name: 'net.deploy', definition: { concurrency } } as unknown as RemoteJobType;
  const job = Job.fromDatabaseJson({ id: 'job_1', tenant_id: 'red', ...target });
  expect(concurrencyKey(type, job)).toBe(key);
});

test('attempts of a type without a limit are not counted', () => {
  const type = { name: 'net.deploy', definition: {} } as unknown as RemoteJobType;
  const job = Job.fromDatabaseJson({ id: 'job_1', tenant_id: 'red', ...WITHOUT });
  expect(concurrencyKey(type, job)).toBeNull();
});
