import ipaddr from 'ipaddr.js';
import type { Context } from 'koa';

export type Peer = ReturnType<typeof createPeer>;

const MAX_FORWARDED = 20;

/** Some gateways write `203.0.113.1:4455` or `[2001:db8::1]:4455`. */
const withoutPort = (entry: string): string =>
  entry
    .trim()
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, '$1')
    .replace(/^\[(.+)\](?::\d+)?$/, '$1');

/** Judges where a request comes from. Headers about it are believed from trusted gateways only. */
export function createPeer({
  trustedGateways,
  publicUrl,
}: {
  trustedGateways: readonly string[];
  publicUrl: string | undefined;
}) {
  const trusted = trustedGateways.map((cidr) => ipaddr.parseCIDR(cidr));

  function isTrusted(address: string | undefined): boolean {
    if (address === undefined) return false;
    const peer = ipaddr.process(address.replace(/%.*$/, ''));
    return trusted.some(([net, bits]) => peer.kind() === net.kind() && peer.match(net, bits));
  }

  return {
    isTrusted,

    /**
     * The client's address. A trusted gateway names it in `X-Forwarded-For`: the last entry that is not a gateway
     * itself, since everything before that may be made up.
     */
    addressOf(ctx: Context): string | null {
      const direct = ctx.req.socket.remoteAddress;
      if (direct === undefined || !isTrusted(direct)) return direct ?? null;
      const named = ctx
        .get('x-forwarded-for')
        .split(',')
        .map(withoutPort)
        .slice(-MAX_FORWARDED)
        .reverse();
      for (const entry of named) {
        if (!ipaddr.isValid(entry)) break;
        if (!isTrusted(entry)) return entry;
      }
      return direct;
    },

    /** Where browsers reach this API: as configured, else the address of the socket. Never what a `Host` header says. */
    originOf(ctx: Context): string {
      if (publicUrl !== undefined) return publicUrl;
      const { localAddress = '127.0.0.1', localPort = 80 } = ctx.req.socket;
      const address = ipaddr.process(localAddress.replace(/%.*$/, ''));
      return new URL(
        `http://${address.kind() === 'ipv6' ? `[${address.toString()}]` : address.toString()}:${localPort}`,
      ).origin;
    },
  };
}
