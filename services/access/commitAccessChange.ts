import { lockAccess } from '../../db/access/access.ts';
import type { Commit, Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { ResourceScope } from '../../domain/access/scope.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { Access } from './access.ts';

type Deps = { commit: Commit; access: Access };

type Change<T> = (work: Work, currentCaller: Caller, trx: Knex) => Promise<T>;

/**
 * Commits changes that affect rights: of grants, roles, users, providers and tokens. They run one
 * after another, and the caller's rights are read again after the lock, so that a right that was
 * revoked while the change waited is not used.
 */
export const createCommitWithCurrentRights =
  ({ commit, access }: Deps) =>
  /**
   * The audit entries belong to `tenantId`. `change` checks all permissions, with `currentCaller`.
   * Errors: those of `change`.
   */
  <T>(caller: Caller, tenantId: string, change: Change<T>): Promise<T> =>
    access.auditDenials(caller, () =>
      commit({ ...caller, tenantId }, async (work) => {
        const trx = await work.trx();
        await lockAccess(trx);
        return change(work, await access.withCurrentRights(caller, trx), trx);
      }),
    );

/** Commits as `createCommitWithCurrentRights`, where one permission is required of every caller. */
export function createCommitAccessChange(deps: Deps) {
  const commitWithCurrentRights = createCommitWithCurrentRights(deps);

  /**
   * The caller needs `permission` at `resourceScope`; the audit entries belong to its tenant.
   * `change` checks further permissions with `currentCaller`. Errors: `permission_denied` and those
   * of `change`.
   */
  return <T>(
    caller: Caller,
    permission: Permission,
    resourceScope: ResourceScope,
    change: Change<T>,
  ): Promise<T> =>
    commitWithCurrentRights(caller, resourceScope.tenantId, (work, currentCaller, trx) => {
      deps.access.assertPermission(currentCaller, permission, resourceScope);
      return change(work, currentCaller, trx);
    });
}
