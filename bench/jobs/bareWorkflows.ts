import { proxyLocalActivities } from '@temporalio/workflow';

const { nothing } = proxyLocalActivities<{ nothing(): Promise<void> }>({
  startToCloseTimeout: '5 seconds',
});

/** A minimal durable job: one workflow with one local activity. */
export async function bare(): Promise<void> {
  await nothing();
}
