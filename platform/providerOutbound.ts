import { createAddressGuard, PRIVATE_NETWORKS, type AddressGuard } from './addressGuard.ts';
import { createGuardedHttp, type GuardedHttp } from './guardedHttp.ts';
import type { OwnEndpoints } from './ownEndpoints.ts';

export type ProviderOutbound = ReturnType<typeof createProviderOutbound>;

/** The network settings of a provider's configuration. */
type ProviderNetwork = { allowPrivateNetwork: boolean };

/**
 * Outbound connections to identity providers: to public addresses and the networks in `allow`, and
 * to private networks if the provider's configuration allows it.
 */
export function createProviderOutbound(allow: readonly string[], ownEndpoints?: OwnEndpoints) {
  const options = (networks: readonly string[]) => ({
    allow: networks,
    ...(ownEndpoints && { ownEndpoints }),
  });
  const [strict, relaxed] = [options(allow), options([...allow, ...PRIVATE_NETWORKS])];
  const guards = { strict: createAddressGuard(strict), relaxed: createAddressGuard(relaxed) };
  const clients = {
    strict: createGuardedHttp(strict),
    relaxed: createGuardedHttp(relaxed),
  };
  const modeOf = ({ allowPrivateNetwork }: ProviderNetwork) =>
    allowPrivateNetwork ? 'relaxed' : 'strict';
  return {
    guardFor: (config: ProviderNetwork): AddressGuard => guards[modeOf(config)],
    httpFor: (config: ProviderNetwork): GuardedHttp => clients[modeOf(config)],
    close: async (): Promise<void> =>
      void (await Promise.all([clients.strict.close(), clients.relaxed.close()])),
  };
}
