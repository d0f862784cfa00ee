import { proxyLocalActivities } from '@temporalio/workflow';

const { nothing } = proxyLocalActivities<{ nothing(): Promise<void> }>({
  startToCloseTimeout: '5 seconds',
});

/** The least that a durable job can be: one workflow with one local activity. */
export async function bare(): Promise<void> {
  await nothing();
}
