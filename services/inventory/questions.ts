import { isBusy } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readSnapshot } from '../../db/core/readSnapshot.ts';
import { isKnownScope } from '../../domain/inventory/ownership.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { SlotHolder, Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import type { PlanOutcome, Planner, Questions } from './planner.ts';

export type InventoryQuestions = ReturnType<typeof createInventoryQuestions>;

const RETRY_AFTER_SECONDS = 5;

/** How much of its time a question with a time limit may rest. */
const MAX_RESTING_PART = 1 / 2;

type Deps = {
  db: Knex;
  access: Access;
  planner: Planner;
  slots: { questions: Slots; dryRuns: Slots };
  /** The longest time that a question may take, in milliseconds. */
  questionTimeoutMs: number;
};

/** Who asks a question: a slot is theirs while it is answered, and it ends when they leave. */
export type Asker = { holder: SlotHolder; signal: AbortSignal };

/**
 * What changes would do. A question is planned in memory, in a read-only transaction with one
 * snapshot: it locks nothing and writes nothing. Its time and its effects are bounded.
 */
export function createInventoryQuestions({ db, access, planner, slots, questionTimeoutMs }: Deps) {
  /** Plans in a snapshot. Errors: `unavailable` when it takes too long; the reason of `signal`. */
  async function inSnapshot<T>(
    caller: Caller,
    {
      perMutation,
      signal,
      timeoutMs,
      maxRestMs,
    }: { perMutation: boolean; signal: AbortSignal; timeoutMs: number; maxRestMs?: number },
    ask: (questions: Questions, trx: Knex) => Promise<T>,
  ): Promise<T> {
    try {
      return await readSnapshot(db, { signal, timeoutMs }, async (trx) =>
        ask(
          await planner.ask(trx, caller, { perMutation, now: new Date(), signal, maxRestMs }),
          trx,
        ),
      );
    } catch (error) {
      signal.throwIfAborted();
      if (!isBusy(error)) throw error;
      throw tookTooLong(timeoutMs);
    }
  }

  /**
   * Plans mutations in order without writing anything. Without an `asker`, the process asks for
   * itself. Errors: `limit_reached`, `unavailable`; with an asker `too_many_requests`.
   */
  function dryRun(
    caller: Caller,
    mutations: readonly Mutation[],
    asker?: Asker,
  ): Promise<PlanOutcome> {
    const timeoutMs = questionTimeoutMs;
    const answer = () => {
      const late = AbortSignal.timeout(timeoutMs);
      const signal = AbortSignal.any([late, ...(asker ? [asker.signal] : [])]);
      const maxRestMs = MAX_RESTING_PART * timeoutMs;
      return inSnapshot(caller, { perMutation: false, signal, timeoutMs, maxRestMs }, (questions) =>
        questions.plan(mutations),
      ).catch((error: unknown) => {
        throw late.aborted ? tookTooLong(timeoutMs) : error;
      });
    };
    return asker ? slots.questions.run(asker.holder, asker.signal, answer) : answer();
  }

  return {
    dryRun,

    /**
     * Plans mutations for callers who may perhaps not write. Errors: those of `dryRun`;
     * `permission_denied` where the caller may not read what the plan would show.
     */
    validate: (
      caller: Caller,
      mutations: readonly Mutation[],
      signal: AbortSignal,
    ): Promise<PlanOutcome> =>
      access.auditDenials(caller, async () => {
        const outcome = await dryRun(caller, mutations, { holder: caller, signal });
        for (const each of outcome.planned)
          for (const scope of each.denied) {
            const isKnown = isKnownScope(each, scope, () => false);
            access.assertPermission(caller, 'inventory:read', scope, { isKnown });
          }
        return outcome;
      }),

    /**
     * Plans in several steps, each on top of the previous ones. A missing permission is an error of
     * its mutation. Few such questions are asked at a time; another one waits briefly. Errors: as
     * `validate`, without `permission_denied`.
     */
    dryRunInSteps: <T>(
      caller: Caller,
      signal: AbortSignal,
      steps: (questions: Questions, trx: Knex) => Promise<T>,
    ): Promise<T> =>
      slots.dryRuns.run(caller, signal, () =>
        inSnapshot(caller, { perMutation: true, signal, timeoutMs: questionTimeoutMs }, steps),
      ),
  };
}

const tookTooLong = (timeoutMs: number): AppError =>
  new AppError(
    'unavailable',
    `The changes could not be planned within ${timeoutMs / 1_000} s. Try again, or split them.`,
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
