import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { asSingleInsert, createStamper, writeSteps } from '../../db/inventory/apply.ts';
import { findFormerVersions } from '../../db/inventory/history.ts';
import type { UnlockedRow } from '../../db/inventory/load.ts';
import {
  lockSpaces,
  lockTenantsToDelete,
  prepareToRead,
  prepareToWrite,
  type SpaceLocks,
} from '../../db/inventory/locks.ts';
import { covers, PLATFORM, type Scope } from '../../domain/access/scope.ts';
import { isReadable } from '../../domain/inventory/ownership.ts';
import { isVisible } from '../../domain/inventory/sharing.ts';
import { withGivenFields } from '../../domain/inventory/plan.ts';
import type { Mutation, Planned, Viewer } from '../../domain/inventory/planning.ts';
import type { PlannedChange } from '../../domain/inventory/planSnapshot.ts';
import { attributeRequested } from '../../domain/inventory/requestedEffects.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { IdKind, Ids } from '../../platform/ids.ts';
import { createPause, type Pause } from '../../platform/turns.ts';
import type { Access } from '../access/access.ts';
import { lockRevocations } from './revocations.ts';
import {
  expectedDefinitions,
  isPermitted,
  planWithDefinitions,
  tenantsToDelete,
  type HeldDefinitions,
} from './definitionLocks.ts';
import { expectedSpaces, planLocked } from './affectedSpaces.ts';
import { createPlanSession, type PlanCost, type PlanSession, type Segment } from './planSession.ts';
import { checkRecord } from './checkRecord.ts';
import type { PlanMemory } from './planMemory.ts';

type Deps = { access: Access; ids: Ids; planMemory: PlanMemory };

export type Planner = ReturnType<typeof createPlanner>;

/** The plan of each mutation, and the changes of the valid ones, one for each record. */
export type PlanOutcome = { planned: Planned[]; changes: PlannedChange[] };

/** An outcome that is not written yet. */
export type UnwrittenOutcome = PlanOutcome & {
  /**
   * Writes the changes. With the `work` of a commit they may become part of its final statement.
   */
  write(work?: Work): Promise<void>;
  /** What the plan has read without a lock, by record. */
  relied: ReadonlyMap<string, UnlockedRow>;
};

export type PlanOptions = {
  /** True when each mutation is accepted separately, so that a missing permission is its error. */
  perMutation: boolean;
  /** True when nothing is written unless all mutations of all calls are valid. */
  isAllOrNone?: boolean;
  /** False when nobody reads the warnings of the plans. */
  warns?: boolean;
  /** The time of the changes. */
  now: Date;
  signal?: AbortSignal;
  /** A question rests no longer than this altogether. */
  maxRestMs?: number | undefined;
};

/** Plans mutations without writing them, those of later calls on top of those of earlier ones. */
export type Questions = {
  plan(mutations: readonly Mutation[]): Promise<PlanOutcome>;
  cost: Readonly<PlanCost>;
};

const noCost = (): PlanCost => ({ statements: 0, rows: 0, bytes: 0, attempts: 0 });

/**
 * The single planning path of all writes and questions. The rules are in `domain/inventory`. The
 * planner loads the data that they need. Nothing is written before the whole plan is made.
 */
export function createPlanner({ access, ids, planMemory }: Deps) {
  const visibleTo = (caller: Caller): Scope =>
    access.scope(caller, 'inventory:read', 'inventory:write');

  function createViewer(
    caller: Caller,
    { perMutation, isAllOrNone = !perMutation, warns = true }: PlanOptions,
    { writes }: { writes: boolean },
  ): Viewer {
    const visibleScope = visibleTo(caller);
    const writeScope = access.scope(caller, 'inventory:write');
    const idByRequest = new WeakMap<object, string>();
    return {
      tenantId: caller.tenantId,
      checkSchema: checkRecord,
      canWrite: (scope) => covers(writeScope, scope),
      canSee: (scope) => covers(visibleScope, scope),
      reportsPermissions: perMutation,
      writesValid: writes && !isAllOrNone,
      warns,
      isInside: (resource, row) => isReadable(visibleScope, resource, row),
      canRead: (resource, row) => isVisible(visibleScope, resource, row),
      holds: (permissions, scope) => covers(access.scope(caller, ...permissions), scope),
      canUseTenant: (id) => covers(visibleScope, { tenantId: id }),
      hasGrantAtTenant: (id) => visibleScope.kind === 'within' && visibleScope.tenantIds.has(id),
      newId(resource, record) {
        const id = idByRequest.get(record) ?? ids.next((resource.idPrefix ?? 'req') as IdKind);
        idByRequest.set(record, id);
        return id;
      },
    };
  }

  /** Stamps the changes of a segment, in turns. */
  async function outcomeOf(
    { planned, steps }: Segment,
    mutations: readonly Mutation[],
    { now, pause, former }: { now: Date; pause: Pause; former?: ReadonlyMap<string, number> },
  ): Promise<PlanOutcome & { steps: PlannedChange[] }> {
    for (const _ of attributeRequested(planned, mutations)) await pause();
    const stamper = createStamper(now, former);
    const changes = createNetChanges();
    const stamped: PlannedChange[] = [];
    for (const step of steps) {
      const each = stamper.stamp(step);
      stamped.push(each);
      changes.add(each);
      await pause();
    }
    return { planned, changes: changes.list(), steps: stamped };
  }

  return {
    /**
     * Plans mutations in order, each on top of the valid ones before it, in the transaction that
     * writes them. It locks the records that the plan reads, and the address spaces that it changes. Errors:
     * `limit_reached`, `unavailable`, `conflict`; invalid mutations are part of the outcome.
     */
    async planToWrite(
      trx: Knex.Transaction,
      caller: Caller,
      requested: readonly Mutation[],
      options: PlanOptions,
    ): Promise<UnwrittenOutcome> {
      const { now, signal } = options;
      const mutations = requested.map(withGivenFields);
      const viewer = createViewer(caller, options, { writes: true });
      const scope = access.scope(caller, 'inventory:write');
      const locked = await lockForWrite(trx, mutations, viewer, scope);
      const pause = createPause({ signal });
      const segment = await planLocked(
        locked.spaces,
        () =>
          planWithDefinitions(trx, locked.definitions, viewer, () =>
            createPlanSession(trx, {
              viewer,
              visible: visibleTo(caller),
              locks: scope,
              pause,
              keep: planMemory.start(trx, caller.tenantId),
              cost: noCost(),
            }).plan(mutations),
          ),
        (spaces) => lockSpaces(trx, { spaces, forPlatform: locked.forPlatform }),
        (plan) => isPermitted(plan, viewer),
      );
      const former = await findFormerVersions(trx, segment.steps);
      const { steps, ...outcome } = await outcomeOf(segment, mutations, { now, pause, former });
      const relied = new Map(
        [...segment.unlocked].filter(([, { resource, row }]) =>
          viewer.canRead(RESOURCES[resource], row),
        ),
      );
      return {
        ...outcome,
        relied,
        async write(work?: Work) {
          const part = work && asSingleInsert(steps);
          if (part) work.change(part);
          else await writeSteps(trx, steps);
        },
      };
    },

    /** Starts questions in a transaction that only reads. */
    async ask(trx: Knex.Transaction, caller: Caller, options: PlanOptions): Promise<Questions> {
      const { now, signal, maxRestMs } = options;
      await prepareToRead(trx);
      const viewer = createViewer(caller, options, { writes: false });
      const cost = noCost();
      const pause = createPause({ signal, isPatient: true, maxRestMs });
      const session: PlanSession = createPlanSession(trx, {
        viewer,
        visible: visibleTo(caller),
        locks: null,
        pause,
        keep: planMemory.start(trx, caller.tenantId),
        cost,
      });
      return {
        cost,
        async plan(requested) {
          const mutations = requested.map(withGivenFields);
          const segment = await session.plan(mutations);
          const { planned, changes } = await outcomeOf(segment, mutations, { now, pause });
          return { planned, changes };
        },
      };
    },
  };
}

/** Takes the locks of a writing transaction. Returns those of spaces. */
async function lockForWrite(
  trx: Knex,
  mutations: readonly Mutation[],
  viewer: Viewer,
  scope: Scope,
): Promise<SpaceLocks & { definitions: HeldDefinitions }> {
  await lockRevocations(trx, mutations, viewer, scope);
  const tenants = tenantsToDelete(mutations, viewer);
  if (tenants.length > 0) await lockTenantsToDelete(trx, tenants);
  const spaces = await expectedSpaces(trx, mutations, viewer, scope);
  const definitions = await expectedDefinitions(trx, mutations, viewer);
  const locks = {
    spaces,
    forPlatform: viewer.canWrite({ tenantId: PLATFORM }),
    definitions,
    isBrief: mutations.length > 1 && isOfSeveralTenants(scope),
  };
  await prepareToWrite(trx, locks);
  return locks;
}

/** True when a writer can hold records of one tenant while waiting for those of another. */
const isOfSeveralTenants = (scope: Scope): boolean =>
  scope.kind === 'everywhere' ||
  scope.tenantIds.size + scope.siteIds.size + scope.deviceIds.size > 1;

/** Merges the changes of each record into one, and leaves out records that end as they began. */
function createNetChanges() {
  const changes = new Map<string, PlannedChange>();
  return {
    add(step: PlannedChange): void {
      const key = `${step.resource}/${step.id}`;
      const known = changes.get(key);
      changes.set(key, known ? { ...step, before: known.before } : step);
    },
    list: () =>
      [...changes.values()].filter(({ before, after }) => before !== null || after !== null),
  };
}
