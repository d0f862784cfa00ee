import type { Knex } from '../core/knex.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { normalizeName } from '../../domain/approvals/names.ts';
import { hasAccount, type Caller } from '../../domain/shared/caller.ts';

/** A person, as a gateway or Holdfast names them. The ids of accounts mean the same at every tenant. */
type Controller = { actorId: string; tenantId: string };

const ofAccount = (actorId: string): Controller => ({ actorId, tenantId: PLATFORM });

/** The person who makes a request; none for the platform itself. */
const personOf = (caller: Caller): Controller[] => {
  if (caller.kind === 'system') return [];
  return [hasAccount(caller) ? ofAccount(caller.actorId) : caller];
};

/**
 * Remembers that a caller, and these owners, have had control of a service account: they do not decide
 * on what it requests.
 */
export async function addControllers(
  trx: Knex,
  accountId: string,
  { caller, owners = [] }: { caller?: Caller; owners?: readonly (string | null)[] },
  now: Date,
): Promise<void> {
  const people = [
    ...(caller ? personOf(caller) : []),
    ...owners.filter((id) => id !== null).map(ofAccount),
  ];
  if (people.length === 0) return;
  await trx('account_controllers')
    .insert(
      people.map(({ actorId, tenantId }) => ({
        account_id: accountId,
        name: normalizeName(actorId),
        tenant_id: tenantId,
        since: now,
      })),
    )
    .onConflict(['account_id', 'name', 'tenant_id'])
    .ignore();
}
