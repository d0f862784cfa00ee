import { createBoundedQueue } from '../../../platform/boundedQueue.ts';

/**
 * Logins that wait for one provider, in one process: together fewer than the public requests that an
 * address may have, so that a provider that does not answer leaves some for the users of others.
 */
const MAX_RUNNING = 6;
const MAX_QUEUED = 6;

export type ProviderWaits = ReturnType<typeof createProviderWaits>;

/** Limits how many logins wait for each identity provider. */
export function createProviderWaits() {
  const providers = new Map<
    string,
    { queue: ReturnType<typeof createBoundedQueue>; logins: number }
  >();

  return {
    /** Error: `too_many_requests` if too many logins wait for the provider; those of `ask`. */
    async run<T>(providerId: string, ask: () => Promise<T>): Promise<T> {
      const provider = providers.get(providerId) ?? {
        queue: createBoundedQueue({
          maxRunning: MAX_RUNNING,
          maxQueued: MAX_QUEUED,
          busy: 'Too many logins wait for the identity provider.',
        }),
        logins: 0,
      };
      providers.set(providerId, provider);
      provider.logins += 1;
      try {
        return await provider.queue.run(ask);
      } finally {
        provider.logins -= 1;
        if (provider.logins === 0) providers.delete(providerId);
      }
    },
  };
}
