import { Runtime, makeTelemetryFilterString, type MetricsBuffer } from '@temporalio/worker';
import type { Log } from '../platform/log.ts';

/**
 * Sends the log lines of the SDK to our log. Connection errors of the core are logged by us only.
 * `metrics`: gets the metrics of the SDK; without it they are not collected.
 */
export function installRuntime(log: Log, { metrics }: { metrics?: MetricsBuffer } = {}): void {
  Runtime.install({
    logger: {
      log: (level, message, meta) => log.debug({ sdk: level, ...meta }, message),
      trace: () => undefined,
      debug: () => undefined,
      info: (message, meta) => log.debug(meta, message),
      warn: (message, meta) => log.warn(meta, message),
      error: (message, meta) => log.error(meta, message),
    },
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'ERROR' }) },
      ...(metrics && { metrics: { buffer: metrics } }),
    },
    // The process handles signals: it stops its components in order.
    shutdownSignals: [],
  });
}
