import type { Knex } from '../core/knex.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { normalizeName, type GivenName } from '../../domain/approvals/names.ts';

/** An actor at the tenant of a request or of a gateway. */
export type NamedActor = { actorId: string; tenantId: string };

type AccountRow = {
  actor: string;
  at: string;
  id: string;
  username: string;
  email: string | null;
  external_id: string | null;
  tenant_id: string;
  /** The person who is responsible for a service account. */
  owner_id: string | null;
};

/** The columns that name an account. A gateway may send any of them, or the id, as the actor id. */
const NAME_COLUMNS = ['lower(username)', 'lower(email)', 'lower(external_id)'];

const COLUMNS = 'id, username, email, external_id, tenant_id, owner_id';

const keyOf = ({ actorId, tenantId }: NamedActor): string => `${tenantId}/${actorId}`;

/** The names of an account, each with its tenant. */
const namesOfAccount = ({ id, tenant_id, ...names }: AccountRow): GivenName[] => [
  { name: normalizeName(id), tenantId: null },
  ...[names.username, names.email, names.external_id]
    .filter((name) => name !== null && name !== '')
    .map((name) => ({ name: normalizeName(name ?? ''), tenantId: tenant_id })),
];

function namesOfActor({ actorId, tenantId }: NamedActor, accounts: AccountRow[]): GivenName[] {
  const name = normalizeName(actorId);
  const own = accounts.find(({ id }) => id === name);
  // What a service account does, its owner does.
  return own
    ? accounts.filter(({ id }) => id === name || id === own.owner_id).flatMap(namesOfAccount)
    : [{ name, tenantId }, ...accounts.flatMap(namesOfAccount)];
}

/**
 * The names that actors may be known by: those of the account with this id, or else the actor id and
 * the names of the accounts that it names. Only accounts of the tenant and of the platform count: an
 * account of another tenant with such a name is another person. A service account is known by the names
 * of its owner, too. Returns a function from an actor to the names.
 */
export async function knownNamesOf(
  db: Knex,
  actors: readonly NamedActor[],
): Promise<(actor: NamedActor) => GivenName[]> {
  const distinct = [...new Map(actors.map((actor) => [keyOf(actor), actor])).values()];
  const named = NAME_COLUMNS.map(
    (column) =>
      `SELECT ${COLUMNS} FROM users
       WHERE ${column} = requested.name AND tenant_id IN (requested.at, '${PLATFORM}')`,
  );
  const { rows }: { rows: AccountRow[] } = await db.raw(
    `SELECT requested.actor, requested.at, u.*
     FROM unnest(?::text[], ?::text[], ?::text[]) AS requested (actor, name, at)
     CROSS JOIN LATERAL (
       SELECT ${COLUMNS} FROM users WHERE id = requested.name
       UNION SELECT ${COLUMNS} FROM users
         WHERE id = (SELECT owner_id FROM users WHERE id = requested.name)
       UNION ${named.join(' UNION ')}) AS u`,
    [
      distinct.map(({ actorId }) => actorId),
      distinct.map(({ actorId }) => normalizeName(actorId)),
      distinct.map(({ tenantId }) => tenantId),
    ],
  );
  const accountsOf = Map.groupBy(rows, ({ actor, at }) => keyOf({ actorId: actor, tenantId: at }));
  return (actor) => namesOfActor(actor, accountsOf.get(keyOf(actor)) ?? []);
}
