import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createApprovalActivities } from '../../../activities/approvals.ts';
import { createBackupActivities } from '../../../activities/backups.ts';
import { MAX_UNEXPECTED_ATTEMPTS } from '../../../activities/sanitizeErrors.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { createLog } from '../../../platform/log.ts';
import { StoreError } from '../../../platform/stores/store.ts';

type Behind = { work: () => Promise<number>; record: (id: string, error: object) => Promise<void> };

const log = createLog('silent', false);

/** The activities that Temporal repeats without limit, and what does their work. */
const ACTIVITIES: Readonly<Record<string, (behind: Behind) => Promise<unknown>>> = {
  createBoundJob({ work, record }) {
    const execution = { createBoundJob: work, failExecution: record };
    const deps = { execution, log } as unknown as Parameters<typeof createApprovalActivities>[0];
    return createApprovalActivities(deps).createBoundJob('record');
  },
  removeArchive({ work, record }) {
    const backupCompletion = { remove: work, failRemoval: record };
    const deps = { backupCompletion, log } as unknown as Parameters<
      typeof createBackupActivities
    >[0];
    return createBackupActivities(deps).removeArchive('record');
  },
};

/** Runs one attempt. Returns what was done, how it ended, and what Temporal would keep of it. */
async function attempt(
  name: string,
  info: { heartbeatDetails?: object; attempt?: number },
  work = () => Promise.resolve(0),
) {
  const environment = new MockActivityEnvironment(info);
  const kept: unknown[] = [];
  environment.on('heartbeat', (details: unknown) => void kept.push(details));
  const done: unknown[] = [];
  const behind: Behind = {
    work() {
      done.push('work');
      return work();
    },
    record(id, error) {
      done.push({ id, ...error });
      return Promise.resolve();
    },
  };
  const ended = await environment
    .run(() => assertDefined(ACTIVITIES[name], name)(behind))
    .then(
      () => 'ended',
      () => 'failed',
    );
  return { done, kept, ended };
}

describe.each(Object.keys(ACTIVITIES))('%s', (name) => {
  test.each([
    [undefined, 0],
    [{ lost: 2, isRunning: false }, 2],
    [{ lost: 2, isRunning: true }, 3],
    [{ lost: 4, isRunning: false }, 4],
  ])('works after %j, when %i workers were lost', async (heartbeatDetails, lost) => {
    const { done, kept } = await attempt(name, heartbeatDetails ? { heartbeatDetails } : {});
    expect({ done, kept }).toEqual({ done: ['work'], kept: [{ lost, isRunning: true }] });
  });

  test('does not start again after five workers, and its record says so', async () => {
    const heartbeatDetails = { lost: 4, isRunning: true };
    const { done, ended } = await attempt(name, { heartbeatDetails });
    expect(done).toEqual([{ id: 'record', code: 'worker_lost', message: expect.any(String) }]);
    expect(ended).toBe('ended');
  });

  test('that fails has lost no worker', async () => {
    const fail = () => Promise.reject(new Error('x'));
    const { kept, ended } = await attempt(name, { attempt: MAX_UNEXPECTED_ATTEMPTS - 1 }, fail);
    expect([kept.at(-1), ended]).toEqual([{ lost: 0, isRunning: false }, 'failed']);
  });

  test('ends in its record after the last attempt that an unexpected error gets', async () => {
    const fail = () => Promise.reject(new Error('secret of a record'));
    const { done, ended } = await attempt(name, { attempt: MAX_UNEXPECTED_ATTEMPTS }, fail);
    expect(done).toEqual(['work', expect.objectContaining({ id: 'record', code: 'unexpected' })]);
    expect(JSON.stringify(done)).not.toContain('secret');
    expect(ended).toBe('ended');
  });

  test('ends in its record, which says why, if the store refuses every attempt', async () => {
    const refusal = new StoreError('store_refused', 'The store is not configured.', false);
    const fail = () => Promise.reject(refusal);
    const first = await attempt(name, { attempt: MAX_UNEXPECTED_ATTEMPTS - 1 }, fail);
    expect(first.ended).toBe('failed');
    const { done } = await attempt(name, { attempt: MAX_UNEXPECTED_ATTEMPTS }, fail);
    const { code, message } = refusal;
    expect(done).toEqual(['work', { id: 'record', code, message }]);
  });

  test('is repeated for as long as the store is away', async () => {
    const fail = () => Promise.reject(new StoreError('store_unavailable', 'Away.', true));
    const { done, ended } = await attempt(name, { attempt: 1_000 }, fail);
    expect([done, ended]).toEqual([['work'], 'failed']);
  });
});
