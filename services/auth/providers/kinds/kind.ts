import { lookup } from 'node:dns/promises';
import net from 'node:net';
import tls from 'node:tls';
import type { TObject } from 'typebox';
import type { ProviderKind, TestStep } from '../../../../domain/auth/providers.ts';
import { hostOf, notAllowed, type AddressGuard } from '../../../../platform/addressGuard.ts';

/** What the code of one kind of provider declares about itself. */
export type Kind = {
  kind: ProviderKind;
  /** The configuration, secrets included. */
  config: TObject;
  /** Fields of the configuration that are sealed and never shown. */
  secrets: readonly string[];
  /** Fields that say where secrets are sent: when one changes, the secrets must be given again. */
  destinations: readonly string[];
  /** What the schema cannot say: a configuration with which no sign-in can ever work. */
  faults?(
    config: Readonly<Record<string, unknown>>,
  ): { pointer: string; code: string; message: string }[];
};

/** Runs the steps of a test in order; after a failure the rest is skipped. */
export function createSteps() {
  const steps: TestStep[] = [];
  let failed = false;
  return {
    steps,
    /** Runs one step; what it returns in `message` is shown. */
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
      const began = performance.now();
      const add = (status: TestStep['status'], message: string) =>
        steps.push({
          name,
          status,
          message: message.slice(0, 500),
          durationMs: Math.round(performance.now() - began),
        });
      try {
        const { message, value } = await work();
        add('passed', message);
        return value;
      } catch (error) {
        failed = true;
        return void add('failed', error instanceof Error ? error.message : String(error));
      }
    },
  };
}

type Step = ReturnType<typeof createSteps>['step'];

const PORTS: Readonly<Record<string, number>> = {
  'http:': 80,
  'https:': 443,
  'ldap:': 389,
  'ldaps:': 636,
};

/** Tries out the way to a server: its name, a connection, and TLS where the URL begins with it. */
export async function reachSteps(
  step: Step,
  target: string,
  guard: AddressGuard,
  timeoutMs: number,
  ca?: string,
): Promise<void> {
  const url = new URL(target);
  const host = hostOf(url);
  const port = url.port === '' ? (PORTS[url.protocol] ?? 0) : Number(url.port);
  await step('resolve', async () => {
    const addresses = net.isIP(host)
      ? [host]
      : (await lookup(host, { all: true })).map(({ address }) => address);
    if (!addresses.every((address) => guard.permits(address))) throw notAllowed(host);
    return { message: `${host} is ${addresses.join(', ')}.` };
  });
  const at = { host, port, lookup: guard.lookup };
  await step('connect', () =>
    opened(net.connect(at), 'connect', timeoutMs).then(() => ({
      message: `Connected to port ${port}.`,
    })),
  );
  if (!['https:', 'ldaps:'].includes(url.protocol)) return;
  await step('tls', () =>
    opened(
      tls.connect({
        ...at,
        ...(ca !== undefined && { ca }),
        ...(net.isIP(host) ? {} : { servername: host }),
      }),
      'secureConnect',
      timeoutMs,
    ).then(() => ({ message: 'TLS is set up and the certificate is trusted.' })),
  );
}

/** Resolves when a connection is there, and closes it. */
function opened(
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

/** Compares the clock of a server, by its `Date` header, with ours; `toleranceSeconds` is what is accepted at a sign-in. */
export function compareClocks(
  date: string | undefined,
  toleranceSeconds: number,
): { message: string } {
  const theirs = Date.parse(date ?? '');
  if (Number.isNaN(theirs)) return { message: 'The server does not say what time it is.' };
  // The header has whole seconds.
  const skew = Math.round((theirs - Date.now()) / 1_000);
  if (Math.abs(skew) > toleranceSeconds + 1)
    throw new Error(`The clocks differ by ${skew} s; ${toleranceSeconds} s are accepted.`);
  return { message: `The clocks differ by ${skew} s.` };
}
