import { createAddressGuard, PRIVATE_NETWORKS, type AddressGuard } from './addressGuard.ts';
import { createGuardedHttp, type GuardedHttp } from './guardedHttp.ts';

export type ProviderOutbound = ReturnType<typeof createProviderOutbound>;

/** What a provider's configuration says about where it is. */
type Located = { allowPrivateNetwork: boolean };

/**
 * The way to identity providers: public addresses and those in `allow` (CIDRs); private networks as well where the
 * configuration of the provider says so, since directories live there.
 */
export function createProviderOutbound(allow: readonly string[]) {
  const withPrivate = [...allow, ...PRIVATE_NETWORKS];
  const guards = { strict: createAddressGuard(allow), relaxed: createAddressGuard(withPrivate) };
  const clients = {
    strict: createGuardedHttp({ allow }),
    relaxed: createGuardedHttp({ allow: withPrivate }),
  };
  const kindOf = ({ allowPrivateNetwork }: Located) => (allowPrivateNetwork ? 'relaxed' : 'strict');
  return {
    guardFor: (config: Located): AddressGuard => guards[kindOf(config)],
    httpFor: (config: Located): GuardedHttp => clients[kindOf(config)],
    close: async (): Promise<void> =>
      void (await Promise.all([clients.strict.close(), clients.relaxed.close()])),
  };
}
