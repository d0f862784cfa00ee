import type { WorkflowHandle } from '@temporalio/client';
import type { JobRecord } from '../../api/jobs/schemas.ts';
import { isFinal } from '../../domain/jobs/jobs.ts';
import type { TestApp } from '../support/app.ts';
import { eventually } from '../support/eventually.ts';
import { acceptedType, startTestRunner, type TestAttempt, type Work } from '../support/runner.ts';
import { admin } from '../support/users.ts';

/** A way in which a job of runners can go: what its runner does, and what else happens. */
type Branch = {
  name: string;
  work: Work;
  retry?: object;
  /** The job is cancelled once it has this status. */
  cancelWhen?: JobRecord['status'];
};

const failure = { failure: { code: 'busy', message: 'Not now' } };

const untilCancelled = ({ signal }: TestAttempt) =>
  new Promise<object>((resolve) =>
    signal.addEventListener('abort', () => resolve({ cancelled: true })),
  );

export const REMOTE: readonly Branch[] = [
  { name: 'job.remote.success', work: () => Promise.resolve({ result: {} }) },
  {
    name: 'job.remote.retry',
    work: ({ attempt }) => Promise.resolve(attempt < 2 ? failure : { result: {} }),
    retry: { maxAttempts: 2, initialIntervalSeconds: 0.05 },
  },
  { name: 'job.remote.failure', work: () => Promise.resolve(failure) },
  { name: 'job.remote.cancel', work: untilCancelled, cancelWhen: 'running' },
];

/** Runs a branch to its end and returns the handle of its workflow. */
export async function runRemoteBranch(
  app: TestApp,
  { name, work, retry, cancelWhen }: Branch,
): Promise<WorkflowHandle> {
  const root = admin(app);
  const pool = name.replaceAll('.', '-');
  const more = retry && { retry };
  const { type } = await acceptedType(app, pool, more);
  const runner = await startTestRunner(app, { [type]: { work, ...(more && { more }) } }, { pool });
  try {
    const { id } = await root.post<JobRecord>('/api/jobs', { type, payload: {} }).expect(201);
    const reached = (isReached: (job: JobRecord) => boolean) =>
      eventually(() => root.get<JobRecord>(`/api/jobs/${id}`).expect(200), isReached);
    if (cancelWhen) {
      await reached(({ status }) => status === cancelWhen);
      await root.post(`/api/jobs/${id}/cancel`).expect(202);
    }
    await reached(({ status }) => isFinal(status));
    const handle = await app.deps.temporal.call(20_000, (client) =>
      Promise.resolve(client.workflow.getHandle(`job:${id}`)),
    );
    await handle.result().catch(() => undefined);
    return handle;
  } finally {
    await runner.stop();
  }
}
