import { endSessions } from '../../db/auth/sessions.ts';
import { ignoreNoChange, NoChange, type Commit } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import { Session } from '../../db/models/Session.ts';
import type { SessionDetails } from '../../domain/auth/users.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Users } from './users.ts';

export type UserSessions = ReturnType<typeof createUserSessions>;

type Deps = { db: Knex; commit: Commit; users: Pick<Users, 'read' | 'findToChange'> };

/** Sessions of users, for those who may read or change the accounts. */
export function createUserSessions({ db, commit, users }: Deps) {
  const live = (userId: string) =>
    Session.query(db)
      .where({ user_id: userId })
      .whereNull('ended_at')
      .where('idle_expires_at', '>', new Date());

  return {
    /** The live sessions of a user. Error: `not_found`. */
    async list(
      caller: Caller,
      userId: string,
      request: ListRequest,
    ): Promise<ListAnswer<SessionDetails>> {
      const { id } = await users.read(caller, userId, 'user:write');
      return readList({ db, visible: () => live(id) }, request);
    },

    /** Ends one session of a user. Errors: `not_found`, `permission_denied`. */
    async end(caller: Caller, userId: string, sessionId: string): Promise<void> {
      const { id, tenantId } = await users.findToChange(caller, userId);
      const session = await live(id).findById(sessionId);
      if (!session) throw notFound('session', sessionId);
      await commit({ ...caller, tenantId }, async (work) => {
        await endSessions(await work.trx(), { sessionId, reason: 'revoked', now: work.now });
        const subject = { type: 'session', id: sessionId };
        work.audit('session.revoke', subject, { after: { userId: id } });
      });
    },

    /** Ends all sessions of a user, also that of the request. Errors: as for `end`. */
    async endAll(caller: Caller, userId: string): Promise<void> {
      const { id, tenantId } = await users.findToChange(caller, userId);
      await commit({ ...caller, tenantId }, async (work) => {
        const ended = await endSessions(await work.trx(), {
          userId: id,
          reason: 'revoked',
          now: work.now,
        });
        if (ended === 0) throw new NoChange();
        work.audit('session.revoke', { type: 'user', id }, { after: { ended } });
      }).catch(ignoreNoChange(undefined));
    },
  };
}
