import { Client } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import { NativeConnection } from '@temporalio/worker';
import type { TemporalSettings } from '../platform/config.ts';
import { createCodec } from './codec.ts';

export type TemporalLink = ReturnType<typeof createTemporalLink>;

/** A connection attempt to a dead server takes long to give up; callers wait no longer than this. */
const CONNECT_WAIT_MS = 2_000;

/**
 * The one connection of this process to Temporal, made when it is first needed and shared by client and worker:
 * sharing is what lets a start hand the first task straight to the worker of the same process.
 */
export function createTemporalLink(settings: TemporalSettings) {
  let connecting: Promise<NativeConnection> | undefined;
  let client: Client | undefined;
  let closed = false;
  const dataConverter: DataConverter = { payloadCodecs: createCodec(settings.codecKeys) };

  const dial = () =>
    NativeConnection.connect({
      address: settings.address,
      ...(settings.tls && { tls: settings.tls }),
      ...(settings.apiKey && { apiKey: settings.apiKey }),
    });

  /** The connection; fails when none can be had in time. The attempt goes on and serves the next caller. */
  async function connection(waitMs = CONNECT_WAIT_MS): Promise<NativeConnection> {
    if (closed) throw new Error('The connection to Temporal is closed');
    connecting ??= dial().catch((error: unknown) => {
      connecting = undefined;
      throw error;
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`No connection to Temporal within ${waitMs} ms`)),
        waitMs,
      );
    });
    // Two may lose the race: neither must be reported as unhandled.
    connecting.catch(() => undefined);
    return Promise.race([connecting, late]).finally(() => clearTimeout(timer));
  }

  return {
    namespace: settings.namespace,
    dataConverter,
    connection,

    /** Runs calls of a client, all of them within `deadlineMs`. */
    async call<T>(deadlineMs: number, calls: (client: Client) => Promise<T>): Promise<T> {
      const deadline = Date.now() + deadlineMs;
      const live = await connection(deadlineMs);
      client ??= new Client({ connection: live, namespace: settings.namespace, dataConverter });
      const ready = client;
      return live.withDeadline(deadline, () => calls(ready));
    },

    /** Resolves when Temporal answers within `deadlineMs`. */
    async check(deadlineMs: number): Promise<void> {
      const deadline = Date.now() + deadlineMs;
      const live = await connection(deadlineMs);
      await live.withDeadline(deadline, () => live.workflowService.getSystemInfo({}));
    },

    async close(): Promise<void> {
      closed = true;
      const live = await connecting?.catch(() => undefined);
      await live?.close();
    },
  };
}
