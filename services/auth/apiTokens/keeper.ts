import { findExpiring, findUnused } from '../../../db/auth/tokens.ts';
import { ignoreNoChange, NoChange, type Commit, type Work } from '../../../db/core/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { Token } from '../../../db/models/Token.ts';
import { statusOf, UNUSED_DAYS, WARNING_DAYS } from '../../../domain/auth/tokens.ts';
import { runEach } from '../../../domain/shared/runEach.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import { tokenRecord } from './tokenAudit.ts';

const BATCH = 200;

type Step = {
  find(db: Knex): Promise<Token[]>;
  /** Whether it is still due, with the row locked. */
  isDue(token: Token): boolean;
  apply(work: Work, token: Token): Promise<void>;
};

/** Reports tokens that expire soon, and disables those that nobody uses. */
export const createTokenKeeper = ({ db, commit }: { db: Knex; commit: Commit }) => {
  const warn: Step = {
    find: () => findExpiring(db, WARNING_DAYS, BATCH),
    isDue: ({ warnedAt }) => warnedAt === null,
    async apply(work, token) {
      const after = await Token.query(await work.trx()).patchAndFetchById(token.id, {
        warnedAt: work.now,
      });
      tokenRecord.acted(work, 'warn', after);
      tokenRecord.emit(work, 'token.expiring', after);
    },
  };

  const disable: Step = {
    find: () => findUnused(db, UNUSED_DAYS, BATCH),
    isDue: ({ lastUsedAt, rotatedAt, createdAt }) =>
      Math.max(...[lastUsedAt, rotatedAt, createdAt].map(Number)) <
      Date.now() - UNUSED_DAYS * DAY_MS,
    async apply(work, token) {
      const after = await Token.query(await work.trx()).patchAndFetchById(token.id, {
        disabledAt: work.now,
        updatedAt: work.now,
        version: token.version + 1,
      });
      tokenRecord.acted(work, 'disable', after);
      tokenRecord.emit(work, 'token.unused', after);
    },
  };

  const applyTo = ({ isDue, apply }: Step, { id, tenantId }: Token): Promise<boolean> =>
    commit(systemCaller(tenantId, 'tokens'), async (work) => {
      const token = await Token.query(await work.trx())
        .findById(id)
        .forUpdate();
      if (!token || statusOf(token, work.now) !== 'active' || !isDue(token)) throw new NoChange();
      await apply(work, token);
      return true;
    }).catch(ignoreNoChange(false));

  async function applyToAll(step: Step, signal: AbortSignal): Promise<void> {
    for (let hasMore = true; hasMore && !signal.aborted;) {
      const due = await step.find(db);
      let applied = 0;
      for (const token of due) if (!signal.aborted && (await applyTo(step, token))) applied += 1;
      hasMore = due.length === BATCH && applied > 0;
    }
  }

  /** Does what is due, until `signal` aborts. Errors: those of `runEach`. */
  return async (signal: AbortSignal): Promise<void> => {
    const steps = [warn, disable].map((step) => () => applyToAll(step, signal));
    await runEach(steps, signal);
  };
};
