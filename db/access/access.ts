import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Grant, Level, Place } from '../../domain/access/scope.ts';

type RoleRow = { id: string; name: string; permissions: Permission[] };

const roleOf = ({ id, name, permissions }: RoleRow): Role => ({
  id,
  name,
  permissions: new Set(permissions),
});

/** The custom roles with these ids. */
async function findCustomRoles(db: Knex, ids: readonly string[]): Promise<Role[]> {
  const { rows }: { rows: RoleRow[] } = await prepared(
    db,
    'SELECT id, name, permissions FROM roles WHERE id = ANY (?::text[])',
    [[...ids]],
  );
  return rows.map(roleOf);
}

/** Roles by id, built-in and custom; ids that no role has are left out. */
export async function findRoles(db: Knex, ids: Iterable<string>): Promise<Map<string, Role>> {
  const wanted = [...new Set(ids)];
  const custom = wanted.filter((id) => !BUILT_IN_ROLES.has(id));
  const found = custom.length === 0 ? [] : await findCustomRoles(db, custom);
  const builtIn = wanted.flatMap((id) => BUILT_IN_ROLES.get(id) ?? []);
  return new Map([...builtIn, ...found].map((role) => [role.id, role]));
}

/** A grant that is the reason for a right. */
export type Reason = {
  id: string;
  kind: 'assignment' | 'mapping';
  roleId: string;
  level: Level;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
};

type GrantRow = { role_id: string; level: Level; target_id: string };

/** Every grant of these principals, each with its role. */
export async function findGrants(db: Knex, principals: readonly string[]): Promise<Grant[]> {
  const { rows }: { rows: GrantRow[] } = await prepared(
    db,
    'SELECT role_id, level, target_id FROM grants WHERE principal = ANY (?::text[])',
    [[...principals]],
  );
  const roles = await findRoles(
    db,
    rows.map((row) => row.role_id),
  );
  return rows.flatMap(({ role_id, level, target_id }) => {
    const role = roles.get(role_id);
    return role ? [{ role, level, targetId: target_id }] : [];
  });
}

/** Grants that are named as the reason for a right; one is enough. */
const MAX_REASONS = 200;

/** The grants of these principals that give `permission` at `place`, and so are the reason for it. */
export async function findReasons(
  db: Knex,
  principals: readonly string[],
  permission: Permission,
  place: Place,
): Promise<Reason[]> {
  const builtIn = [...BUILT_IN_ROLES.values()]
    .filter((role) => role.permissions.has(permission))
    .map(({ id }) => id);
  const { rows }: { rows: Reason[] } = await db.raw(
    `SELECT id, kind, role_id AS "roleId", level, tenant_id AS "tenantId", site_id AS "siteId", device_id AS "deviceId" FROM grants
     WHERE principal = ANY (?::text[])
       AND (level, target_id) IN (('platform', 'platform'), ('tenant', ?), ('site', ?), ('device', ?))
       AND (role_id = ANY (?::text[]) OR role_id IN (SELECT id FROM roles WHERE ? = ANY (permissions)))
     ORDER BY id LIMIT ?`,
    [
      [...principals],
      place.tenantId,
      place.siteId ?? '',
      place.deviceId ?? '',
      builtIn,
      permission,
      MAX_REASONS,
    ],
  );
  return rows;
}

/** A user as far as rights go. */
export type Standing = {
  enabled: boolean;
  providerId: string;
  externalGroups: string[];
  version: number;
};

/** Whether a user may act at all, their groups, and the version of what is granted. */
export async function findStanding(db: Knex, userId: string): Promise<Standing | undefined> {
  const { rows }: { rows: Standing[] } = await prepared(
    db,
    `SELECT u.enabled AND COALESCE(p.enabled, false) AS enabled, u.provider_id AS "providerId", u.external_groups AS "externalGroups",
            (SELECT version FROM access_state) AS version
     FROM users AS u LEFT JOIN providers AS p ON p.id = u.provider_id WHERE u.id = ?`,
    [userId],
  );
  return rows[0];
}

/** Words for who holds a grant; the same as the generated column `grants.principal`. */
export const principalsOf = (
  userId: string,
  providerId: string,
  groups: readonly string[],
): string[] => [`user:${userId}`, ...groups.map((group) => `group:${providerId}:${group}`)];

/** Where a device stands, or else a site: the narrower of the two counts. Undefined when there is no such record. */
export const findPlace = (
  db: Knex,
  { siteId, deviceId }: { siteId?: string; deviceId?: string },
): Promise<Place | undefined> =>
  (deviceId === undefined
    ? db('sites')
        .where({ id: siteId ?? '' })
        .first({ tenantId: 'tenant_id', siteId: 'id' })
    : db('devices')
        .where({ id: deviceId })
        .first({ tenantId: 'tenant_id', siteId: 'site_id', deviceId: 'id' })) as Promise<
    Place | undefined
  >;

/** How many can sign in and do everything: enabled users, of enabled providers, with the role at the platform. */
async function countAdministrators(trx: Knex): Promise<number> {
  const { rows }: { rows: { count: number }[] } = await trx.raw(
    `SELECT count(*) FROM grants AS g JOIN users AS u ON u.id = g.user_id JOIN providers AS p ON p.id = u.provider_id
     WHERE g.level = 'platform' AND g.role_id = 'platform-admin' AND u.enabled AND p.enabled`,
  );
  return rows[0]?.count ?? 0;
}

/**
 * Grants, roles and who may sign in change one after another. Taken before any row: whoever locked a row first would
 * meet the triggers of `grants` and `roles` the other way round.
 */
export const lockAccess = async (trx: Knex): Promise<void> =>
  void (await trx.raw('SELECT FROM access_state FOR UPDATE'));

/**
 * Makes a change that may take the last administrator's right, one such change at a time. Errors: those of the
 * change; `last_administrator`, with which the transaction must not commit.
 */
export async function keepingAdministrator<T>(trx: Knex, change: () => Promise<T>): Promise<T> {
  await lockAccess(trx);
  const before = await countAdministrators(trx);
  const result = await change();
  if (before > 0 && (await countAdministrators(trx)) === 0) {
    throw new AppError(
      'last_administrator',
      'Nobody would be left who can sign in and is assigned platform-admin at the platform.',
    );
  }
  return result;
}

/** Every grant of these principals as a role and the place where it is given. */
export async function findGivings(
  db: Knex,
  principals: readonly string[],
): Promise<{ role: Role; place: Place }[]> {
  const {
    rows,
  }: {
    rows: {
      role_id: string;
      tenant_id: string;
      site_id: string | null;
      device_id: string | null;
    }[];
  } = await db.raw(
    'SELECT DISTINCT role_id, tenant_id, site_id, device_id FROM grants WHERE principal = ANY (?::text[])',
    [[...principals]],
  );
  const roles = await findRoles(
    db,
    rows.map((row) => row.role_id),
  );
  return rows.flatMap(({ role_id, tenant_id, site_id, device_id }) => {
    const role = roles.get(role_id);
    return role
      ? [{ role, place: { tenantId: tenant_id, siteId: site_id, deviceId: device_id } }]
      : [];
  });
}

/** Tenants in which these principals have a grant at any level; `platform` is among them for one that reaches everywhere. */
export async function findReachedTenants(
  db: Knex,
  principals: readonly string[],
): Promise<string[]> {
  const { rows }: { rows: { tenant_id: string }[] } = await db.raw(
    'SELECT DISTINCT tenant_id FROM grants WHERE principal = ANY (?::text[]) ORDER BY tenant_id',
    [[...principals]],
  );
  return rows.map((row) => row.tenant_id);
}

/** A user, and whether they hold a permission at a place. */
export type Holder = {
  id: string;
  username: string;
  displayName: string;
  enabled: boolean;
  holds: boolean;
};

/** The users with these ids, in no order; unknown ones are left out. */
export async function findHolders(
  db: Knex,
  userIds: readonly string[],
  permission: Permission,
  place: Place,
): Promise<Holder[]> {
  const builtIn = [...BUILT_IN_ROLES.values()]
    .filter((role) => role.permissions.has(permission))
    .map(({ id }) => id);
  const { rows }: { rows: Holder[] } = await db.raw(
    `SELECT u.id, u.username, u.display_name AS "displayName", u.enabled AND coalesce(p.enabled, false) AS enabled, EXISTS (
       SELECT FROM grants AS g
       WHERE g.principal = ANY (array_prepend('user:' || u.id, ARRAY(SELECT 'group:' || u.provider_id || ':' || name FROM unnest(u.external_groups) AS name)))
         AND (g.level, g.target_id) IN (('platform', 'platform'), ('tenant', ?), ('site', ?), ('device', ?))
         AND (g.role_id = ANY (?::text[]) OR g.role_id IN (SELECT id FROM roles WHERE ? = ANY (permissions)))
     ) AS holds
     FROM users AS u LEFT JOIN providers AS p ON p.id = u.provider_id WHERE u.id = ANY (?::text[])`,
    [place.tenantId, place.siteId ?? '', place.deviceId ?? '', builtIn, permission, [...userIds]],
  );
  return rows;
}
