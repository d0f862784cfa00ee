import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { QuotaValues } from '../../domain/access/quotas.ts';
import { resetQuotas } from '../access/quotas.ts';
import { deleteViewsOf } from '../views/viewAudit.ts';
import type { PlanOutcome } from './planner.ts';
import { revokeGrants } from './revocations.ts';

/**
 * Removes what is deleted with records of the inventory and does not belong to it: grants, and the views and quotas of
 * tenants. Each has its audit entry and event, as when it is removed by itself.
 */
export async function removeDependents(
  work: Work,
  trx: Knex,
  { planned, changes }: PlanOutcome,
  defaults: QuotaValues,
): Promise<void> {
  await revokeGrants(work, trx, planned);
  for (const { resource, id, after } of changes) {
    if (resource !== 'tenants' || after !== null) continue;
    await deleteViewsOf(work, trx, id);
    await resetQuotas(work, trx, id, defaults);
  }
}
