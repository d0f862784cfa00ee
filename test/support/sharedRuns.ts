import { startJobTask, startShortJobsTask } from '../../domain/dispatch/tasks.ts';
import { executeTask } from '../../temporal/executeTask.ts';
import { insertJob } from '../replay/scenarios.ts';
import type { TestApp } from './app.ts';
import { eventually } from './eventually.ts';

/** A job for a shared run, as a test wants it. */
export type Wanted = Parameters<typeof insertJob>[2];

/** As the dispatcher, which repeats a call: at first, Temporal may not know the search attributes. */
export const startTask = (
  { deps: { temporal, config } }: TestApp,
  task: Parameters<typeof executeTask>[1],
) =>
  eventually(
    () =>
      temporal
        .call(20_000, (client) =>
          executeTask(client, task, {
            taskQueue: config.taskQueue,
            eager: false,
            workflowTaskTimeoutMs: 3_000,
            syncSchedule: () => Promise.resolve(),
          }),
        )
        .then(() => null)
        .catch(String),
    (error) => error === null,
  );

/** Starts jobs of the type `core.sleep` in one run, as the dispatcher does with short jobs. */
export async function startTogether(app: TestApp, wanted: readonly Wanted[]): Promise<string[]> {
  const jobs = wanted.map((job) => ({ id: app.deps.ids.next('job'), job }));
  for (const { id, job } of jobs) await insertJob(app, id, job);
  const settings = { lane: 'inline', timeoutMs: 8_000, heartbeatMs: 1_000 } as const;
  const [first, ...others] = jobs.map(({ id }) =>
    startJobTask({ id, type: 'core.sleep', tenantId: 'platform' }, settings),
  );
  if (!first) throw new Error('no jobs');
  await startTask(app, startShortJobsTask(first.input.jobId, first, others));
  return jobs.map(({ id }) => id);
}
