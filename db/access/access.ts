import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { providerName } from '../models/User.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { coversJobType, patternsCovering } from '../../domain/access/jobTypePatterns.ts';
import { BUILT_IN_ROLES, type Role } from '../../domain/access/roles.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Grant, Level, ResourceScope } from '../../domain/access/scope.ts';

type RoleRow = { id: string; name: string; permissions: Permission[]; job_types: string[] };

const toRole = ({ id, name, permissions, job_types }: RoleRow): Role => ({
  id,
  name,
  permissions: new Set(permissions),
  jobTypes: job_types,
});

/** Custom roles by id. */
async function findCustomRoles(db: Knex, ids: readonly string[]): Promise<Role[]> {
  const { rows }: { rows: RoleRow[] } = await prepared(
    db,
    'SELECT id, name, permissions, job_types FROM roles WHERE id = ANY (?::text[])',
    [[...ids]],
  );
  return rows.map(toRole);
}

/** Built-in and custom roles, keyed by id. Unknown ids are left out. */
export async function findRoles(db: Knex, ids: Iterable<string>): Promise<Map<string, Role>> {
  const wanted = [...new Set(ids)];
  const custom = wanted.filter((id) => !BUILT_IN_ROLES.has(id));
  const found = custom.length === 0 ? [] : await findCustomRoles(db, custom);
  const builtIn = wanted.flatMap((id) => BUILT_IN_ROLES.get(id) ?? []);
  return new Map([...builtIn, ...found].map((role) => [role.id, role]));
}

/** Most custom roles that are read together; there can be no more. */
const MAX_CUSTOM_ROLES = 1_000;

/** The roles that include a permission, built-in ones first. */
export async function findRolesWith(
  db: Knex,
  permission: Permission,
): Promise<{ id: string; name: string }[]> {
  const builtIn = [...BUILT_IN_ROLES.values()].filter(({ permissions }) =>
    permissions.has(permission),
  );
  const { rows } = await prepared<{ id: string; name: string }>(
    db,
    'SELECT id, name FROM roles WHERE ? = ANY (permissions) ORDER BY id LIMIT ?',
    [permission, MAX_CUSTOM_ROLES],
  );
  return [...builtIn.map(({ id, name }) => ({ id, name })), ...rows];
}

/** A grant that includes a permission, as `GET /api/rbac/explain` shows it. */
export type GrantReason = {
  id: string;
  kind: 'assignment' | 'mapping';
  roleId: string;
  level: Level;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
};

type GrantRow = {
  role_id: string;
  level: Level;
  target_id: string;
  tenant_id: string;
  site_id: string | null;
};

/** Every grant of these principals, with its role. Grants of deleted roles are left out. */
export async function findGrants(db: Knex, principals: readonly string[]): Promise<Grant[]> {
  const { rows }: { rows: GrantRow[] } = await prepared(
    db,
    'SELECT role_id, level, target_id, tenant_id, site_id FROM grants WHERE principal = ANY (?::text[])',
    [[...principals]],
  );
  const roles = await findRoles(
    db,
    rows.map((row) => row.role_id),
  );
  return rows.flatMap(({ role_id, level, target_id, tenant_id, site_id }) => {
    const role = roles.get(role_id);
    if (!role) return [];
    const owner = { tenantId: tenant_id, siteId: site_id };
    const isNarrow = level === 'site' || level === 'device';
    return [{ role, level, targetId: target_id, ...(isNarrow && { owner }) }];
  });
}

/** Grants returned as reasons for a permission. One is enough to hold it. */
const MAX_REASONS = 200;

/** What a grant confers: a permission, or the use of a job type that is granted by its name. */
export type Conferred = Permission | { jobType: string };

/** SQL condition for custom roles that confer it, and the ids of the built-in ones that do. */
function rolesWith(conferred: Conferred): {
  sql: string;
  binding: Knex.RawBinding;
  builtIn: string[];
} {
  const [sql, binding, isConferred] =
    typeof conferred === 'string'
      ? ['? = ANY (permissions)', conferred, (role: Role) => role.permissions.has(conferred)]
      : [
          'job_types && ?::text[]',
          patternsCovering(conferred.jobType),
          ({ jobTypes }: Role) =>
            jobTypes.some((pattern) => coversJobType(pattern, conferred.jobType)),
        ];
  const builtIn = [...BUILT_IN_ROLES.values()].filter(isConferred).map(({ id }) => id);
  return { sql, binding, builtIn };
}

/**
 * SQL condition for grants that cover a resource scope and whose role confers something. A
 * narrower grant does not cover a wider scope: without a site, no grant at a site matches.
 */
export function coveringGrants(
  alias: string,
  conferred: Conferred,
  { tenantId, siteId, deviceId }: ResourceScope,
): { sql: string; bindings: Knex.RawBinding[] } {
  const { sql, binding, builtIn } = rolesWith(conferred);
  return {
    sql: `(${alias}.level, ${alias}.target_id)
            IN (('platform', 'platform'), ('tenant', ?), ('site', ?), ('device', ?))
         AND (${alias}.role_id = ANY (?::text[])
           OR ${alias}.role_id IN (SELECT id FROM roles WHERE ${sql}))`,
    bindings: [tenantId, siteId ?? null, deviceId ?? null, builtIn, binding],
  };
}

/** Grants of these principals that confer something and cover `resourceScope`, oldest first. */
export async function findGrantReasons(
  db: Knex,
  principals: readonly string[],
  conferred: Conferred,
  resourceScope: ResourceScope,
): Promise<GrantReason[]> {
  const covering = coveringGrants('g', conferred, resourceScope);
  const { rows }: { rows: GrantReason[] } = await db.raw(
    `SELECT g.id, g.kind, g.role_id AS "roleId", g.level, g.tenant_id AS "tenantId",
            g.site_id AS "siteId", g.device_id AS "deviceId"
     FROM grants AS g WHERE g.principal = ANY (?::text[]) AND ${covering.sql}
     ORDER BY g.id LIMIT ?`,
    [[...principals], ...covering.bindings, MAX_REASONS],
  );
  return rows;
}

/** What decides about a user's rights. `version` is that of all grants and roles. */
export type UserAuthState = {
  enabled: boolean;
  providerId: string;
  externalGroups: string[];
  version: number;
};

/**
 * Whether a user may sign in (user and provider are enabled), their groups, and the current version
 * of grants and roles. Undefined when the user does not exist.
 */
export async function findUserAuthState(
  db: Knex,
  userId: string,
): Promise<UserAuthState | undefined> {
  const { rows }: { rows: UserAuthState[] } = await prepared(
    db,
    `SELECT u.enabled AND COALESCE(p.enabled, u.provider_id = 'service') AS enabled,
            u.provider_id AS "providerId",
            u.external_groups AS "externalGroups", (SELECT version FROM access_state) AS version
     FROM users AS u LEFT JOIN providers AS p ON p.id = u.provider_id WHERE u.id = ?`,
    [userId],
  );
  return rows[0];
}

/**
 * Principals of a user: the user and each of their groups. The format must equal that of the
 * generated column `grants.principal`.
 */
export const principalsOf = (
  userId: string,
  providerId: string,
  groups: readonly string[],
): string[] => [`user:${userId}`, ...groups.map((group) => `group:${providerId}:${group}`)];

/** A resource scope, and the site at which its record is: it may be another tenant's. */
export type LocatedScope = { resourceScope: ResourceScope; atSiteId: string | null };

/**
 * Resource scope of a device, or of a site if no device is given. Undefined if it does not exist. A
 * device of one tenant at the site of another belongs to its tenant alone: a right at that site is
 * none over it.
 */
export async function findResourceScope(
  db: Knex,
  { siteId, deviceId }: { siteId: string | undefined; deviceId: string | undefined },
): Promise<LocatedScope | undefined> {
  const { rows }: { rows: { tenantId: string; siteId: string | null; atSiteId: string | null }[] } =
    deviceId === undefined
      ? await db.raw(
          'SELECT tenant_id AS "tenantId", id AS "siteId", id AS "atSiteId" FROM sites WHERE id = ?',
          [siteId ?? null],
        )
      : await db.raw(
          `SELECT tenant_id AS "tenantId", own_site_of_device(id) AS "siteId", site_id AS "atSiteId"
           FROM devices WHERE id = ?`,
          [deviceId],
        );
  return rows.map(({ atSiteId, ...owner }) => ({
    resourceScope: { ...owner, ...(deviceId !== undefined && { deviceId }) },
    atSiteId,
  }))[0];
}

/**
 * True when a tenant has a record, an account, a grant, a site or a device, or when the audit log has
 * something that was done there: gateways may name tenants that have no record.
 */
export async function isTenantInUse(db: Knex, tenantId: string): Promise<boolean> {
  const { rows }: { rows: { found: boolean }[] } = await db.raw(
    `SELECT EXISTS (SELECT FROM tenants WHERE id = t.id)
         OR EXISTS (SELECT FROM grants WHERE tenant_id = t.id)
         OR EXISTS (SELECT FROM users WHERE tenant_id = t.id)
         OR EXISTS (SELECT FROM sites WHERE tenant_id = t.id)
         OR EXISTS (SELECT FROM devices WHERE tenant_id = t.id)
         OR EXISTS (SELECT FROM audit_entries WHERE tenant_id = t.id AND outcome = 'done') AS found
     FROM (SELECT ?::text COLLATE "C" AS id) AS t`,
    [tenantId],
  );
  return assertDefined(rows[0], 'row of the tenant').found;
}

/**
 * Users who can sign in and have platform-admin at the platform by assignment. Mappings do not
 * count: whether a group still has members is known at the provider only.
 */
async function countAdministrators(trx: Knex): Promise<number> {
  const { rows }: { rows: { count: number }[] } = await trx.raw(
    `SELECT count(*) FROM grants AS g
     JOIN users AS u ON u.id = g.user_id JOIN providers AS p ON p.id = u.provider_id
     WHERE g.level = 'platform' AND g.role_id = 'platform-admin' AND u.enabled AND p.enabled`,
  );
  return assertDefined(rows[0], 'row of count(*)').count;
}

/**
 * Serializes changes of grants, roles, users and providers. Must be the first lock of a
 * transaction: the triggers of `grants` and `roles` update this row too, so locking another row
 * first can deadlock.
 */
export const lockAccess = async (trx: Knex): Promise<void> =>
  void (await trx.raw('SELECT FROM access_state FOR UPDATE'));

/**
 * Runs `change` under `lockAccess` and returns its result. Errors: those of `change`;
 * `last_administrator` if no administrator would remain, after which the transaction must roll
 * back.
 */
export async function guardLastAdministrator<T>(trx: Knex, change: () => Promise<T>): Promise<T> {
  await lockAccess(trx);
  const before = await countAdministrators(trx);
  const result = await change();
  if (before > 0 && (await countAdministrators(trx)) === 0) {
    throw new AppError(
      'last_administrator',
      'At least one enabled user must have platform-admin assigned at the platform.',
    );
  }
  return result;
}

/** Every distinct grant of these principals: the role and the scope at which it is granted. */
export async function findRoleGrants(
  db: Knex,
  principals: readonly string[],
): Promise<{ role: Role; resourceScope: ResourceScope }[]> {
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
    `SELECT DISTINCT role_id, tenant_id, site_id, device_id FROM grants
     WHERE principal = ANY (?::text[])`,
    [[...principals]],
  );
  const roles = await findRoles(
    db,
    rows.map((row) => row.role_id),
  );
  return rows.flatMap(({ role_id, tenant_id, site_id, device_id }) => {
    const role = roles.get(role_id);
    return role
      ? [{ role, resourceScope: { tenantId: tenant_id, siteId: site_id, deviceId: device_id } }]
      : [];
  });
}

/**
 * Ids of the tenants in which these principals have a grant at any level, sorted. `platform` is one
 * of them when a grant covers everything.
 */
export async function findReachableTenants(
  db: Knex,
  principals: readonly string[],
): Promise<string[]> {
  const { rows }: { rows: { tenant_id: string }[] } = await db.raw(
    'SELECT DISTINCT tenant_id FROM grants WHERE principal = ANY (?::text[]) ORDER BY tenant_id',
    [[...principals]],
  );
  return rows.map((row) => row.tenant_id);
}

/** A user, and whether they hold a permission. `enabled` is false if the provider is disabled. */
export type Holder = {
  id: string;
  tenantId: string;
  username: string;
  displayName: string;
  /** See `providerName`. */
  provider: string | null;
  enabled: boolean;
  holds: boolean;
};

/** True for an account of a person that is enabled, with its provider: service accounts have none and never decide. */
export const mayDecideSql = (users: string): string =>
  `(${users}.enabled AND EXISTS (SELECT FROM providers AS p WHERE p.id = ${users}.provider_id AND p.enabled))`;

/**
 * Users by id, in no order, each with whether they hold `permission` at `resourceScope`. Unknown
 * ids are left out.
 */
export async function findHolders(
  db: Knex,
  userIds: readonly string[],
  permission: Permission,
  resourceScope: ResourceScope,
): Promise<Holder[]> {
  const covering = coveringGrants('g', permission, resourceScope);
  const { rows }: { rows: Holder[] } = await db.raw(
    `SELECT u.id, u.tenant_id AS "tenantId", u.username, u.display_name AS "displayName",
            ${providerName('u')} AS provider, ${mayDecideSql('u')} AS enabled, EXISTS (
       SELECT FROM grants AS g
       WHERE g.principal = ANY (array_prepend('user:' || u.id,
           ARRAY(SELECT 'group:' || u.provider_id || ':' || name FROM unnest(u.external_groups) AS name)))
         AND ${covering.sql}
     ) AS holds
     FROM users AS u WHERE u.id = ANY (?::text[])`,
    [...covering.bindings, [...userIds]],
  );
  return rows;
}
