import { findExpiring, findUnused } from '../../../db/auth/tokens.ts';
import { ignoreNoChange, NoChange, type Commit, type Work } from '../../../db/core/commit.ts';
import type { Knex } from '../../../db/core/knex.ts';
import { Token } from '../../../db/models/Token.ts';
import { statusOf, UNUSED_DAYS, WARNING_DAYS } from '../../../domain/auth/tokens.ts';
import { runEach } from '../../../domain/shared/runEach.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { DAY_MS } from '../../../domain/shared/durations.ts';
import type { Log } from '../../../platform/log.ts';
import { forEachDue } from '../../shared/forEachDue.ts';
import { tokenRecord } from './tokenAudit.ts';

type Step = {
  name: string;
  find(limit: number): Promise<Token[]>;
  /** Whether it is still due, with the row locked. */
  isDue(token: Token): boolean;
  apply(work: Work, token: Token): Promise<void>;
};

type Deps = { db: Knex; commit: Commit; log: Log };

/** Reports tokens that expire soon, and disables those that nobody uses. */
export const createTokenKeeper = ({ db, commit, log }: Deps) => {
  const warn: Step = {
    name: 'reporting a token that expires',
    find: (limit) => findExpiring(db, WARNING_DAYS, limit),
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
    name: 'disabling an unused token',
    find: (limit) => findUnused(db, UNUSED_DAYS, limit),
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

  /** Does what is due, until `signal` aborts. Errors: those of `runEach`. */
  return async (signal: AbortSignal): Promise<void> => {
    const steps = [warn, disable].map(
      (step) => () => forEachDue(log, signal, { ...step, apply: (token) => applyTo(step, token) }),
    );
    await runEach(steps, signal);
  };
};
