import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { createBackupActivities } from '../../../activities/backups.ts';
import { createLog } from '../../../platform/log.ts';
import { AttemptFailed } from '../../../services/jobs/lifecycle.ts';
import type { StepAttempt } from '../../../services/jobs/multiStep.ts';

/** Runs a step whose attempt is `work`. Returns the last thing that Temporal would keep of it. */
async function runStep(
  info: { heartbeatDetails?: object; startToCloseTimeoutMs?: number },
  work: (attempt: StepAttempt) => Promise<void>,
): Promise<{ first: unknown; last: unknown; ended: string }> {
  const environment = new MockActivityEnvironment({ startToCloseTimeoutMs: 60_000, ...info });
  const kept: unknown[] = [];
  environment.on('heartbeat', (details: unknown) => void kept.push(details));
  const activities = createBackupActivities({
    steps: { runStep: work },
    log: createLog('silent', false),
  } as unknown as Parameters<typeof createBackupActivities>[0]);
  const ended = await environment
    .run(() => activities.snapshotBackup('bkp_x', 'job_x'))
    .then(
      () => 'ended',
      () => 'failed',
    );
  return { first: kept[0], last: kept.at(-1), ended };
}

describe('a step of a backup', () => {
  test('is noted as running at its beginning, and as ended when it fails', async () => {
    const { first, last } = await runStep({}, ({ onCounted }) => {
      onCounted(1);
      return Promise.reject(new AttemptFailed('failed', 1_000));
    });
    expect(first).toEqual({ counted: 0, lost: 0, isRunning: true });
    expect(last).toEqual({ counted: 1, lost: 0, isRunning: false });
  });

  test.each([
    [undefined, 0],
    [{ counted: 3 }, 0],
    [{ counted: 3, lost: 2, isRunning: false }, 2],
    [{ counted: 3, lost: 2, isRunning: true }, 3],
  ])('after %j has lost %i workers', async (heartbeatDetails, lost) => {
    let attempt: StepAttempt | undefined;
    await runStep({ ...(heartbeatDetails && { heartbeatDetails }) }, (given) => {
      attempt = given;
      return Promise.resolve();
    });
    expect(attempt).toMatchObject({ lost, failures: heartbeatDetails?.counted ?? 0 });
  });

  test('ends itself before its time limit', async () => {
    const { ended } = await runStep({ startToCloseTimeoutMs: 200 }, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      expect(signal.reason).toMatchObject({ code: 'timed_out' });
    });
    expect(ended).toBe('ended');
  });
});
