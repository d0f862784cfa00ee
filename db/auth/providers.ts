import type { Knex } from '../core/knex.ts';

/** Every principal that signs in through a provider: its mapped groups, and its users who have grants of their own. */
export async function findProviderPrincipals(db: Knex, providerId: string): Promise<string[]> {
  const { rows }: { rows: { principal: string }[] } = await db.raw(
    `SELECT DISTINCT principal FROM grants
     WHERE provider_id = ? OR user_id IN (SELECT id FROM users WHERE provider_id = ?)`,
    [providerId, providerId],
  );
  return rows.map(({ principal }) => principal);
}

export type MappedRole = {
  mappingId: string;
  externalGroup: string;
  roleId: string;
  level: string;
  tenantId: string;
  siteId: string | null;
  deviceId: string | null;
};

/** The mappings that members of these groups profit from. */
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

export type LoginRow = {
  id: string;
  provider_id: string;
  sealed: string;
  return_to: string;
  outcome: string | null;
};

type NewLogin = LoginRow & { state_hash: Buffer; browser_hash: Buffer; expires_at: Date };

/** Remembers a sign-in that a browser has begun. */
export const insertLogin = async (db: Knex, login: NewLogin): Promise<void> =>
  void (await db('logins').insert(login));

/** Answers that may be tried for one sign-in: checking one costs a lot. */
const MAX_ANSWERS = 5;

/** A sign-in that waits for its answer, with no look at who asks; each call counts. */
export async function findWaitingLogin(
  db: Knex,
  stateHash: Buffer,
  now: Date,
): Promise<LoginRow | undefined> {
  const rows: LoginRow[] = await db('logins')
    .where({ state_hash: stateHash })
    .whereNull('used_at')
    .whereNull('outcome')
    .where('expires_at', '>', now)
    .where('attempts', '<', MAX_ANSWERS)
    .increment('attempts', 1)
    .returning(['id', 'provider_id', 'sealed', 'return_to', 'outcome']);
  return rows[0];
}

/** Keeps what a provider answered until the browser that began comes for it; false when there is an answer already. */
export const keepOutcome = async (db: Knex, id: string, outcome: string): Promise<boolean> =>
  (await db('logins')
    .where({ id })
    .whereNull('used_at')
    .whereNull('outcome')
    .update({ outcome })) === 1;

/** Takes a sign-in, once, for the browser that began it. */
export async function takeLogin(
  db: Knex,
  { stateHash, browserHash, now }: { stateHash: Buffer; browserHash: Buffer; now: Date },
): Promise<LoginRow | undefined> {
  const rows: LoginRow[] = await db('logins')
    .where({ state_hash: stateHash, browser_hash: browserHash })
    .whereNull('used_at')
    .where('expires_at', '>', now)
    .update({ used_at: now })
    .returning(['id', 'provider_id', 'sealed', 'return_to', 'outcome']);
  return rows[0];
}
