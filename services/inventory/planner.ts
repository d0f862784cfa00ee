import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { asSingleInsert, createStamper, writeSteps } from '../../db/inventory/apply.ts';
import { loadNeeds, type Locking } from '../../db/inventory/load.ts';
import { lockVrfs, prepareToRead, prepareToWrite } from '../../db/inventory/locks.ts';
import { covers } from '../../domain/access/scope.ts';
import { isReadable } from '../../domain/inventory/ownership.ts';
import { planMutations, withGivenFields } from '../../domain/inventory/plan.ts';
import type { Mutation, Planned, Viewer } from '../../domain/inventory/planning.ts';
import {
  PlanSnapshot,
  type DataNeed,
  type PlannedChange,
} from '../../domain/inventory/planSnapshot.ts';
import { isPlainId, prefetchNeeds } from '../../domain/inventory/prefetch.ts';
import { attributeRequested } from '../../domain/inventory/requestedEffects.ts';
import { PrefixTree } from '../../domain/inventory/prefixTree.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import type { IdKind, Ids } from '../../platform/ids.ts';
import type { Access } from '../access/access.ts';
import { affectedVrfs, expectedVrfs } from './affectedVrfs.ts';
import { createSchemaChecks } from './schemaChecks.ts';

export type Planner = ReturnType<typeof createPlanner>;

/** The plan of each mutation, and the changes of the valid ones, one for each record. */
export type PlanOutcome = { planned: Planned[]; changes: PlannedChange[] };

/** An outcome whose last changes are not written yet. */
export type UnwrittenOutcome = PlanOutcome & {
  /**
   * Writes the remaining changes. With the `work` of a commit they may become part of its final
   * statement.
   */
  write(work?: Work): Promise<void>;
};

export type PlanOptions = {
  /**
   * True when the transaction writes the plan: the records that it reads, and the VRFs that it
   * changes, are locked. Otherwise the caller must roll the transaction back, because changes that
   * later mutations depend on are written in either case.
   */
  writes: boolean;
  /** True when each mutation is accepted separately, so that a missing permission is its error. */
  perMutation: boolean;
  /** The time of the changes. */
  now: Date;
};

/** Rounds of loading data after which a plan that still lacks data is a bug. */
const MAX_ROUNDS = 500;

/**
 * The single planning path of all writes and dry runs. The rules are in `domain/inventory`. The
 * planner loads the data that they need, in the transaction that writes.
 */
export function createPlanner({ access, ids }: { access: Access; ids: Ids }) {
  const checkSchema = createSchemaChecks();

  function createViewer(caller: Caller, perMutation: boolean): Viewer {
    const visibleScope = access.scope(caller, 'inventory:read', 'inventory:write');
    const writeScope = access.scope(caller, 'inventory:write');
    const idByRequest = new WeakMap<object, string>();
    return {
      tenantId: caller.tenantId,
      checkSchema,
      canWrite: (scope) => covers(writeScope, scope),
      canSee: (scope) => covers(visibleScope, scope),
      reportsPermissions: perMutation,
      canRead: (resource, row) => isReadable(visibleScope, resource, row),
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

  return {
    /**
     * Plans mutations in order, each on top of the valid ones before it. Errors: `limit_reached`;
     * invalid mutations are part of the outcome.
     */
    async plan(
      trx: Knex,
      caller: Caller,
      requested: readonly Mutation[],
      { writes, perMutation, now }: PlanOptions,
    ): Promise<UnwrittenOutcome> {
      const mutations = requested.map(withGivenFields);
      const viewer = createViewer(caller, perMutation);
      const lockedVrfs = writes ? await lockForWrite(trx, mutations) : null;
      if (!writes) await prepareToRead(trx);
      const stamper = createStamper(now);
      const planned: Planned[] = [];
      const changes = createChangeSummary();
      let unwritten: PlannedChange[] = [];
      const write = async (work?: Work) => {
        const part = work && asSingleInsert(unwritten);
        if (part) work.change(part);
        else await writeSteps(trx, unwritten);
        unwritten = [];
      };
      while (planned.length < mutations.length) {
        if (unwritten.length > 0) await write();
        const remaining = mutations.slice(planned.length);
        const segment = await planSegment(trx, viewer, remaining, lockedVrfs);
        planned.push(...segment.planned);
        unwritten = stamper.stamp(segment.steps);
        changes.add(unwritten);
      }
      attributeRequested(planned, mutations);
      return { planned, changes: changes.list(), write };
    },
  };
}

/** Takes the locks of a writing transaction. Returns the locked VRFs. */
async function lockForWrite(trx: Knex, mutations: readonly Mutation[]): Promise<Set<string>> {
  const vrfs = await expectedVrfs(trx, mutations);
  const definitions = mutations.some(({ resource }) => resource === 'custom-fields');
  await prepareToWrite(trx, { vrfs, definitions });
  return vrfs;
}

/** Merges the changes of each record into one, and leaves out records that end as they began. */
function createChangeSummary() {
  const changes = new Map<string, PlannedChange>();
  return {
    add(steps: readonly PlannedChange[]): void {
      for (const step of steps) {
        const key = `${step.resource}/${step.id}`;
        const known = changes.get(key);
        changes.set(key, known ? { ...step, before: known.before } : step);
      }
    },
    list: (): PlannedChange[] =>
      [...changes.values()].filter(({ before, after }) => before !== null || after !== null),
  };
}

type Segment = { planned: Planned[]; steps: readonly PlannedChange[] };

/**
 * Plans as many mutations as possible before changes must be written. A plan can show that it
 * changes further VRFs; they are locked, and it is made again.
 */
async function planSegment(
  db: Knex,
  viewer: Viewer,
  mutations: readonly Mutation[],
  lockedVrfs: Set<string> | null,
): Promise<Segment> {
  let segment = await planWithData(db, viewer, mutations, lockedVrfs !== null);
  while (lockedVrfs) {
    const newVrfs = [...affectedVrfs(segment.planned)].filter((vrf) => !lockedVrfs.has(vrf));
    if (newVrfs.length === 0) break;
    await lockVrfs(db, new Set(newVrfs));
    for (const vrf of newVrfs) lockedVrfs.add(vrf);
    segment = await planWithData(db, viewer, mutations, true);
  }
  return segment;
}

/** Plans mutations again and again until no data is missing. */
async function planWithData(
  db: Knex,
  viewer: Viewer,
  mutations: readonly Mutation[],
  locks: boolean,
): Promise<Segment> {
  const locking: Locking = locks ? { targets: targetsOf(mutations) } : null;
  const snapshot = new PlanSnapshot({ lockedOnly: locks });
  const context = { snapshot, prefixTree: new PrefixTree(snapshot), viewer };
  await loadMissing(db, snapshot, mutations.flatMap(prefetchNeeds), locking);
  for (let round = 0; round <= MAX_ROUNDS; round++) {
    const plan = planMutations(context, mutations);
    if (plan.missing.length === 0) return { planned: plan.planned, steps: snapshot.plannedSteps() };
    await loadMissing(db, snapshot, plan.missing, locking);
  }
  throw new Error(`A plan still lacks data after ${MAX_ROUNDS} rounds`);
}

/** The records that mutations name, as `<resource>/<id>`. */
const targetsOf = (mutations: readonly Mutation[]): Set<string> =>
  new Set(
    mutations.flatMap(({ resource, record }) => {
      const id = (record as { id?: unknown } | null)?.id;
      return isPlainId(id) ? [`${resource}/${id}`] : [];
    }),
  );

/** Loads the needs that are not loaded yet. */
async function loadMissing(
  db: Knex,
  snapshot: PlanSnapshot,
  needs: readonly DataNeed[],
  locking: Locking,
): Promise<void> {
  const missing = needs.filter((need) => !snapshot.isLoaded(need));
  const distinct = new Map(missing.map((need) => [JSON.stringify(need), need]));
  if (distinct.size > 0) await loadNeeds(db, snapshot, [...distinct.values()], locking);
}
