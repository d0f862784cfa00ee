import { LRUCache } from 'lru-cache';
import { findTokenByHash, type TokenState } from '../../../db/auth/tokens.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { workingTenant } from '../../../domain/access/scope.ts';
import { statusOf } from '../../../domain/auth/tokens.ts';
import type { Caller } from '../../../domain/shared/caller.ts';
import { AppError } from '../../../domain/shared/errors.ts';
import { isInNetworks } from '../../../platform/network.ts';
import type { UserRights } from '../../access/rights.ts';
import type { DeniedAttempts } from '../../audit/deniedAttempts.ts';
import { hashToken } from '../hashToken.ts';
import { createTokenRate } from './rate.ts';
import type { TokenUses } from './uses.ts';

export type TokenAuthentication = ReturnType<typeof createTokenAuthentication>;

/** Requests a minute of a runner that has no limit of its own. */
const MAX_RUNNER_REQUESTS = 1_000_000;

/** Tokens whose ids are remembered by the hashes of their secrets. */
const MAX_KNOWN = 20_000;

type Deps = {
  db: Knex;
  rights: UserRights;
  deniedAttempts: DeniedAttempts;
  tokenUses: TokenUses;
  config: { tokenRequestsPerMinute: number };
};

type Source = Pick<Caller, 'requestId' | 'address'>;

export const tokenInvalid = (reason: string): AppError =>
  new AppError('token_invalid', `The token ${reason}.`);

/** Authenticates requests by API tokens. */
export function createTokenAuthentication({
  db,
  rights,
  deniedAttempts,
  tokenUses,
  config: { tokenRequestsPerMinute },
}: Deps) {
  const rate = createTokenRate();
  const knownIds = new LRUCache<string, string>({ max: MAX_KNOWN });

  /** Error: `token_invalid`. */
  async function findLive(hash: Buffer): Promise<TokenState> {
    const token = await findTokenByHash(db, hash);
    const now = new Date();
    if (!token) throw tokenInvalid('is not known');
    const status = statusOf(token, now);
    if (status !== 'active') throw tokenInvalid(`is ${status}`);
    if (token.previousValidUntil && token.previousValidUntil <= now)
      throw tokenInvalid('was replaced by a rotation');
    if (!token.enabled) throw tokenInvalid('belongs to an account that is disabled');
    return token;
  }

  /** Error: `address_not_allowed`. */
  async function requireAddress(
    caller: Caller,
    { id, tenantId, allowedNetworks }: TokenState,
  ): Promise<void> {
    if (allowedNetworks === null || isInNetworks(caller.address, allowedNetworks)) return;
    const subject = { type: 'token', id };
    const ofOwner = { ...caller, tenantId };
    await deniedAttempts.record(ofOwner, 'token.address', { tokenId: id }, { subject });
    throw new AppError('address_not_allowed', 'The token is not valid from this address.');
  }

  return {
    /**
     * Caller of a token whose checksum is valid. A request that `isRepeated` was counted before.
     * Errors: `token_invalid`, `address_not_allowed`, `too_many_requests`.
     */
    async authenticate(
      text: string,
      { requestId, address }: Source,
      { isRepeated = false } = {},
    ): Promise<Caller> {
      const hash = hashToken(text);
      const key = hash.toString('base64');
      const knownId = knownIds.get(key);
      if (knownId !== undefined && !isRepeated) rate.check(knownId);
      const token = await findLive(hash);
      knownIds.set(key, token.id);
      const held = await rights.forToken(token);
      const caller: Caller = {
        kind: 'token',
        actorId: token.userId,
        tenantId: workingTenant(held, { chosen: token.requestTenantId, home: token.tenantId }),
        requestId,
        address,
        token: { id: token.id, readOnly: token.readOnly },
        ...(token.pools && { runner: { tokenId: token.id, pools: token.pools } }),
        rights: held,
      };
      await requireAddress(caller, token);
      // A runner reports several times a second for each of its jobs.
      const most = token.kind === 'runner' ? MAX_RUNNER_REQUESTS : tokenRequestsPerMinute;
      const limit = Math.min(token.requestsPerMinute ?? Infinity, most);
      if (!isRepeated) rate.count(token.id, limit);
      tokenUses.note(token.id, token.lastUsedAt, address);
      return caller;
    },
  };
}
