import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import type { EndReason } from '../models/Session.ts';
import type { Standing } from '../access/access.ts';

/** What an access token leads to. */
export type SessionStanding = Standing & {
  sessionId: string;
  userId: string;
  tenantId: string;
  mustChangePassword: boolean;
  expiresAt: Date;
};

/** The live session of an access token, with everything that decides about its rights, in one look. */
export async function findByAccessToken(
  db: Knex,
  hash: Buffer,
): Promise<SessionStanding | undefined> {
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
  sessionId: string;
  userId: string;
  tenantId: string;
  spent: boolean;
  live: boolean;
  absoluteExpiresAt: Date;
};

/** The session of a refresh token, locked: of two that come with the same token one is second. */
export async function lockByRefreshToken(
  trx: Knex.Transaction,
  hash: Buffer,
  now: Date,
): Promise<RefreshState | undefined> {
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
  sessionId: string;
  access: { hash: Buffer; expiresAt: Date };
  refresh: { hash: Buffer; expiresAt: Date };
};

/** Adds a pair of tokens to a session. */
export const addTokens = async (
  trx: Knex,
  { sessionId, access, refresh }: NewTokens,
): Promise<void> =>
  void (await trx('session_tokens').insert([
    { hash: access.hash, session_id: sessionId, kind: 'access', expires_at: access.expiresAt },
    { hash: refresh.hash, session_id: sessionId, kind: 'refresh', expires_at: refresh.expiresAt },
  ]));

/** Tokens that are kept of one session, spent ones included; older ones are just unknown. */
const MAX_ACCESS_TOKENS = 20;
const MAX_REFRESH_TOKENS = 500;

/** Replaces a refresh token; the last access tokens of before work until they expire. */
export async function rotate(
  trx: Knex.Transaction,
  spent: Buffer,
  tokens: NewTokens,
  now: Date,
): Promise<void> {
  await trx('session_tokens').where({ hash: spent }).update({ spent_at: now });
  await addTokens(trx, tokens);
  await trx('sessions')
    .where({ id: tokens.sessionId })
    .update({ refreshed_at: now, idle_expires_at: tokens.refresh.expiresAt });
  await trx.raw(
    `DELETE FROM session_tokens WHERE hash IN (
       (SELECT hash FROM session_tokens WHERE session_id = :id AND kind = 'access' ORDER BY expires_at DESC OFFSET :access)
       UNION ALL
       (SELECT hash FROM session_tokens WHERE session_id = :id AND kind = 'refresh' ORDER BY spent_at DESC NULLS FIRST OFFSET :refresh))`,
    { id: tokens.sessionId, access: MAX_ACCESS_TOKENS, refresh: MAX_REFRESH_TOKENS },
  );
}

/** Which sessions: one, all of a user but perhaps one, or all of everybody who signs in with a provider. */
type Whose = { sessionId: string } | { userId: string; exceptId?: string } | { providerId: string };

/** Ends sessions at once. Returns how many were live. */
export async function endSessions(
  trx: Knex,
  { reason, now, ...whose }: Whose & { reason: EndReason; now: Date },
): Promise<number> {
  const live = trx('sessions').whereNull('ended_at').update({ ended_at: now, end_reason: reason });
  if ('sessionId' in whose) return live.where({ id: whose.sessionId });
  if ('providerId' in whose)
    return live.whereIn(
      'user_id',
      trx('users').select('id').where({ provider_id: whose.providerId }),
    );
  return whose.exceptId === undefined
    ? live.where({ user_id: whose.userId })
    : live.where({ user_id: whose.userId }).whereNot({ id: whose.exceptId });
}

export type TokenOwner = { id: string; userId: string; homeTenantId: string; good: boolean };

/** The live session that a token of either kind belongs to; `good` when the token itself could still be used. */
export async function findSessionOfToken(
  db: Knex,
  hash: Buffer,
  now: Date,
): Promise<TokenOwner | undefined> {
  const { rows }: { rows: TokenOwner[] } = await db.raw(
    `SELECT s.id, s.user_id AS "userId", u.tenant_id AS "homeTenantId", t.spent_at IS NULL AND t.expires_at > ? AS good
     FROM session_tokens AS t JOIN sessions AS s ON s.id = t.session_id JOIN users AS u ON u.id = s.user_id
     WHERE t.hash = ? AND s.ended_at IS NULL`,
    [now, hash],
  );
  return rows[0];
}

/** True while a session has not ended. */
export const isLive = async (db: Knex, sessionId: string): Promise<boolean> =>
  (await db('sessions').where({ id: sessionId }).whereNull('ended_at').first('id')) !== undefined;
