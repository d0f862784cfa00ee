import type { DeliveryMessage } from '../../db/webhooks/deliveryAttempts.ts';
import type { Metrics } from '../../platform/metrics.ts';
import type { SendResult } from './sender.ts';

/** Adds an attempt of a delivery to the metrics. */
export function measureAttempt(
  metrics: Metrics,
  { queuedAt }: Pick<DeliveryMessage, 'queuedAt'>,
  { error, durationMs }: Pick<SendResult, 'error' | 'durationMs'>,
  finishedAt: Date,
): void {
  const outcome = error ? 'failed' : 'succeeded';
  metrics.deliveryAttempts.inc({ outcome });
  metrics.deliveryAttemptSeconds.observe({ outcome }, durationMs / 1_000);
  if (error) return;
  const waitedMs = Math.max(finishedAt.getTime() - queuedAt.getTime(), 0);
  metrics.deliverySeconds.observe(waitedMs / 1_000);
}
