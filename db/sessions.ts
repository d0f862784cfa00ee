import type { Knex } from './knex.ts';
import { prepared } from './prepared.ts';
import type { EndReason } from './models/Session.ts';
import type { Standing } from './access.ts';

/** What an access token leads to. */
export type SessionStanding = Standing & {
  sessionId: string; userId: string; tenantId: string; mustChangePassword: boolean; expiresAt: Date;
};

/** The live session of an access token, with everything that decides about its rights, in one look. */
export async function findByAccessToken(db: Knex, hash: Buffer): Promise<SessionStanding | undefined> {
  const { rows }: { rows: SessionStanding[] } = await prepared(
    db,
    `SELECT s.id AS "sessionId", s.user_id AS "userId", s.tenant_id AS "tenantId", t.expires_at AS "expiresAt",
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

export type RefreshState = {
  sessionId: string; userId: string; tenantId: string; spent: boolean; live: boolean; absoluteExpiresAt: Date;
};

/** The session of a refresh token, locked: of two that come with the same token one is second. */
export async function lockByRefreshToken(trx: Knex.Transaction, hash: Buffer, now: Date): Promise<RefreshState | undefined> {
  const { rows }: { rows: RefreshState[] } = await trx.raw(
    `SELECT s.id AS "sessionId", s.user_id AS "userId", s.tenant_id AS "tenantId", t.spent_at IS NOT NULL AS spent,
            s.ended_at IS NULL AND s.idle_expires_at > ? AND s.absolute_expires_at > ? AND u.enabled AND p.enabled AS live,
            s.absolute_expires_at AS "absoluteExpiresAt"
     FROM session_tokens AS t JOIN sessions AS s ON s.id = t.session_id
     JOIN users AS u ON u.id = s.user_id JOIN providers AS p ON p.id = u.provider_id
     WHERE t.hash = ? AND t.kind = 'refresh' FOR UPDATE OF s, t`,
    [now, now, hash],
  );
  return rows[0];
}

export type NewTokens = {
  sessionId: string; access: { hash: Buffer; expiresAt: Date }; refresh: { hash: Buffer; expiresAt: Date };
};

/** Adds a pair of tokens to a session. */
export const addTokens = async (trx: Knex, { sessionId, access, refresh }: NewTokens): Promise<void> =>
  void (await trx('session_tokens').insert([
    { hash: access.hash, session_id: sessionId, kind: 'access', expires_at: access.expiresAt },
    { hash: refresh.hash, session_id: sessionId, kind: 'refresh', expires_at: refresh.expiresAt },
  ]));

/** Replaces a refresh token; access tokens of before work until they expire. */
export async function rotate(trx: Knex.Transaction, spent: Buffer, tokens: NewTokens, now: Date): Promise<void> {
  await trx('session_tokens').where({ hash: spent }).update({ spent_at: now });
  await trx('session_tokens').where({ session_id: tokens.sessionId, kind: 'access' }).where('expires_at', '<', now).delete();
  await addTokens(trx, tokens);
  await trx('sessions').where({ id: tokens.sessionId })
    .update({ refreshed_at: now, idle_expires_at: tokens.refresh.expiresAt });
}

type Ending = { userId?: string; providerId?: string; sessionId?: string; exceptId?: string | undefined; reason: EndReason; now: Date };

/** Ends sessions at once. Returns how many were live. */
export async function endSessions(trx: Knex, { userId, providerId, sessionId, exceptId, reason, now }: Ending): Promise<number> {
  const query = trx('sessions').whereNull('ended_at').update({ ended_at: now, end_reason: reason });
  if (userId !== undefined) void query.where({ user_id: userId });
  if (sessionId !== undefined) void query.where({ id: sessionId });
  if (exceptId !== undefined) void query.whereNot({ id: exceptId });
  if (providerId !== undefined) void query.whereIn('user_id', trx('users').select('id').where({ provider_id: providerId }));
  return query;
}

/** The session that a token of either kind belongs to, spent or not, while it is live. */
export async function findSessionOfToken(db: Knex, hash: Buffer): Promise<{ id: string; userId: string } | undefined> {
  const row = await db('session_tokens').join('sessions', 'sessions.id', 'session_tokens.session_id')
    .where({ hash }).whereNull('ended_at').first('sessions.id', 'sessions.user_id');
  return row && { id: row.id, userId: row.user_id };
}

/** Forgets sessions and logins that ran out before `before`, and counts of attempts, at most `limit` each. Returns the largest number. */
export async function purgeSessions(db: Knex, before: Date, limit: number): Promise<number> {
  const purge = async (table: string, key: string, column: string, bound: Date | number) => {
    const { rowCount } = await db.raw<{ rowCount: number }>(
      'DELETE FROM ?? WHERE ?? IN (SELECT ?? FROM ?? WHERE ?? < ? ORDER BY ?? LIMIT ?)', [table, key, key, table, column, bound, column, limit],
    );
    return rowCount;
  };
  return Math.max(
    await purge('sessions', 'id', 'absolute_expires_at', before),
    await purge('logins', 'id', 'expires_at', before),
    await purge('rate_limits', 'key', 'expire', before.getTime()),
  );
}
