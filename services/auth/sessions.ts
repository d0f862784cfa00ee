import { ignoreNoChange, NoChange, type Commit, type Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import { Session } from '../../db/models/Session.ts';
import { User } from '../../db/models/User.ts';
import {
  addTokens,
  continueSession,
  countRefreshTokens,
  endOldestSessions,
  endSessions,
  findByAccessToken,
  findSessionOfToken,
  lockByRefreshToken,
  spendRefreshTokens,
  type RefreshState,
} from '../../db/auth/sessions.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import { NO_RIGHTS, workingTenant } from '../../domain/access/scope.ts';
import type { SessionDetails, UserDetails } from '../../domain/auth/users.ts';
import type { Ids } from '../../platform/ids.ts';
import type { UserRights } from '../access/rights.ts';
import type { DeniedAttempts } from '../audit/deniedAttempts.ts';
import { applyClaims, type IdentityClaims } from './identityClaims.ts';
import { resolveSessionTenant } from './sessionTenant.ts';
import { hashToken } from './hashToken.ts';
import { newLoginSecret } from './loginSecrets.ts';

export type Sessions = ReturnType<typeof createSessions>;

/** Origin of a request, as stored in its session. */
export type RequestSource = Pick<Caller, 'requestId' | 'address'> & { userAgent: string | null };

/** New tokens of a session. They are returned once; only hashes are stored. */
export type SessionTokens = {
  accessToken: string;
  refreshToken: string;
  expiresInSeconds: number;
  refreshExpiresAt: Date;
  user: UserDetails;
};

type SessionLimits = {
  accessTokenSeconds: number;
  refreshLeewaySeconds: number;
  sessionIdleSeconds: number;
  sessionMaxSeconds: number;
};

type Deps = {
  db: Knex;
  commit: Commit;
  rights: UserRights;
  ids: Ids;
  deniedAttempts: DeniedAttempts;
  limits: SessionLimits;
};

const sessionInvalid = () =>
  new AppError(
    'session_invalid',
    'The token is invalid or expired, or its session has ended. Get new tokens with POST /api/auth/refresh, or sign in again.',
  );

const tokenReplaced = () =>
  new AppError(
    'session_invalid',
    'The refresh token was replaced moments ago. Use the tokens that replaced it.',
    // Pages repeat the request: by then the browser has the next cookie.
    { retryAfterSeconds: 1 },
  );

const addSeconds = (from: Date, seconds: number, bound?: Date) => {
  const at = from.getTime() + seconds * 1_000;
  return new Date(bound ? Math.min(at, bound.getTime()) : at);
};

/** Sessions of users, with opaque tokens. Each refresh replaces the tokens. */
export function createSessions({ db, commit, rights, ids, deniedAttempts, limits }: Deps) {
  /** New tokens for a session. None expires after the session. */
  function issueTokens(
    {
      sessionId,
      generation,
      absoluteExpiresAt,
    }: Pick<RefreshState, 'sessionId' | 'generation' | 'absoluteExpiresAt'>,
    now: Date,
  ) {
    const access = newLoginSecret('access');
    const refresh = newLoginSecret('refresh');
    const refreshExpiresAt = addSeconds(now, limits.sessionIdleSeconds, absoluteExpiresAt);
    const accessExpiresAt = addSeconds(now, limits.accessTokenSeconds, refreshExpiresAt);
    return {
      rows: {
        sessionId,
        generation,
        access: { hash: access.hash, expiresAt: accessExpiresAt },
        refresh: { hash: refresh.hash, expiresAt: refreshExpiresAt },
      },
      tokens: {
        accessToken: access.token,
        refreshToken: refresh.token,
        refreshExpiresAt,
        expiresInSeconds: Math.floor((accessExpiresAt.getTime() - now.getTime()) / 1_000),
      },
    };
  }

  /** The caller in the tenant of their account, whose audit log has what they do to their sessions. */
  async function inOwnTenant(caller: Caller): Promise<Caller> {
    const { tenantId } = await User.query(db).findById(caller.actorId).throwIfNotFound();
    return { ...caller, tenantId };
  }

  async function endSession(
    caller: Caller,
    session: { id: string; userId: string },
    action: string,
    reason: 'logout' | 'revoked',
  ) {
    await commit(caller, async (work) => {
      await endSessions(await work.trx(), { sessionId: session.id, reason, now: work.now });
      work.audit(
        action,
        { type: 'session', id: session.id },
        { after: { userId: session.userId } },
      );
    });
  }

  /** The use of a spent token is audited at the account, not in the tenant that the session works in. */
  const recordTokenUse = (
    source: RequestSource,
    { sessionId, userId, homeTenantId }: RefreshState,
    action: 'session.token_reuse' | 'session.token_repeated',
    outcome: 'denied' | 'done',
  ) =>
    commit({ ...anonymousCaller(source), tenantId: homeTenantId }, (work) => {
      const after = { sessionId, userId };
      work.audit(action, { type: 'user', id: userId }, { after, outcome });
    });

  /**
   * What a spent token is worth. Within the leeway it is worth one more pair, as long as the first
   * one is not used; further uses change nothing. Later it was probably stolen.
   */
  async function judgeSpentToken(
    trx: Knex.Transaction,
    { sessionId, generation, now }: RefreshState,
    spentAt: Date,
  ): Promise<'repeated' | 'refused' | 'reused'> {
    const leewayMs = limits.refreshLeewaySeconds * 1_000;
    // One that was spent while this use waited for the lock is spent later than now.
    if (leewayMs === 0 || now.getTime() - spentAt.getTime() >= leewayMs) return 'reused';
    const { issued, spent } = await countRefreshTokens(trx, sessionId, generation + 1);
    return issued === 1 && spent === 0 ? 'repeated' : 'refused';
  }

  /** Issues the next tokens of a session whose row is locked, or ends the session. */
  async function exchange(trx: Knex.Transaction, hash: Buffer) {
    const state = await lockByRefreshToken(trx, hash);
    if (!state?.live) return { kind: 'invalid' as const };
    const { now } = state;
    const kind = state.spentAt
      ? await judgeSpentToken(trx, state, state.spentAt)
      : ('refreshed' as const);
    if (kind === 'refused') return { kind, state };
    if (kind === 'reused') {
      // Owner and thief cannot be distinguished, so neither may continue.
      await endSessions(trx, { sessionId: state.sessionId, reason: 'token_reuse', now });
      return { kind, state };
    }
    if (kind === 'refreshed') await spendRefreshTokens(trx, state.sessionId, now);
    const next = { ...state, generation: state.generation + 1 };
    const { rows, tokens } = issueTokens(next, now);
    await continueSession(trx, rows, now);
    return { kind, state, tokens };
  }

  /** Audits every use of a spent token. */
  async function recordExchange(
    source: RequestSource,
    outcome: Awaited<ReturnType<typeof exchange>>,
  ): Promise<void> {
    const { kind } = outcome;
    if (kind === 'reused')
      await recordTokenUse(source, outcome.state, 'session.token_reuse', 'denied');
    if (kind === 'repeated')
      await recordTokenUse(source, outcome.state, 'session.token_repeated', 'done');
    if (kind !== 'refused') return;
    const { sessionId, userId, homeTenantId } = outcome.state;
    await deniedAttempts.record(
      { ...anonymousCaller(source), tenantId: homeTenantId },
      'session.token_repeated',
      { sessionId, userId },
      { accountId: userId, subject: { type: 'user', id: userId } },
    );
  }

  return {
    /**
     * Creates a session of `user` within the commit of the login. It ends at `endsAt` at the latest.
     * The oldest one ends if the user has too many.
     */
    async start(
      work: Work,
      user: User,
      source: RequestSource,
      tenantId = user.tenantId,
      endsAt?: Date,
    ): Promise<SessionTokens> {
      const absoluteExpiresAt = addSeconds(work.now, limits.sessionMaxSeconds, endsAt);
      const sessionId = ids.next('ses');
      const first = { sessionId, generation: 0, absoluteExpiresAt };
      const { rows, tokens } = issueTokens(first, work.now);
      const trx = await work.trx();
      await Session.query(trx).insert({
        id: sessionId,
        userId: user.id,
        tenantId,
        address: source.address,
        userAgent: source.userAgent?.slice(0, 255) ?? null,
        createdAt: work.now,
        refreshedAt: work.now,
        idleExpiresAt: rows.refresh.expiresAt,
        absoluteExpiresAt,
        endedAt: null,
        endReason: null,
      });
      await addTokens(trx, rows);
      await endOldestSessions(trx, user.id, work.now);
      return { ...tokens, user };
    },

    /** Caller of an access token. Error: `session_invalid`. */
    async authenticate(
      token: string,
      { requestId, address }: Pick<Caller, 'requestId' | 'address'>,
    ): Promise<Caller> {
      const authState = await findByAccessToken(db, hashToken(token));
      if (!authState?.enabled || authState.expiresAt <= new Date()) throw sessionInvalid();
      const { tenantId: chosen, homeTenantId: home } = authState;
      const held = await rights.forUser(authState.userId, authState);
      return {
        kind: 'session',
        actorId: authState.userId,
        tenantId: workingTenant(held, { chosen, home }),
        requestId,
        address,
        session: { id: authState.sessionId, mustChangePassword: authState.mustChangePassword },
        rights: authState.mustChangePassword ? NO_RIGHTS : held,
      };
    },

    /** See `applyClaims`. Error: `identity_mismatch`. */
    applyClaims: (caller: Caller, claims: IdentityClaims): Promise<Caller> =>
      applyClaims(db, caller, claims),

    /**
     * Exchanges a refresh token for new tokens. Using a spent refresh token again ends the session,
     * since it was probably stolen (RFC 9700, 4.14.2), unless it was spent moments ago: two pages
     * of a browser, or one whose response was lost, send the same token. Error: `session_invalid`.
     */
    async refresh(refreshToken: string, source: RequestSource): Promise<SessionTokens> {
      const hash = hashToken(refreshToken);
      const outcome = await db.transaction((trx) => exchange(trx, hash));
      await recordExchange(source, outcome);
      if (outcome.kind === 'refused') throw tokenReplaced();
      if (outcome.kind === 'invalid' || outcome.kind === 'reused') throw sessionInvalid();
      return {
        ...outcome.tokens,
        user: await User.query(db).findById(outcome.state.userId).throwIfNotFound(),
      };
    },

    /**
     * Ends the live sessions of access or refresh tokens. With `everywhere`, a token that is
     * neither spent nor expired ends all sessions of its user.
     */
    async logout(
      tokens: readonly string[],
      source: RequestSource,
      everywhere: boolean,
    ): Promise<void> {
      for (const token of tokens) {
        const session = await findSessionOfToken(db, hashToken(token), new Date());
        if (!session) continue;
        const caller: Caller = {
          ...anonymousCaller(source),
          kind: 'session',
          actorId: session.userId,
          tenantId: session.homeTenantId,
        };
        if (!everywhere || !session.usable) {
          await endSession(caller, session, 'session.logout', 'logout');
          continue;
        }
        await commit(caller, async (work) => {
          const ended = await endSessions(await work.trx(), {
            userId: session.userId,
            reason: 'logout',
            now: work.now,
          });
          work.audit(
            'session.logout',
            { type: 'user', id: session.userId },
            { after: { everywhere: true, ended } },
          );
        });
      }
    },

    /** The caller's own live sessions. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<SessionDetails>> {
      requireSessionId(caller);
      const visible = () =>
        Session.query(db)
          .where({ user_id: caller.actorId })
          .whereNull('ended_at')
          .where('idle_expires_at', '>', new Date());
      return readList({ db, visible }, request);
    },

    /** Ends one of the caller's own sessions. Error: `not_found`. */
    async endOwn(caller: Caller, sessionId: string): Promise<void> {
      requireSessionId(caller);
      const session = await Session.query(db)
        .findById(sessionId)
        .where({ user_id: caller.actorId })
        .whereNull('ended_at');
      if (!session) throw notFound('session', sessionId);
      await endSession(await inOwnTenant(caller), session, 'session.revoke', 'revoked');
    },

    /** Ends the caller's other sessions. */
    async endOthers(caller: Caller): Promise<void> {
      const exceptId = requireSessionId(caller);
      await commit(await inOwnTenant(caller), async (work) => {
        const ended = await endSessions(await work.trx(), {
          userId: caller.actorId,
          exceptId,
          reason: 'revoked',
          now: work.now,
        });
        if (ended === 0) throw new NoChange();
        work.audit(
          'session.revoke',
          { type: 'user', id: caller.actorId },
          { after: { others: true, ended } },
        );
      }).catch(ignoreNoChange(undefined));
    },

    /** The caller's session with its user. Error: `session_invalid` for a caller without one. */
    async current(caller: Caller): Promise<{ session: SessionDetails; user: UserDetails }> {
      const [session, user] = await Promise.all([
        Session.query(db).findById(requireSessionId(caller)),
        User.query(db).findById(caller.actorId),
      ]);
      if (!session || !user) throw sessionInvalid();
      return { session, user };
    },

    /**
     * Changes the tenant that new records of the session belong to. The user needs a grant in it;
     * the change itself grants nothing. Error: `invalid_request` at `/tenantId`.
     */
    async switchTenant(caller: Caller, tenantId: string): Promise<void> {
      const sessionId = requireSessionId(caller);
      // The tenant of the request may be another one, from its headers.
      const before = await Session.query(db).findById(sessionId).throwIfNotFound();
      const user = await User.query(db).findById(caller.actorId).throwIfNotFound();
      await resolveSessionTenant(db, user, tenantId);
      if (tenantId === before.tenantId) return;
      await commit({ ...caller, tenantId: user.tenantId }, async (work) => {
        await Session.query(await work.trx())
          .findById(sessionId)
          .patch({ tenantId });
        work.audit(
          'session.switch_tenant',
          { type: 'session', id: sessionId },
          { before: { tenantId: before.tenantId }, after: { tenantId } },
        );
      });
    },
  };
}

/** Id of the caller's session. Error: `session_invalid` for callers without one (gateways). */
export function requireSessionId(caller: Caller): string {
  if (!caller.session)
    throw new AppError(
      'session_invalid',
      'This operation requires a session; identity headers have none.',
    );
  return caller.session.id;
}
