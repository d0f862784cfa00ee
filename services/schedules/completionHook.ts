import { findWithBufferedRun, lockJobEnds } from '../../db/schedules/schedules.ts';
import { startBufferedRun } from '../../domain/dispatch/tasks.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { CompletionHook } from '../jobs/completion.ts';

/** Starts the buffered run of a schedule when one of the schedule's jobs has finished. */
export const scheduleCompletionHook: CompletionHook = {
  sourceKind: 'schedule',
  lockSource: async (work, scheduleId) => lockJobEnds(await work.trx(), scheduleId),
  async onFinished(work, job) {
    const trx = await work.trx();
    const scheduleId = assertDefined(job.sourceId, 'job.sourceId');
    await lockJobEnds(trx, scheduleId);
    const schedule = await findWithBufferedRun(trx, scheduleId);
    if (schedule) work.dispatch(startBufferedRun(schedule, job.id));
  },
};
