import { asOneInsert, stamps, writeSteps } from '../../db/inventory/apply.ts';
import { loadNeeds, type Locking } from '../../db/inventory/load.ts';
import { findVrfs, lockVrfs, prepareToSee, prepareToWrite } from '../../db/inventory/locks.ts';
import type { Work } from '../../db/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { hintsOf, isPlainId, vrfAsked } from '../../domain/inventory/prefetch.ts';
import { planAll } from '../../domain/inventory/plan.ts';
import type { Mutation, Planned, Viewer } from '../../domain/inventory/planning.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { createSchema, updateSchema, type Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { Space } from '../../domain/inventory/prefixTree.ts';
import { isSeen } from '../../domain/inventory/standing.ts';
import { vrfKeyOf, World, type Change, type Need } from '../../domain/inventory/planSnapshot.ts';
import { covers } from '../../domain/access/scope.ts';
import type { IdKind, Ids } from '../../platform/ids.ts';
import { compileCheck, type Check, type SchemaError } from '../../platform/schemaCheck.ts';
import type { DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';

export type Planner = ReturnType<typeof createPlanner>;

/** What came of planning: a plan for each mutation, and the changes of the valid ones, one for each record. */
export type Outcome = { planned: Planned[]; changes: Change[] };

/** Rounds of looking up after which a plan that still misses something is a bug. */
const MAX_ROUNDS = 500;

const IN_A_VRF: readonly string[] = ['prefixes', 'ip-ranges', 'ip-addresses'];

/**
 * A field that may be null, or a reference, fails in every way that it could be right: what is said of it is what it
 * would have to be.
 */
function plainly(errors: readonly SchemaError[]): SchemaError[] {
  const open = new Set(errors.filter(({ code }) => code === 'anyOf').map(({ pointer }) => pointer));
  const plain = errors.filter(
    ({ pointer, code, message }) =>
      !open.has(pointer) || (code !== 'anyOf' && code !== 'type' && message !== 'must be null'),
  );
  const left = [...open].filter((pointer) => !plain.some((error) => error.pointer === pointer));
  return [
    ...plain,
    ...left.map((pointer) => ({
      pointer,
      code: 'type',
      message: [
        ...new Set(
          errors
            .filter((error) => error.pointer === pointer && error.code === 'type')
            .map(({ message }) => message),
        ),
      ]
        .join(' or ')
        .replaceAll(' or must be', ' or'),
    })),
  ];
}

/** Schema checks are made when first needed: most processes never see most resources. */
function checks() {
  const compiled = new Map<string, Check>();
  return (resource: Resource, operation: 'create' | 'update', record: object) => {
    const key = `${resource.name}/${operation}`;
    const check =
      compiled.get(key) ??
      compileCheck(operation === 'create' ? createSchema(resource) : updateSchema(resource));
    compiled.set(key, check);
    return plainly(check(record));
  };
}

/**
 * The one planning path: whatever writes to the inventory, or asks what a write would do, comes through here. The
 * rules are in `domain/inventory`; this looks up what they need, in the transaction that will write.
 */
export function createPlanner({ access, ids }: { access: Access; ids: Ids }) {
  const check = checks();

  function viewerOf(caller: Caller, each: boolean): Viewer {
    const scope = access.scope(caller, 'inventory:read');
    const writing = access.scope(caller, 'inventory:write');
    const made = new WeakMap<object, string>();
    return {
      tenantId: caller.tenantId,
      check,
      ...(each && { mayWrite: (place) => covers(writing, place) }),
      sees: (resource, row) => isSeen(scope, resource, row),
      seesTenant: (id) => covers(scope, { tenantId: id }),
      knowsTenant: (id) => scope.kind === 'within' && scope.tenantIds.has(id),
      newId(resource, record) {
        const id = made.get(record) ?? ids.next((resource.ids ?? 'req') as IdKind);
        made.set(record, id);
        return id;
      },
    };
  }

  /** Plans as many mutations as can be planned before something must be written. */
  async function segment(
    db: Knex,
    viewer: Viewer,
    mutations: readonly Mutation[],
    held: Set<string> | null,
  ) {
    for (;;) {
      const locking: Locking = held && {
        own: new Set(
          mutations.flatMap(({ resource, record }) =>
            isPlainId((record as { id?: unknown } | null)?.id)
              ? [`${resource}/${(record as { id: string }).id}`]
              : [],
          ),
        ),
      };
      const world = new World({ lockedOnly: held !== null });
      const space = new Space(world);
      await lookUp(db, world, mutations.flatMap(hintsOf), locking);
      let plan = planAll(world, space, viewer, mutations);
      for (let round = 1; plan.missing.length > 0; round++) {
        if (round > MAX_ROUNDS)
          throw new Error(`A plan misses something for ever: ${JSON.stringify(plan.missing[0])}`);
        await lookUp(db, world, plan.missing, locking);
        plan = planAll(world, space, viewer, mutations);
      }
      // Only now is it known for certain in which VRFs it all lies.
      const more = held ? [...vrfsOf(plan.planned)].filter((vrf) => !held.has(vrf)) : [];
      if (!held || more.length === 0) return { planned: plan.planned, steps: world.inOrder() };
      await lockVrfs(db, new Set(more));
      for (const vrf of more) held.add(vrf);
    }
  }

  return {
    /**
     * Plans mutations in order, each on top of the valid ones before it. In a transaction that is to write (`writes`)
     * the records read are locked and the VRFs held. Where a plan depends on changes before it, those are written:
     * a transaction that is only to see must be rolled back. `write` writes what is left; with a commit's `work` it may be left to the statement that ends it. What is in `changes` is not written yet but for that. Where
     * `each` is judged for itself, a right that is missing is an error of that one.
     */
    async plan(
      trx: Knex,
      caller: Caller,
      mutations: readonly Mutation[],
      { writes, each, now }: { writes: boolean; each: boolean; now: Date },
    ): Promise<Outcome & { write(work?: Work<DispatchTask>): Promise<void> }> {
      const viewer = viewerOf(caller, each);
      const held = writes ? await firstVrfs(trx, mutations) : null;
      await (held
        ? prepareToWrite(trx, {
            vrfs: held,
            definitions: mutations.some(({ resource }) => resource === 'custom-fields'),
          })
        : prepareToSee(trx));
      const planned: Planned[] = [];
      const stamp = stamps(now);
      const all = new Map<string, Change>();
      let unwritten: Change[] = [];
      const write = async (work?: Work<DispatchTask>) => {
        const part = work && asOneInsert(unwritten);
        if (part) work.change(part);
        else await writeSteps(trx, unwritten);
        unwritten = [];
      };
      while (planned.length < mutations.length) {
        const done = await segment(trx, viewer, mutations.slice(planned.length), held);
        planned.push(...done.planned);
        unwritten = stamp.all(done.steps);
        for (const step of unwritten) {
          const key = `${step.resource}/${step.id}`;
          const known = all.get(key);
          all.set(key, known ? { ...step, before: known.before } : step);
        }
        if (planned.length < mutations.length) await write();
      }
      const changes = [...all.values()].filter(
        ({ before, after }) => before !== null || after !== null,
      );
      return { planned, changes, write };
    },
  };
}

/** Looks up what is not known yet. */
async function lookUp(
  db: Knex,
  world: World,
  needs: readonly Need[],
  locking: Locking,
): Promise<void> {
  const distinct = new Map(
    needs.filter((need) => !world.knows(need)).map((need) => [JSON.stringify(need), need]),
  );
  if (distinct.size > 0) await loadNeeds(db, world, [...distinct.values()], locking);
}

/** The VRFs that mutations are about, as far as the requests and the records as they are now tell. */
async function firstVrfs(trx: Knex, mutations: readonly Mutation[]): Promise<Set<string>> {
  const vrfs = new Set<string>();
  const there = new Map<string, string[]>();
  for (const { resource, operation, record } of mutations) {
    if (typeof record !== 'object' || record === null) continue;
    const { id } = record as { id?: unknown };
    if (resource === 'vrfs' && typeof id === 'string') vrfs.add(id);
    if (!IN_A_VRF.includes(resource)) continue;
    const asked =
      operation === 'create' || Object.hasOwn(record, 'vrfId')
        ? vrfAsked(record as Record<string, unknown>)
        : undefined;
    if (asked !== undefined) vrfs.add(asked);
    if (operation !== 'create' && typeof id === 'string' && !there.get(resource)?.push(id))
      there.set(resource, [id]);
  }
  for (const [resource, ids] of there)
    for (const vrf of await findVrfs(trx, resource as ResourceName, ids)) vrfs.add(vrf);
  if (vrfs.size > MAX_VRFS)
    throw new AppError(
      'limit_reached',
      `The change concerns more than ${MAX_VRFS} VRFs; make it in smaller steps.`,
    );
  return vrfs;
}

/** VRFs that one transaction may hold. */
const MAX_VRFS = 1_000;

function vrfsOf(planned: readonly Planned[]): Set<string> {
  const vrfs = new Set<string>();
  for (const { subject } of planned) {
    if (!subject) continue;
    if (subject.resource === 'vrfs') vrfs.add(subject.id);
    if (!IN_A_VRF.includes(RESOURCES[subject.resource].name)) continue;
    for (const row of [subject.before, subject.after]) if (row) vrfs.add(vrfKeyOf(row));
  }
  return vrfs;
}
