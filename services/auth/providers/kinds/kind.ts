import { lookup } from 'node:dns/promises';
import net from 'node:net';
import tls from 'node:tls';
import type { TObject } from 'typebox';
import type { ProviderKind, TestStep } from '../../../../domain/auth/providers.ts';
import { errorMessage } from '../../../../domain/shared/errorMessage.ts';
import { hostOf, portOf, type AddressGuard } from '../../../../platform/addressGuard.ts';

/** Definition of one kind of identity provider. */
export type ProviderKindDefinition = {
  kind: ProviderKind;
  /** Schema of the configuration, secrets included. */
  config: TObject;
  /** Secret fields: encrypted in the database, masked in responses. */
  secrets: readonly string[];
  /** Fields that determine where secrets are sent. When one changes, secrets must be sent again. */
  destinations: readonly string[];
  /** Fields that determine whose ids the accounts have: with another value, an id may be another person. */
  identity: readonly string[];
  /** Those of `identity` that matter with a configuration; without it, all. */
  identityOf?(config: Readonly<Record<string, unknown>>): readonly string[];
  /** Checks beyond the schema; returns the invalid fields. */
  validate?(
    config: Readonly<Record<string, unknown>>,
  ): { pointer: string; code: string; message: string }[];
};

/**
 * Runs the steps of a connection test in order. After a failure, the remaining steps are skipped.
 */
export function createStepRunner() {
  const steps: TestStep[] = [];
  let failed = false;
  return {
    steps,
    /** Runs one step and reports its `message`. Returns its `value`, or undefined if it failed. */
    async step<T>(
      name: string,
      work: () => Promise<{ message: string; value?: T | undefined }>,
    ): Promise<T | undefined> {
      if (failed)
        return void steps.push({
          name,
          status: 'skipped',
          message: 'An earlier step failed.',
          durationMs: 0,
        });
      const startedAt = performance.now();
      const add = (status: TestStep['status'], message: string) =>
        steps.push({
          name,
          status,
          message: message.slice(0, 500),
          durationMs: Math.round(performance.now() - startedAt),
        });
      try {
        const { message, value } = await work();
        add('passed', message);
        return value;
      } catch (error) {
        failed = true;
        return void add('failed', errorMessage(error));
      }
    },
  };
}

type RunStep = ReturnType<typeof createStepRunner>['step'];

/** Tests name resolution, the TCP connection and, for https: and ldaps:, TLS to a server. */
export async function runConnectionSteps(
  step: RunStep,
  target: string,
  guard: AddressGuard,
  timeoutMs: number,
  ca?: string,
): Promise<void> {
  const url = new URL(target);
  const host = hostOf(url);
  const port = portOf(url);
  await step('resolve', async () => {
    const addresses = net.isIP(host)
      ? [host]
      : (await lookup(host, { all: true })).map(({ address }) => address);
    guard.requirePermitted(host, port, addresses);
    return { message: `${host} is ${addresses.join(', ')}.` };
  });
  const endpoint = { host, port, lookup: guard.lookupFor(port) };
  await step('connect', () =>
    waitForConnection(net.connect(endpoint), 'connect', timeoutMs).then(() => ({
      message: `Connected to port ${port}.`,
    })),
  );
  if (!['https:', 'ldaps:'].includes(url.protocol)) return;
  await step('tls', () =>
    waitForConnection(
      tls.connect({
        ...endpoint,
        ...(ca !== undefined && { ca }),
        ...(net.isIP(host) ? {} : { servername: host }),
      }),
      'secureConnect',
      timeoutMs,
    ).then(() => ({ message: 'TLS works and the certificate is trusted.' })),
  );
}

/** Resolves when the socket is connected, and closes it. */
function waitForConnection(
  socket: net.Socket,
  event: 'connect' | 'secureConnect',
  timeoutMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => socket.destroy(new Error(`No connection within ${timeoutMs} ms.`)),
      timeoutMs,
    );
    socket.once(event, () => {
      resolve();
      socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => clearTimeout(timer));
  });
}

/**
 * Compares the server's clock, from its `Date` header, with ours. Throws if they differ by more
 * than `toleranceSeconds`, the difference that a login accepts.
 */
export function compareClocks(
  date: string | undefined,
  toleranceSeconds: number,
): { message: string } {
  const serverTime = Date.parse(date ?? '');
  if (Number.isNaN(serverTime)) return { message: 'The server sends no Date header.' };
  // The header has a resolution of one second.
  const skew = Math.round((serverTime - Date.now()) / 1_000);
  if (Math.abs(skew) > toleranceSeconds + 1)
    throw new Error(`The clocks differ by ${skew} s; ${toleranceSeconds} s are accepted.`);
  return { message: `The clocks differ by ${skew} s.` };
}
