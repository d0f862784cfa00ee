import { setTimeout as sleep } from 'node:timers/promises';
import { NothingChanged, unlessNothing, type Commit, type Work } from '../../db/commit.ts';
import { isRaced } from '../../db/core/constraints.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { isValid, type Mutation, type Planned } from '../../domain/inventory/planning.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { placesOf } from '../../domain/inventory/standing.ts';
import type { Clock } from '../../platform/clock.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import type { Outcome, Planner } from './planner.ts';
import { allValid, refusalOf, refusalOfOne } from './conflictError.ts';
import { noteChange } from './inventoryAudit.ts';

export type InventoryWrites = ReturnType<typeof createInventoryWrites>;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  access: Access;
  planner: Planner;
  clock: Clock;
};

/** How often a change is planned again when another one was quicker. */
const MAX_TRIES = 6;

/** All mutations or none, or each that is valid. */
export type Mode = 'all' | 'each';

/** What belongs to the same transaction as the changes. */
export type Along = (work: Work<DispatchTask>, trx: Knex, outcome: Outcome) => Promise<void>;

/** Mutations, or how they are found in the transaction that will write them. */
type Source = readonly Mutation[] | ((trx: Knex) => Promise<readonly Mutation[]>);

async function tryAgain<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isRaced(error)) throw error;
      if (tries === MAX_TRIES)
        throw new AppError(
          'conflict',
          'Other changes of the same records were quicker, again and again.',
        );
      await sleep(5 * tries * Math.random());
    }
  }
}

/** Every write to the inventory, and the rehearsal of one: plan, then apply, in one transaction. */
export function createInventoryWrites({ db, commit, access, planner, clock }: Deps) {
  function mayWrite(caller: Caller, planned: Planned): void {
    // What is wrong in any case is said first: a place that cannot be read is nobody's.
    if (planned.errors.length > 0) return;
    for (const place of placesOf(planned)) access.mustHave(caller, 'inventory:write', place);
  }

  /** Errors: `invalid_request`, `conflict`, `in_use` (in mode `all`), `permission_denied`, `limit_reached`. */
  const apply = (
    caller: Caller,
    source: Source,
    mode: Mode,
    {
      refuse = (planned) => refusalOf(planned, true),
      along,
    }: { refuse?: (planned: readonly Planned[]) => AppError; along?: Along } = {},
  ): Promise<Outcome> =>
    tryAgain(() =>
      access.denying(caller, async () => {
        let outcome: Outcome = { planned: [], changes: [] };
        await commit(caller, async (work) => {
          const trx = (await work.trx()) as Knex;
          const mutations = typeof source === 'function' ? await source(trx) : source;
          const { write, ...planned } = await planner.plan(trx, caller, mutations, {
            writes: true,
            each: mode === 'each',
            now: work.now,
          });
          outcome = planned;
          if (mode === 'all') for (const each of outcome.planned) mayWrite(caller, each);
          if (mode === 'all' && !allValid(outcome.planned)) throw refuse(outcome.planned);
          await write(work);
          for (const change of outcome.changes) noteChange(work, change);
          await along?.(work, trx, outcome);
          if (outcome.changes.length === 0 && !along) throw new NothingChanged();
        }).catch(unlessNothing(undefined));
        return outcome;
      }),
    );

  const rolledBack = <T>(work: (trx: Knex) => Promise<T>): Promise<T> =>
    tryAgain(async () => {
      const trx = await db.transaction(undefined, { isolationLevel: 'repeatable read' });
      try {
        return await work(trx);
      } finally {
        await trx.rollback();
      }
    });

  async function one(caller: Caller, mutation: Mutation, id: string | null): Promise<Row | null> {
    const refuse = ([planned]: readonly Planned[]) =>
      planned ? refusalOfOne(planned, id) : refusalOf([], false);
    const { planned, changes } = await apply(caller, [mutation], 'all', { refuse });
    const subject = planned[0]?.subject;
    const change = changes.find(
      ({ resource, id: changed }) => resource === subject?.resource && changed === subject.id,
    );
    return change ? change.after : (subject?.before ?? null);
  }

  const written = (row: Row | null): Row => {
    if (!row) throw new Error('A write ended without its record');
    return row;
  };

  return {
    apply,

    /** Errors: as of `apply`. */
    create: async (caller: Caller, resource: ResourceName, record: object): Promise<Row> =>
      written(await one(caller, { resource, operation: 'create', record }, null)),

    /** Changes the fields that are given. Errors: as of `apply`, `not_found`, `version_stale`. */
    update: async (
      caller: Caller,
      resource: ResourceName,
      id: string,
      fields: object,
      version: number | undefined,
    ): Promise<Row> =>
      written(
        await one(
          caller,
          {
            resource,
            operation: 'update',
            record: { ...fields, id, ...(version !== undefined && { version }) },
          },
          id,
        ),
      ),

    /** Errors: as of `apply`, `not_found`, `version_stale`. */
    remove: async (
      caller: Caller,
      resource: ResourceName,
      id: string,
      version: number | undefined,
    ): Promise<void> =>
      void (await one(
        caller,
        {
          resource,
          operation: 'delete',
          record: { id, ...(version !== undefined && { version }) },
        },
        id,
      )),

    /** What would come of mutations in this order. Nothing of it is kept. */
    rehearse: (caller: Caller, mutations: readonly Mutation[]): Promise<Outcome> =>
      rolledBack(async (trx) => {
        const { planned, changes } = await planner.plan(trx, caller, mutations, {
          writes: false,
          each: false,
          now: clock.now(),
        });
        return { planned, changes };
      }),

    /** Whether the caller may make what was planned. Error: `permission_denied`. */
    requireRights: (caller: Caller, planned: readonly Planned[]): Promise<void> =>
      access.denying(caller, () => {
        for (const each of planned) mayWrite(caller, each);
        return Promise.resolve();
      }),

    /** The same in steps, each on top of those before it, with the rights to write checked. */
    rehearseInSteps: (
      caller: Caller,
      steps: (
        trx: Knex,
        plan: (mutations: readonly Mutation[]) => Promise<Planned[]>,
      ) => Promise<void>,
    ): Promise<void> =>
      rolledBack((trx) =>
        steps(trx, async (mutations) => {
          const { planned, write } = await planner.plan(trx, caller, mutations, {
            writes: false,
            each: true,
            now: clock.now(),
          });
          await write();
          return planned;
        }),
      ),
  };
}

/** The outcome of a mutation in a word. */
export function outcomeOf(
  planned: Planned,
): 'created' | 'updated' | 'deleted' | 'invalid' | 'conflict' {
  if (isValid(planned)) return `${planned.operation as 'create' | 'update' | 'delete'}d`;
  return planned.errors.length > 0 ? 'invalid' : 'conflict';
}
