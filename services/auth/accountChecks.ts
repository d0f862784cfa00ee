import { findRoleGrants, principalsOf } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { User } from '../../db/models/User.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from '../access/access.ts';
import { checkTenant, requesterOf } from '../access/resourceScope.ts';

/** Checks of callers who change accounts of others. */
export const createAccountChecks = ({ db, access }: { db: Knex; access: Access }) => ({
  /**
   * Resetting a password, enabling or moving an account and making a token of a service account allow
   * acting as its owner, so the caller must hold every permission of the owner at that moment.
   * Requires `lockAccess`; `currentCaller` is from `withCurrentRights`.
   */
  async assertHoldsOwnersRights(currentCaller: Caller, trx: Knex, user: User): Promise<void> {
    access.assertHolds(
      currentCaller,
      await findRoleGrants(trx, principalsOf(user.id, user.providerId, user.externalGroups)),
    );
  },

  /** Errors: `permission_denied`, `invalid_request` when the tenant of an account does not exist. */
  async requireTenant(caller: Caller, tenantId: string): Promise<void> {
    await access.require(caller, 'user:write', { tenantId });
    await checkTenant(db, tenantId, requesterOf(access, caller, 'user:write'), 'body');
  },
});
