import type { Commit, Work } from '../../db/commit.ts';
import { keysetPage, type Page, type PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Session } from '../../db/models/Session.ts';
import { User } from '../../db/models/User.ts';
import {
  addTokens,
  endSessions,
  findByAccessToken,
  findSessionOfToken,
  lockByRefreshToken,
  rotate,
} from '../../db/auth/sessions.ts';
import { anonymousCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import { NO_RIGHTS } from '../../domain/access/scope.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Ids } from '../../platform/ids.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { UserRights } from '../access/rights.ts';
import { sessionTenant } from '../sessionTenant.ts';
import { newToken, tokenHash } from './tokens.ts';

export type Sessions = ReturnType<typeof createSessions>;

/** Where a request came from, as far as a session remembers it. */
export type RequestSource = Pick<Caller, 'requestId' | 'address'> & { userAgent: string | null };

/** Fresh tokens of a session, shown once. */
export type SessionTokens = {
  accessToken: string;
  refreshToken: string;
  expiresInSeconds: number;
  refreshExpiresAt: Date;
  user: User;
};

type Limits = { accessTokenSeconds: number; sessionIdleSeconds: number; sessionMaxSeconds: number };

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  rights: UserRights;
  clock: Clock;
  ids: Ids;
  limits: Limits;
};

const invalid = () =>
  new AppError(
    'session_invalid',
    'The token is unknown or expired, or its session has ended. POST /api/auth/refresh gives new tokens; else sign in again.',
  );

const later = (from: Date, seconds: number, bound?: Date) => {
  const at = from.getTime() + seconds * 1_000;
  return new Date(bound ? Math.min(at, bound.getTime()) : at);
};

/** Sessions of users: opaque tokens of which only hashes are kept, rotated at each refresh. */
export function createSessions({ db, commit, rights, clock, ids, limits }: Deps) {
  /** New tokens for a session, none of which outlives it. */
  function mint(sessionId: string, now: Date, absoluteExpiresAt: Date) {
    const access = newToken('access');
    const refresh = newToken('refresh');
    const refreshExpiresAt = later(now, limits.sessionIdleSeconds, absoluteExpiresAt);
    const accessExpiresAt = later(now, limits.accessTokenSeconds, refreshExpiresAt);
    return {
      rows: {
        sessionId,
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

  async function end(
    caller: Caller,
    session: { id: string; userId: string },
    action: string,
    reason: 'logout' | 'ended',
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

  const noteReuse = (
    source: RequestSource,
    { sessionId, userId, tenantId }: { sessionId: string; userId: string; tenantId: string },
  ) =>
    commit({ ...anonymousCaller(source), tenantId }, (work) => {
      work.audit(
        'session.reuse',
        { type: 'session', id: sessionId },
        { after: { userId }, outcome: 'denied' },
      );
    });

  return {
    /** Begins a session of `user` as part of the commit that signs them in. */
    async issue(
      work: Work<DispatchTask>,
      user: User,
      source: RequestSource,
      tenantId = user.tenantId,
    ): Promise<SessionTokens> {
      const absoluteExpiresAt = later(work.now, limits.sessionMaxSeconds);
      const sessionId = ids.next('ses');
      const { rows, tokens } = mint(sessionId, work.now, absoluteExpiresAt);
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
      return { ...tokens, user };
    },

    /** The caller that an access token stands for. Error: `session_invalid`. */
    async authenticate(
      token: string,
      { requestId, address }: Pick<Caller, 'requestId' | 'address'>,
    ): Promise<Caller> {
      const found = await findByAccessToken(db, tokenHash(token));
      if (!found?.enabled || found.expiresAt <= clock.now()) throw invalid();
      return {
        kind: 'session',
        actorId: found.userId,
        tenantId: found.tenantId,
        requestId,
        address,
        session: { id: found.sessionId, mustChangePassword: found.mustChangePassword },
        rights: found.mustChangePassword ? NO_RIGHTS : await rights.ofUser(found.userId, found),
      };
    },

    /** New tokens for a refresh token, which is spent by it. Used again, it ends the session. Error: `session_invalid`. */
    async refresh(refreshToken: string, source: RequestSource): Promise<SessionTokens> {
      const now = clock.now();
      const hash = tokenHash(refreshToken);
      const outcome = await db.transaction(async (trx) => {
        const state = await lockByRefreshToken(trx, hash, now);
        if (!state?.live) return { kind: 'invalid' as const };
        if (state.spent) {
          // One of the two who have the token is a thief: neither goes on.
          await endSessions(trx, { sessionId: state.sessionId, reason: 'reuse', now });
          return { kind: 'reused' as const, state };
        }
        const { rows, tokens } = mint(state.sessionId, now, state.absoluteExpiresAt);
        await rotate(trx, hash, rows, now);
        return { kind: 'refreshed' as const, tokens, userId: state.userId };
      });
      if (outcome.kind === 'reused') await noteReuse(source, outcome.state);
      if (outcome.kind !== 'refreshed') throw invalid();
      return {
        ...outcome.tokens,
        user: await User.query(db).findById(outcome.userId).throwIfNotFound(),
      };
    },

    /**
     * Ends the sessions of tokens of either kind, those that are live; with `everywhere`, which takes a token that is
     * still good, all sessions of its user.
     */
    async logout(
      tokens: readonly string[],
      source: RequestSource,
      everywhere: boolean,
    ): Promise<void> {
      for (const token of tokens) {
        const session = await findSessionOfToken(db, tokenHash(token), clock.now());
        if (!session) continue;
        const caller: Caller = {
          ...anonymousCaller(source),
          kind: 'session',
          actorId: session.userId,
          tenantId: session.homeTenantId,
        };
        if (!everywhere || !session.good) {
          await end(caller, session, 'session.logout', 'logout');
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

    /** The caller's own live sessions, newest first. */
    async list(caller: Caller, page: PageRequest): Promise<Page<Session>> {
      own(caller);
      const live = Session.query(db)
        .where({ user_id: caller.actorId })
        .whereNull('ended_at')
        .where('idle_expires_at', '>', clock.now());
      return keysetPage(live, page);
    },

    /** Ends one of the caller's own sessions. Error: `not_found`. */
    async endOwn(caller: Caller, sessionId: string): Promise<void> {
      own(caller);
      const session = await Session.query(db)
        .findById(sessionId)
        .where({ user_id: caller.actorId })
        .whereNull('ended_at');
      if (!session) throw notFound('session', sessionId);
      await end(caller, session, 'session.end', 'ended');
    },

    /** The caller's session with its user. Error: `session_invalid` for a caller without one. */
    async current(caller: Caller): Promise<{ session: Session; user: User }> {
      const [session, user] = await Promise.all([
        Session.query(db).findById(own(caller)),
        User.query(db).findById(caller.actorId),
      ]);
      if (!session || !user) throw invalid();
      return { session, user };
    },

    /**
     * Moves the session to another tenant where the user holds anything: new records will stand there. It gives no
     * rights. Error: `invalid_request` at `/tenantId`.
     */
    async moveTo(caller: Caller, tenantId: string): Promise<void> {
      const sessionId = own(caller);
      if (tenantId === caller.tenantId) return;
      const user = await User.query(db).findById(caller.actorId).throwIfNotFound();
      await sessionTenant(db, user, tenantId);
      await commit({ ...caller, tenantId: user.tenantId }, async (work) => {
        await Session.query(await work.trx())
          .findById(sessionId)
          .patch({ tenantId });
        work.audit(
          'session.move',
          { type: 'session', id: sessionId },
          { before: { tenantId: caller.tenantId }, after: { tenantId } },
        );
      });
    },
  };
}

/** The id of the caller's session. Error: `session_invalid`: a gateway's callers have none. */
export function own(caller: Caller): string {
  if (!caller.session)
    throw new AppError('session_invalid', 'This needs a session; identity headers have none.');
  return caller.session.id;
}
