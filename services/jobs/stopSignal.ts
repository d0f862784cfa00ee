import { WorkerStopping } from './lifecycle.ts';

export type StopSignal = ReturnType<typeof createStopSignal>;

/**
 * Ends attempts when their process has been stopping for the grace time. Temporal ends regular activities
 * then, but not local ones.
 */
export function createStopSignal({ stopGraceMs }: { stopGraceMs: number }) {
  const controller = new AbortController();
  return {
    signal: controller.signal,
    /** The process stops: its attempts have the grace time left. */
    begin: (): void =>
      void setTimeout(() => controller.abort(new WorkerStopping()), stopGraceMs).unref(),
  };
}
