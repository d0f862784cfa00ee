import { Client, ScheduleClient, type WorkflowClientInterceptor } from '@temporalio/client';
import { defaultPayloadConverter, type DataConverter } from '@temporalio/common';
import { NativeConnection } from '@temporalio/worker';
import { TRACE_HEADER } from '../domain/dispatch/workflowIds.ts';
import type { TemporalSettings } from '../platform/config.ts';
import { currentTrace } from '../platform/tracing.ts';
import { within } from '../platform/within.ts';
import { createCodec, createScheduleCodec } from './codec.ts';

export type TemporalConnection = ReturnType<typeof createTemporalConnection>;

/**
 * Longest time that callers wait for a connection, in milliseconds. The SDK itself waits longer.
 */
const CONNECT_WAIT_MS = 2_000;

/** Sends the current trace with the start of a workflow. */
const traceStarts: WorkflowClientInterceptor = {
  startWithDetails(input, next) {
    const trace = currentTrace();
    if (trace === undefined) return next(input);
    const header = defaultPayloadConverter.toPayload(trace);
    return next({ ...input, headers: { ...input.headers, [TRACE_HEADER]: header } });
  },
};

/**
 * The connection of this process to Temporal. It is opened on first use. Client and worker share
 * it: a start can then hand the first task to the worker of the same process (eager start).
 */
export function createTemporalConnection(settings: TemporalSettings) {
  let connecting: Promise<NativeConnection> | undefined;
  let client: Client | undefined;
  let closed = false;
  const dataConverter: DataConverter = { payloadCodecs: createCodec(settings.codecKeys) };

  const connect = () =>
    NativeConnection.connect({
      address: settings.address,
      ...(settings.tls && { tls: settings.tls }),
      ...(settings.apiKey && { apiKey: settings.apiKey }),
    });

  function createClient(connection: NativeConnection): Client {
    const { namespace } = settings;
    const interceptors = { workflow: [traceStarts] };
    const payloadCodecs = createScheduleCodec(settings.codecKeys);
    return Object.assign(new Client({ connection, namespace, dataConverter, interceptors }), {
      schedule: new ScheduleClient({ connection, namespace, dataConverter: { payloadCodecs } }),
    });
  }

  /** Returns the connection, or fails after `waitMs`. The attempt continues for the next caller. */
  async function nativeConnection(waitMs = CONNECT_WAIT_MS): Promise<NativeConnection> {
    if (closed) throw new Error('The connection to Temporal is closed');
    connecting ??= connect().catch((error: unknown) => {
      connecting = undefined;
      throw error;
    });
    return within(waitMs, connecting, () => {
      throw new Error(`No connection to Temporal within ${waitMs} ms`);
    });
  }

  return {
    namespace: settings.namespace,
    /** The key that encrypts payloads; undefined without encryption. */
    encryptionKeyId: settings.codecKeys[0]?.id,
    dataConverter,
    nativeConnection,

    /** Runs `calls` with a client. All of them together have `deadlineMs`. */
    async call<T>(deadlineMs: number, calls: (client: Client) => Promise<T>): Promise<T> {
      const deadline = Date.now() + deadlineMs;
      const live = await nativeConnection(deadlineMs);
      client ??= createClient(live);
      const ready = client;
      return live.withDeadline(deadline, () => calls(ready));
    },

    /** Resolves when Temporal answers within `deadlineMs`. */
    async check(deadlineMs: number): Promise<void> {
      const deadline = Date.now() + deadlineMs;
      const live = await nativeConnection(deadlineMs);
      await live.withDeadline(deadline, () => live.workflowService.getSystemInfo({}));
    },

    async close(): Promise<void> {
      closed = true;
      const live = await connecting?.catch(() => undefined);
      await live?.close();
    },
  };
}
