import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { SessionEndReason } from '../models/Session.ts';
import type { UserAuthState } from '../access/access.ts';

/** The session of an access token, and what decides about its rights. */
export type SessionAuthState = UserAuthState & {
  sessionId: string;
  userId: string;
  tenantId: string;
  /** The tenant of the user. */
  homeTenantId: string;
  mustChangePassword: boolean;
  expiresAt: Date;
};

/** The session of an access token if it has not ended. Expiry is left to the caller to check. */
export async function findByAccessToken(
  db: Knex,
  hash: Buffer,
): Promise<SessionAuthState | undefined> {
  const { rows }: { rows: SessionAuthState[] } = await prepared(
    db,
    `SELECT s.id AS "sessionId", s.user_id AS "userId", s.tenant_id AS "tenantId",
            u.tenant_id AS "homeTenantId", t.expires_at AS "expiresAt",
            u.must_change_password AS "mustChangePassword", u.enabled AND p.enabled AS enabled,
            u.provider_id AS "providerId", u.external_groups AS "externalGroups",
            (SELECT version FROM access_state) AS version
     FROM session_tokens AS t JOIN sessions AS s ON s.id = t.session_id
     JOIN users AS u ON u.id = s.user_id JOIN providers AS p ON p.id = u.provider_id
     WHERE t.hash = ? AND t.kind = 'access' AND s.ended_at IS NULL`,
    [hash],
  );
  return rows[0];
}

/**
 * The session of a refresh token. `spentAt`: when the token, or the other one of its generation, was
 * used. `live`: the session can continue.
 */
export type RefreshState = {
  sessionId: string;
  userId: string;
  /** The tenant of the user. */
  homeTenantId: string;
  generation: number;
  spentAt: Date | null;
  live: boolean;
  absoluteExpiresAt: Date;
  /** The time of the database: processes compare the times of each other. */
  now: Date;
};

/** Locks the session of a refresh token, so that concurrent uses of one token are serialized. */
export async function lockByRefreshToken(
  trx: Knex.Transaction,
  hash: Buffer,
): Promise<RefreshState | undefined> {
  const { rows }: { rows: RefreshState[] } = await trx.raw(
    `SELECT s.id AS "sessionId", s.user_id AS "userId", u.tenant_id AS "homeTenantId",
            t.generation, t.spent_at AS "spentAt",
            s.ended_at IS NULL AND s.idle_expires_at > now.at AND s.absolute_expires_at > now.at
              AND u.enabled AND p.enabled AS live,
            s.absolute_expires_at AS "absoluteExpiresAt", now.at AS now
     FROM session_tokens AS t JOIN sessions AS s ON s.id = t.session_id
     JOIN users AS u ON u.id = s.user_id JOIN providers AS p ON p.id = u.provider_id
     CROSS JOIN (SELECT clock_timestamp() AS at) AS now
     WHERE t.hash = ? AND t.kind = 'refresh' FOR UPDATE OF s, t`,
    [hash],
  );
  return rows[0];
}

/** Hashes of a new token pair. `generation`: how many pairs of the session it follows. */
export type NewTokens = {
  sessionId: string;
  generation: number;
  access: { hash: Buffer; expiresAt: Date };
  refresh: { hash: Buffer; expiresAt: Date };
};

/** Adds a pair of tokens to a session. */
export const addTokens = async (
  trx: Knex,
  { sessionId, generation, access, refresh }: NewTokens,
): Promise<void> =>
  void (await trx('session_tokens').insert([
    {
      hash: access.hash,
      session_id: sessionId,
      kind: 'access',
      expires_at: access.expiresAt,
      generation,
    },
    {
      hash: refresh.hash,
      session_id: sessionId,
      kind: 'refresh',
      expires_at: refresh.expiresAt,
      generation,
    },
  ]));

/** Tokens stored for one session, spent ones included. Older ones are rejected as unknown. */
const MAX_ACCESS_TOKENS = 20;
const MAX_REFRESH_TOKENS = 500;

/** Spends the refresh tokens of a session: the one that is used, and the other of its generation. */
export const spendRefreshTokens = async (
  trx: Knex.Transaction,
  sessionId: string,
  now: Date,
): Promise<void> =>
  void (await trx('session_tokens')
    .where({ session_id: sessionId, kind: 'refresh' })
    .whereNull('spent_at')
    .update({ spent_at: now }));

/**
 * The refresh tokens of one generation of a session, which must be locked. `spent`: they have been
 * used.
 */
export async function countRefreshTokens(
  trx: Knex.Transaction,
  sessionId: string,
  generation: number,
): Promise<{ issued: number; spent: number }> {
  const { rows }: { rows: { issued: number; spent: number }[] } = await trx.raw(
    `SELECT count(*)::integer AS issued, count(spent_at)::integer AS spent
     FROM session_tokens WHERE session_id = ? AND kind = 'refresh' AND generation = ?`,
    [sessionId, generation],
  );
  return rows[0] ?? { issued: 0, spent: 0 };
}

/** Continues a session with new tokens. Earlier access tokens stay valid until they expire. */
export async function continueSession(
  trx: Knex.Transaction,
  tokens: NewTokens,
  now: Date,
): Promise<void> {
  await addTokens(trx, tokens);
  await trx('sessions')
    .where({ id: tokens.sessionId })
    .update({ refreshed_at: now, idle_expires_at: tokens.refresh.expiresAt });
  await trx.raw(
    `DELETE FROM session_tokens WHERE hash IN (
       (SELECT hash FROM session_tokens WHERE session_id = :id AND kind = 'access'
        ORDER BY expires_at DESC OFFSET :access)
       UNION ALL
       (SELECT hash FROM session_tokens WHERE session_id = :id AND kind = 'refresh'
        ORDER BY spent_at DESC NULLS FIRST OFFSET :refresh))`,
    { id: tokens.sessionId, access: MAX_ACCESS_TOKENS, refresh: MAX_REFRESH_TOKENS },
  );
}

/**
 * One session; all sessions of a user, except possibly one; or all sessions of a provider's users.
 */
type SessionSelector =
  { sessionId: string } | { userId: string; exceptId?: string } | { providerId: string };

/** Ends sessions. Returns the number of sessions ended. */
export async function endSessions(
  trx: Knex,
  { reason, now, ...selector }: SessionSelector & { reason: SessionEndReason; now: Date },
): Promise<number> {
  const live = trx('sessions').whereNull('ended_at').update({ ended_at: now, end_reason: reason });
  if ('sessionId' in selector) return live.where({ id: selector.sessionId });
  if ('providerId' in selector)
    return live.whereIn(
      'user_id',
      trx('users').select('id').where({ provider_id: selector.providerId }),
    );
  return selector.exceptId === undefined
    ? live.where({ user_id: selector.userId })
    : live.where({ user_id: selector.userId }).whereNot({ id: selector.exceptId });
}

/** Sessions of a user that continue, the new one included. */
const MAX_SESSIONS = 100;

/** Ends the sessions of a user that were refreshed longest ago, if there are too many. */
export const endOldestSessions = async (trx: Knex, userId: string, now: Date): Promise<void> =>
  void (await trx.raw(
    `UPDATE sessions SET ended_at = ?, end_reason = 'too_many_sessions' WHERE id IN (
       SELECT id FROM sessions WHERE user_id = ? AND ended_at IS NULL AND idle_expires_at > ?
       ORDER BY refreshed_at DESC, id DESC OFFSET ?)`,
    [now, userId, now, MAX_SESSIONS],
  ));

/** The session of a token. `usable`: the token itself is neither spent nor expired. */
export type TokenOwner = { id: string; userId: string; homeTenantId: string; usable: boolean };

/** The live session that an access or refresh token belongs to. */
export async function findSessionOfToken(
  db: Knex,
  hash: Buffer,
  now: Date,
): Promise<TokenOwner | undefined> {
  const { rows }: { rows: TokenOwner[] } = await db.raw(
    `SELECT s.id, s.user_id AS "userId", u.tenant_id AS "homeTenantId",
            t.spent_at IS NULL AND t.expires_at > ? AS usable
     FROM session_tokens AS t JOIN sessions AS s ON s.id = t.session_id
     JOIN users AS u ON u.id = s.user_id
     WHERE t.hash = ? AND s.ended_at IS NULL`,
    [now, hash],
  );
  return rows[0];
}

/** True while a session has not ended. */
export const isSessionLive = async (db: Knex, sessionId: string): Promise<boolean> =>
  (await db('sessions').where({ id: sessionId }).whereNull('ended_at').first('id')) !== undefined;
