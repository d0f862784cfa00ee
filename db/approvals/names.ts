import type { Knex } from '../core/knex.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { normalizeName, type GivenName } from '../../domain/approvals/names.ts';
import { assertDefined } from '../../domain/shared/assert.ts';

/** An actor at the tenant of a request or of a gateway. */
export type NamedActor = { actorId: string; tenantId: string };

type AccountRow = {
  id: string;
  username: string;
  email: string | null;
  external_id: string | null;
  tenant_id: string;
};

/** An actor, with a person who acts or has had control of it, and an account of this person, if any. */
type PersonRow = { actor: string; actor_at: string; name: string; at: string } & (
  AccountRow | { [Column in keyof AccountRow]: null }
);

/**
 * The columns that name an account. A gateway may send any of them, or the id, as the actor id. `known_name` of the
 * schema compares them as `normalizeName`.
 */
const NAME_COLUMNS = ['username', 'email', 'external_id'];

const COLUMNS = 'id, username, email, external_id, tenant_id';

const keyOf = ({ actorId, tenantId }: NamedActor): string => `${tenantId}/${actorId}`;

/** The names of an account, each with its tenant. */
const namesOfAccount = ({ id, tenant_id, ...names }: AccountRow): GivenName[] => {
  const given = (name: string | null, atProvider?: true): GivenName[] =>
    name === null || name === ''
      ? []
      : [{ name: normalizeName(name), tenantId: tenant_id, ...(atProvider && { atProvider }) }];
  return [
    { name: normalizeName(id), tenantId: null },
    ...given(names.username),
    ...given(names.email),
    ...given(names.external_id, true),
  ];
};

function namesOfPerson({ actorId: name, tenantId }: NamedActor, rows: PersonRow[]): GivenName[] {
  const accounts = rows.filter((row) => row.id !== null);
  const own = accounts.find(({ id }) => id === name);
  return own ? namesOfAccount(own) : [{ name, tenantId }, ...accounts.flatMap(namesOfAccount)];
}

/** The names of an actor, and of all who have had control of it. */
function namesOfPeople(rows: PersonRow[]): GivenName[] {
  const people = Map.groupBy(rows, ({ name, at }) => keyOf({ actorId: name, tenantId: at }));
  return [...people.values()].flatMap((ofPerson) => {
    const { name, at } = assertDefined(ofPerson[0], 'row of a person');
    return namesOfPerson({ actorId: name, tenantId: at }, ofPerson);
  });
}

/**
 * The names that actors may be known by: those of the account with this id, or else the actor id and
 * the names of the accounts that it names. Only accounts of the tenant and of the platform count: an
 * account of another tenant with such a name is another person. A service account is known by the names
 * of all who have had control of it, too. Returns a function from an actor to the names.
 */
export async function knownNamesOf(
  db: Knex,
  actors: readonly NamedActor[],
): Promise<(actor: NamedActor) => GivenName[]> {
  const distinct = [...new Map(actors.map((actor) => [keyOf(actor), actor])).values()];
  const named = NAME_COLUMNS.map(
    (column) =>
      `SELECT ${COLUMNS} FROM users
       WHERE known_name(${column}) = known_name(people.name) AND tenant_id IN (people.at, '${PLATFORM}')`,
  );
  // A service account may have changed the owner of another one.
  const { rows }: { rows: PersonRow[] } = await db.raw(
    `WITH RECURSIVE people (actor, actor_at, name, at) AS (
       SELECT actor, at, name COLLATE "C", at COLLATE "C"
       FROM unnest(?::text[], ?::text[], ?::text[]) AS requested (actor, name, at)
       UNION
       SELECT people.actor, people.actor_at, controller.name, controller.tenant_id
       FROM people CROSS JOIN LATERAL (
         -- Rows that migration 0052 has made are not normalized in databases with the locale C.
         SELECT known_name(name) COLLATE "C", tenant_id FROM account_controllers WHERE account_id = people.name
         UNION ALL
         SELECT owner_id, '${PLATFORM}' FROM users WHERE id = people.name AND owner_id IS NOT NULL
       ) AS controller (name, tenant_id))
     SELECT people.*, u.*
     FROM people LEFT JOIN LATERAL (
       SELECT ${COLUMNS} FROM users WHERE id = people.name UNION ${named.join(' UNION ')}
     ) AS u ON true`,
    [
      distinct.map(({ actorId }) => actorId),
      distinct.map(({ actorId }) => normalizeName(actorId)),
      distinct.map(({ tenantId }) => tenantId),
    ],
  );
  const rowsOf = Map.groupBy(rows, ({ actor, actor_at: at }) =>
    keyOf({ actorId: actor, tenantId: at }),
  );
  return (actor) => namesOfPeople(rowsOf.get(keyOf(actor)) ?? []);
}
