import type { Knex } from '../core/knex.ts';
import { Provider } from '../models/Provider.ts';

/**
 * Principals with grants that sign in through a provider: its mapped groups, and its users who have
 * role assignments.
 */
export async function findProviderPrincipals(db: Knex, providerId: string): Promise<string[]> {
  const { rows }: { rows: { principal: string }[] } = await db.raw(
    `SELECT DISTINCT principal FROM grants
     WHERE provider_id = ? OR user_id IN (SELECT id FROM users WHERE provider_id = ?)`,
    [providerId, providerId],
  );
  return rows.map(({ principal }) => principal);
}

/** A role that a provider mapping grants. */
export type MappedRole = {
  mappingId: string;
  externalGroup: string;
  roleId: string;
  level: string;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
};

/** Up to 1,000 mappings of these groups, oldest first. */
export async function findMappings(
  db: Knex,
  providerId: string,
  groups: readonly string[],
): Promise<MappedRole[]> {
  return db('grants')
    .where({ kind: 'mapping', provider_id: providerId })
    .whereIn('external_group', [...groups])
    .orderBy('id')
    .limit(1_000)
    .select({
      mappingId: 'id',
      externalGroup: 'external_group',
      roleId: 'role_id',
      level: 'level',
      tenantId: 'tenant_id',
      siteId: 'site_id',
      deviceId: 'device_id',
    });
}

/**
 * An OIDC or SAML login in progress. `sealed_request` is what the response is checked against,
 * `sealed_profile` the verified profile of a SAML response, with the hash of the ticket that collects
 * it; both are encrypted.
 */
export type PendingLoginRow = {
  id: string;
  provider_id: string;
  sealed_request: string;
  return_to: string;
  sealed_profile: string | null;
  /** Path at which the browser continues if the login fails; null: the default. */
  failure_to: string | null;
};

type NewPendingLogin = PendingLoginRow & {
  state_hash: Buffer;
  browser_hash: Buffer;
  expires_at: Date;
};

const PENDING_LOGIN_COLUMNS = [
  'id',
  'provider_id',
  'sealed_request',
  'return_to',
  'sealed_profile',
  'failure_to',
] as const;

/** Stores a login that a browser has started. */
export const insertPendingLogin = async (db: Knex, login: NewPendingLogin): Promise<void> =>
  void (await db('logins').insert(login));

/** SAML responses checked for one login, since checking a signature is expensive. */
const MAX_RESPONSES = 5;

/**
 * The login with this state that has no response yet, from any browser. Counts an attempt;
 * undefined when there is none, it has expired, or it has had too many attempts.
 */
export async function findPendingLogin(
  db: Knex,
  stateHash: Buffer,
  now: Date,
): Promise<PendingLoginRow | undefined> {
  const rows: PendingLoginRow[] = await db('logins')
    .where({ state_hash: stateHash })
    .whereNull('used_at')
    .whereNull('sealed_profile')
    .where('expires_at', '>', now)
    .where('attempts', '<', MAX_RESPONSES)
    .increment('attempts', 1)
    .returning([...PENDING_LOGIN_COLUMNS]);
  return rows[0];
}

/** The provider of a login that is in progress, and where the browser continues if it fails. */
export const findPendingProvider = (
  db: Knex,
  stateHash: Buffer,
  now: Date,
): Promise<Pick<PendingLoginRow, 'provider_id' | 'failure_to'> | undefined> =>
  db('logins')
    .where({ state_hash: stateHash })
    .whereNull('used_at')
    .where('expires_at', '>', now)
    .first('provider_id', 'failure_to');

/** Stores what a response is worth. Returns false when the login already has one or was used. */
export const savePendingProfile = async (
  db: Knex,
  id: string,
  sealedProfile: string,
): Promise<boolean> =>
  (await db('logins')
    .where({ id })
    .whereNull('used_at')
    .whereNull('sealed_profile')
    .update({ sealed_profile: sealedProfile })) === 1;

/**
 * Marks a login as used and returns it, once. It is used also when another browser asks for it, so
 * that nobody completes it later; the result is undefined then.
 */
export async function consumePendingLogin(
  db: Knex,
  { stateHash, browserHash, now }: { stateHash: Buffer; browserHash: Buffer; now: Date },
): Promise<PendingLoginRow | undefined> {
  const rows: (PendingLoginRow & { browser_hash: Buffer })[] = await db('logins')
    .where({ state_hash: stateHash })
    .whereNull('used_at')
    .where('expires_at', '>', now)
    .update({ used_at: now })
    .returning([...PENDING_LOGIN_COLUMNS, 'browser_hash']);
  return rows.find((row) => row.browser_hash.equals(browserHash));
}

/** Whether another OIDC provider uses the callback without an id, which only one may use. */
export async function isSharedCallbackTaken(db: Knex, exceptId = ''): Promise<boolean> {
  const others = await Provider.query(db)
    .where({ kind: 'oidc' })
    .whereNot({ id: exceptId })
    .select('config');
  return others.some(({ config }) => config.ownCallback !== true);
}
