import { setImmediate } from 'node:timers/promises';
import { NoChange, ignoreNoChange, type Commit, type Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { MANY_CHANGES } from '../../db/inventory/apply.ts';
import { assertWithinLimits, sizeOfReplaced } from '../../db/inventory/load.ts';
import { waitLonger } from '../../db/inventory/locks.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { isValid, type Mutation, type Planned } from '../../domain/inventory/planning.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { isKnownScope } from '../../domain/inventory/ownership.ts';
import { covers, type ResourceScope } from '../../domain/access/scope.ts';
import type { QuotaValues } from '../../domain/access/quotas.ts';
import { createCombiner } from '../../platform/combiner.ts';
import type { Access } from '../access/access.ts';
import { recordMovedRequests } from '../approvals/movedRequests.ts';
import { requestedSpace } from './affectedSpaces.ts';
import { COMBINED_CREATES, createCombinedCreates } from './combinedCreates.ts';
import type { PlanOutcome, Planner } from './planner.ts';
import { assertUnchanged, type Reliance } from './reliance.ts';
import { allValid, conflictError, conflictErrorOfOne } from './conflictError.ts';
import { recordChanges } from './inventoryAudit.ts';
import { retryOnConflict } from './retryOnConflict.ts';
import { removeDependents } from './removeDependents.ts';

export type InventoryWrites = ReturnType<typeof createInventoryWrites>;

type Deps = {
  commit: Commit;
  access: Access;
  planner: Planner;
  config: { quotas: QuotaValues };
  maxBusyMs?: number;
};

/** `all`: all mutations or none. `each`: those that are valid. */
export type WriteMode = 'all' | 'each';

/** Further writes in the transaction of the changes. */
export type BeforeCommit = (work: Work, trx: Knex, outcome: PlanOutcome) => Promise<void>;

type ApplyOptions = {
  toError?: (planned: readonly Planned[]) => AppError;
  beforeCommit?: BeforeCommit;
  /** False when the caller does not read the warnings of the outcome. */
  warns?: boolean;
};

/** Mutations, or a function that returns them in the transaction that writes them. */
type MutationSource = readonly Mutation[] | ((trx: Knex) => Promise<readonly Mutation[]>);

/** All writes to the inventory: plan and write in one transaction. */
export function createInventoryWrites({ commit, access, planner, config, maxBusyMs }: Deps) {
  const retry = <T>(attempt: (isLast: boolean) => Promise<T>): Promise<T> =>
    retryOnConflict(attempt, maxBusyMs);

  function assertCanWrite(caller: Caller, planned: Planned): void {
    const visible = access.scope(caller, 'inventory:read', 'inventory:write');
    const { denied, errors, presentScopes, requiredScopes } = planned;
    const assertAt = (scope: ResourceScope) => {
      const isKnown = isKnownScope(planned, scope, (each) => covers(visible, each));
      access.assertPermission(caller, 'inventory:write', scope, { isKnown });
    };
    denied.forEach(assertAt);
    for (const { isOwn, scope } of errors.length > 0 ? [] : planned.revoked)
      if (isOwn) access.assertPermission(caller, 'rbac:write', scope);
    (errors.length > 0 ? presentScopes : requiredScopes).forEach(assertAt);
  }

  /**
   * Plans and writes mutations, records their audit entries and events, and runs `beforeCommit`. In
   * mode `each`, invalid mutations are part of the outcome. `toError` converts invalid plans.
   * Errors: `permission_denied`, `limit_reached`, `conflict`, `unavailable`; in mode `all` also `invalid_request`
   * and `in_use`.
   */
  const apply = (
    caller: Caller,
    source: MutationSource,
    mode: WriteMode,
    { toError = conflictError, beforeCommit, warns }: ApplyOptions = {},
  ): Promise<PlanOutcome> =>
    retry((isLast) =>
      access.auditDenials(caller, async () => {
        let outcome: PlanOutcome = { planned: [], changes: [] };
        await commit(caller, async (work) => {
          const trx = await work.trx();
          if (isLast) await waitLonger(trx);
          const mutations = typeof source === 'function' ? await source(trx) : source;
          const { write, relied, ...planned } = await planner.planToWrite(trx, caller, mutations, {
            perMutation: mode === 'each',
            ...(warns !== undefined && { warns }),
            now: work.now,
          });
          outcome = planned;
          if (mode === 'all') for (const each of outcome.planned) assertCanWrite(caller, each);
          if (mode === 'all' && !allValid(outcome.planned)) throw toError(outcome.planned);
          await removeDependents(work, trx, outcome, config.quotas);
          await recordMovedRequests(work, trx, outcome.changes);
          const record = () =>
            recordChanges(work, outcome, access.scope(caller, 'inventory:write'));
          await writeAndRecord(() => write(work), record, outcome.changes.length);
          await assertUnchanged(trx, [{ relied, changes: planned.changes }]);
          const [first] = outcome.changes;
          if (first) work.result(first.id);
          await beforeCommit?.(work, trx, outcome);
          if (outcome.changes.length === 0 && !beforeCommit) throw new NoChange();
        }).catch(ignoreNoChange(undefined));
        return outcome;
      }),
    );

  /** Applies one mutation. Returns the record after it, or null when it is deleted. */
  async function applyOne(
    caller: Caller,
    mutation: Mutation,
    id: string | null,
  ): Promise<Row | null> {
    const toError = ([planned]: readonly Planned[]) =>
      planned ? conflictErrorOfOne(planned, id) : conflictError([]);
    const { planned, changes } = await apply(caller, [mutation], 'all', {
      toError,
      warns: false,
    });
    const subject = planned[0]?.subject;
    const change = changes.find(
      ({ resource, id: changed }) => resource === subject?.resource && changed === subject.id,
    );
    return change ? change.after : (subject?.before ?? null);
  }

  const createTogether = createCombinedCreates({ commit, access, planner });
  const combine = createCombiner<{ caller: Caller; mutation: Mutation }, Row>({
    ...COMBINED_CREATES,
    together: (creates) =>
      createTogether(
        creates.map(({ caller }) => caller),
        () => Promise.resolve(creates.map(({ mutation }) => mutation)),
      ),
  });

  return {
    apply,
    createTogether,

    /**
     * Creates a record. Creates in one space wait for each other's commits: those that callers with
     * the same rights request concurrently share one. Errors: those of `apply`.
     */
    async create(caller: Caller, resource: ResourceName, record: object): Promise<Row> {
      const mutation: Mutation = { resource, operation: 'create', record };
      const alone = async () =>
        assertDefined(await applyOne(caller, mutation, null), 'created record');
      const space = requestedSpace(mutation, caller.tenantId);
      if (!space) return alone();
      const key = [resource, caller.tenantId, space.owner, space.vrf].join(' ');
      return combine(caller.rights, key, { caller, mutation }, alone);
    },

    /**
     * Updates the fields that are present in `fields`. With `version`, only that version of the
     * record is updated. Errors: those of `apply`, `not_found`, `version_conflict`.
     */
    update: async (
      caller: Caller,
      resource: ResourceName,
      id: string,
      fields: object,
      version: number | undefined,
    ): Promise<Row> =>
      assertDefined(
        await applyOne(
          caller,
          { resource, operation: 'update', record: { ...fields, ...versionedId(id, version) } },
          id,
        ),
        'updated record',
      ),

    /** Deletes a record. Errors: those of `apply`, `not_found`, `version_conflict`. */
    remove: async (
      caller: Caller,
      resource: ResourceName,
      id: string,
      version: number | undefined,
      { evict = false }: { evict?: boolean } = {},
    ): Promise<void> =>
      void (await applyOne(
        caller,
        {
          resource,
          operation: 'delete',
          record: { ...versionedId(id, version), ...(evict && { evict }) },
        },
        id,
      )),

    /**
     * Plans and writes mutations in several steps of one transaction, each on top of the previous
     * ones. A missing permission is an error of its mutation. An error of `steps`, and the reason of
     * `signal`, roll back everything.
     */
    applyInSteps: (
      caller: Caller,
      signal: AbortSignal,
      steps: (
        work: Work,
        trx: Knex,
        apply: (mutations: readonly Mutation[]) => Promise<Planned[]>,
      ) => Promise<void>,
    ): Promise<void> =>
      retry((isLast) =>
        commit(caller, async (work) => {
          const trx = await work.trx();
          if (isLast) await waitLonger(trx);
          const all: Reliance[] = [];
          let bytes = 0;
          await steps(work, trx, async (mutations) => {
            const { planned, changes, write, relied } = await planner.planToWrite(
              trx,
              caller,
              mutations,
              { perMutation: true, isAllOrNone: true, now: work.now, signal },
            );
            bytes += sizeOfReplaced(changes);
            assertWithinLimits({ rows: 0, bytes });
            await removeDependents(work, trx, { planned, changes }, config.quotas);
            await recordMovedRequests(work, trx, changes);
            const record = () =>
              recordChanges(work, { planned, changes }, access.scope(caller, 'inventory:write'));
            await writeAndRecord(() => write(), record, changes.length);
            all.push({ relied, changes });
            return planned;
          });
          await assertUnchanged(trx, all);
        }),
      ),

    /** Checks that the caller may write all plans. Error: `permission_denied`. */
    assertPermissions: (caller: Caller, planned: readonly Planned[]): Promise<void> =>
      access.auditDenials(caller, () => {
        for (const each of planned) assertCanWrite(caller, each);
        return Promise.resolve();
      }),
  };
}

/** Writes changes and records them, many of them while the database writes. */
async function writeAndRecord(
  write: () => Promise<void>,
  record: () => void,
  count: number,
): Promise<void> {
  if (count >= MANY_CHANGES) await Promise.all([write(), setImmediate().then(record)]);
  else {
    await write();
    record();
  }
}

const versionedId = (id: string, version: number | undefined) => ({
  id,
  ...(version !== undefined && { version }),
});

/** The outcome of a mutation in one word, as responses and reports have it. */
export function outcomeOf(
  planned: Planned,
): 'created' | 'updated' | 'unchanged' | 'deleted' | 'invalid' | 'conflict' {
  if (planned.unchanged) return 'unchanged';
  if (isValid(planned)) return `${planned.operation as 'create' | 'update' | 'delete'}d`;
  return planned.errors.length > 0 ? 'invalid' : 'conflict';
}
