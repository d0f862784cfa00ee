import { findRoleGrants, principalsOf } from '../../db/access/access.ts';
import { hasRunnerToken } from '../../db/auth/tokens.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { User } from '../../db/models/User.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import type { TokenKind } from '../../domain/auth/tokenText.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from '../access/access.ts';
import { checkTenant, requesterOf } from '../access/resourceScope.ts';

/** Checks of callers who change accounts of others. */
export function createAccountChecks({ db, access }: { db: Knex; access: Access }) {
  /**
   * Resetting a password, enabling or moving an account and making a token of a service account allow
   * acting as its owner, so the caller must hold every permission of the owner at that moment.
   * Requires `lockAccess`; `currentCaller` is from `withCurrentRights`.
   */
  async function assertHoldsOwnersRights(
    currentCaller: Caller,
    trx: Knex,
    user: User,
  ): Promise<void> {
    access.assertHolds(
      currentCaller,
      await findRoleGrants(trx, principalsOf(user.id, user.providerId, user.externalGroups)),
    );
  }

  /**
   * A token of this kind allows what its owner may do, and one of runners also to run the jobs of its
   * pools, which anyone may have requested. See `assertHoldsOwnersRights`.
   */
  async function assertMayIssue(
    currentCaller: Caller,
    trx: Knex,
    { kind, owner }: { kind: TokenKind; owner: User },
  ): Promise<void> {
    await assertHoldsOwnersRights(currentCaller, trx, owner);
    if (kind === 'runner')
      access.assertPermission(currentCaller, 'jobtype:write', { tenantId: PLATFORM });
  }

  return {
    assertHoldsOwnersRights,

    assertMayIssue,

    /** As for a new token of each kind that the service account has. */
    assertMayRevive: async (currentCaller: Caller, trx: Knex, owner: User): Promise<void> =>
      assertMayIssue(currentCaller, trx, {
        kind: (await hasRunnerToken(trx, owner.id)) ? 'runner' : 'service',
        owner,
      }),

    /** Errors: `permission_denied`, `invalid_request` when the tenant of an account does not exist. */
    async requireTenant(caller: Caller, tenantId: string): Promise<void> {
      await access.require(caller, 'user:write', { tenantId });
      await checkTenant(db, tenantId, requesterOf(access, caller, 'user:write'), 'body');
    },
  };
}
