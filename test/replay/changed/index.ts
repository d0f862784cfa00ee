import { sleep } from '@temporalio/workflow';
import type { JobStart } from '../../../temporal/contracts.ts';
import { job as today } from '../../../temporal/workflows/job.ts';

/** The job workflow with a step in front: a change that would break every run under way. */
export async function job(start: JobStart): Promise<void> {
  await sleep(1_000);
  await today(start);
}
