import { AppError } from '../../../domain/shared/errors.ts';
import { createBoundedQueue } from '../../../platform/boundedQueue.ts';
import { networkOf } from '../../../platform/network.ts';

/**
 * Logins that wait for one provider, in one process: together a quarter of the public requests that wait for
 * providers, and from an address fewer than it may have, so that a provider that does not answer leaves some for
 * the users of others.
 */
const MAX_RUNNING = 6;
const MAX_QUEUED = 44;
const MAX_PER_ADDRESS = 15;
/** A provider that answers has ended many logins by then. */
const MAX_WAIT_MS = 10_000;
const RETRY_AFTER_SECONDS = 2;

const BUSY = 'Too many logins wait for the identity provider.';

export type ProviderWaits = ReturnType<typeof createProviderWaits>;

/** Limits how many logins wait for each identity provider. */
export function createProviderWaits() {
  const providers = new Map<
    string,
    { queue: ReturnType<typeof createBoundedQueue>; logins: Map<string, number> }
  >();
  const queueOf = () =>
    createBoundedQueue({
      maxRunning: MAX_RUNNING,
      maxQueued: MAX_QUEUED,
      maxWaitMs: MAX_WAIT_MS,
      busy: BUSY,
    });

  return {
    /** Error: `too_many_requests` if too many logins wait for the provider, or too long; those of `ask`. */
    async run<T>(providerId: string, address: string | null, ask: () => Promise<T>): Promise<T> {
      const provider = providers.get(providerId) ?? {
        queue: queueOf(),
        logins: new Map<string, number>(),
      };
      const { queue, logins } = provider;
      const network = networkOf(address);
      const others = logins.get(network) ?? 0;
      if (others >= MAX_PER_ADDRESS)
        throw new AppError('too_many_requests', BUSY, { retryAfterSeconds: RETRY_AFTER_SECONDS });
      providers.set(providerId, provider);
      logins.set(network, others + 1);
      try {
        return await queue.run(ask);
      } finally {
        const left = (logins.get(network) ?? 1) - 1;
        if (left > 0) logins.set(network, left);
        else logins.delete(network);
        if (logins.size === 0) providers.delete(providerId);
      }
    },
  };
}
