import { expect, test } from '@jest/globals';
import knex from 'knex';
import { AppError } from '../../../domain/shared/errors.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { inventoryApply } from '../../../services/jobTypes/inventory/apply.ts';

/** Runs the job when its write fails with this error. */
function run(error: Error) {
  const type = inventoryApply({
    db: knex({ client: 'pg' }),
    writeUnaudited: () => Promise.reject(new Error('nothing is written')),
    approvedChanges: { apply: () => Promise.reject(error) },
  });
  if (!('run' in type)) throw new Error('The job runs in attempts');
  return type.run(
    { mutations: [] },
    {
      attempt: 1,
      runId: 'run',
      startedAt: new Date(),
      jobId: 'job',
      source: { kind: 'api', id: null },
      target: null,
      caller: systemCaller('acme', 'request'),
      currentCaller: () => Promise.resolve(systemCaller('acme', 'request')),
      signal: new AbortController().signal,
      log: () => undefined,
      progress: () => undefined,
    },
  );
}

test('changes whose locks are busy are attempted again, as they were when they waited', async () => {
  const busy = new AppError('unavailable', 'Busy.', { retryAfterSeconds: 2 });
  await expect(run(busy)).rejects.toMatchObject({
    code: 'busy',
    retryable: true,
    retryAfterMs: 2_000,
  });
});

test('changes that are rejected are not', async () => {
  await expect(run(new AppError('in_use', 'Used.'))).rejects.toMatchObject({
    code: 'change_rejected',
    retryable: false,
  });
});
