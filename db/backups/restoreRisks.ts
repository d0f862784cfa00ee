import { quoteIdentifier, type RunQuery } from './catalog.ts';
import { findPlanned, type RestorePlan } from './restorePlan.ts';
import { restoredTable } from './restoredTables.ts';
import { stagedTable } from './sql.ts';

type LockoutRisks = {
  /** A local account administers the platform now, and none would after the restore. */
  losesAdministrators: boolean;
  /** The actor has an account now, which would be deleted or disabled. */
  losesOwnAccount: boolean;
};

const hasPlatformAdmin = (users: string, providers: string, grants: string) =>
  `EXISTS (
     SELECT FROM ${users} AS u JOIN ${grants} AS g ON g.user_id = u.id
       JOIN ${providers} AS p ON p.id = u.provider_id
     WHERE u.enabled AND p.enabled AND g.level = 'platform' AND g.role_id = 'platform-admin')`;

/** Whether a restore would lock out administrators or the actor who requests it. */
export async function findLockoutRisks(
  query: RunQuery,
  plan: RestorePlan,
  actorId: string,
): Promise<LockoutRisks> {
  const users = findPlanned(plan, 'users');
  const providers = findPlanned(plan, 'providers');
  if (users?.role !== 'state' || !providers)
    return { losesAdministrators: false, losesOwnAccount: false };
  const restored = restoredTable(plan, users.table);
  const restoredProviders = restoredTable(plan, providers.table);
  const restoredGrants = `${quoteIdentifier(plan.schema)}.grants`;
  const [risks] = await query<LockoutRisks>(
    `SELECT
       ${hasPlatformAdmin('public.users', 'public.providers', 'public.grants')}
         AND NOT ${hasPlatformAdmin(restored, restoredProviders, restoredGrants)} AS "losesAdministrators",
       EXISTS (SELECT FROM public.users WHERE id = $1)
         AND NOT EXISTS (SELECT FROM ${restored} WHERE id = $2 AND enabled) AS "losesOwnAccount"`,
    [actorId, actorId],
  );
  if (!risks) throw new Error('The query for lockout risks returned no row');
  return risks;
}

/** The number of jobs that a restore would add although they have no end. */
export async function countInterruptedJobs(query: RunQuery, plan: RestorePlan): Promise<number> {
  const jobs = findPlanned(plan, 'jobs');
  if (!jobs) return 0;
  const [row] = await query<{ count: number }>(
    `SELECT count(*) AS count FROM ${stagedTable(plan.schema, jobs.table)} AS s
     WHERE status IN ('queued', 'running')
       AND NOT EXISTS (SELECT FROM public.jobs AS l WHERE l.id = s.id)`,
  );
  return row?.count ?? 0;
}
