import type { Knex } from '../../db/core/knex.ts';
import {
  loadNeeds,
  MAX_LOADED,
  PlanFull,
  type Loaded,
  type Locking,
  type Targets,
  type UnlockedRow,
} from '../../db/inventory/load.ts';
import { createFindingsBound } from '../../domain/inventory/findings.ts';
import { tryToPlan } from '../../domain/inventory/plan.ts';
import {
  MAX_EFFECTS,
  type Mutation,
  type Planned,
  type Viewer,
} from '../../domain/inventory/planning.ts';
import {
  needKey,
  PlanSnapshot,
  recordKey,
  type DataNeed,
  type PlannedChange,
} from '../../domain/inventory/planSnapshot.ts';
import { isPlainId, prefetchNeeds, withResolvedNames } from '../../domain/inventory/prefetch.ts';
import { PrefixTree } from '../../domain/inventory/prefixTree.ts';
import { Spans } from '../../domain/inventory/spans.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { Pause } from '../../platform/turns.ts';

/** The plan of some mutations, and the changes of the valid ones in order. */
export type Segment = {
  planned: Planned[];
  steps: PlannedChange[];
  /** What it has read without a lock, as first read. */
  unlocked: ReadonlyMap<string, UnlockedRow>;
};

/** What a plan has loaded, and what it has cost, for tests of its growth. */
export type PlanCost = Loaded & { statements: number; attempts: number };

type Options = {
  viewer: Viewer;
  /** Where the caller may read or write. */
  visible: Scope;
  /** When the plan is written: where the records that it reads are locked. */
  locks: Scope | null;
  pause: Pause;
  /** Called with the size of what is loaded. It may throw. */
  keep(bytes: number): void;
  cost: PlanCost;
};

export type PlanSession = ReturnType<typeof createPlanSession>;

/** Attempts to plan one mutation after which a plan that still lacks data is a bug. */
const MAX_ROUNDS = 500;

/** Rounds in which all mutations are tried, so that their needs are loaded together. */
const FULL_ROUNDS = 3;
const MIN_WINDOW = 8;
/** Effects of mutations that are tried and undone, in one round. */
const MAX_TRIED_EFFECTS = 5_000;

/**
 * Plans mutations on one snapshot, those of later calls on top of those of earlier ones. Nothing is
 * written: what is planned so far is part of the snapshot.
 *
 * Mutations are planned in order until one lacks data. The following ones are tried too, to load what
 * they need in the same statement, and then undone. How many are tried depends on how far this gets,
 * so that the work grows linearly with the mutations even if each depends on the one before it.
 */
export function createPlanSession(
  db: Knex,
  { viewer, visible, locks, pause, keep, cost }: Options,
) {
  const snapshot = new PlanSnapshot({ lockedOnly: locks !== null });
  const prefixTree = new PrefixTree(snapshot);
  const context = { snapshot, prefixTree, spans: new Spans(snapshot), viewer };

  const unlocked = new Map<string, UnlockedRow>();
  /** What further mutations fail with: each would only read until it reaches the limit again. */
  let full: AppError | undefined;

  async function load(needs: readonly DataNeed[], locking: Locking): Promise<void> {
    const distinct = [...new Map(needs.map((need) => [needKey(need), need])).values()].filter(
      (need) => !snapshot.isLoaded(need),
    );
    if (distinct.length === 0) return;
    cost.statements++;
    const {
      rows,
      bytes,
      unlocked: found,
    } = await loadNeeds(db, snapshot, distinct, {
      locking,
      visible,
      pause,
      warns: viewer.warns,
      loaded: cost,
      keep,
    });
    cost.rows += rows;
    cost.bytes += bytes;
    for (const each of found) {
      const key = recordKey(each.resource, each.row.id);
      if (!unlocked.has(key)) unlocked.set(key, each);
    }
  }

  async function undoTo(mark: number): Promise<void> {
    for (const _ of snapshot.undoTo(mark)) await pause();
  }

  /** Plans mutations up to the first that lacks data, and collects what this and later ones lack. */
  async function planWindow(
    mutations: readonly Mutation[],
    planned: Planned[],
    bound: (planned: Planned) => void,
  ) {
    const missing: DataNeed[] = [];
    let mark: number | undefined;
    let tried = 0;
    for (const mutation of mutations) {
      if (mark !== undefined && snapshot.cascadeCount - tried > MAX_TRIED_EFFECTS) break;
      await pause();
      cost.attempts++;
      const result = tryToPlan(context, mutation);
      if ('missing' in result) {
        if (mark === undefined) tried = snapshot.cascadeCount;
        mark ??= snapshot.mark();
        missing.push(...result.missing);
        continue;
      }
      for (const _ of result.apply) await pause();
      if (mark === undefined) {
        bound(result.planned);
        planned.push(result.planned);
        assertFewEffects(snapshot.changeCount - planned.length);
      }
    }
    if (mark !== undefined) await undoTo(mark);
    return missing;
  }

  return {
    /** Plans mutations. Error: `limit_reached`, with nothing planned. */
    async plan(mutations: readonly Mutation[]): Promise<Segment> {
      if (full) throw full;
      const locking: Locking = locks && { targets: targetsOf(mutations), writable: locks };
      const planned: Planned[] = [];
      let bound = createFindingsBound();
      let window = mutations.length;
      let rounds = 0;
      let slowRounds = 0;
      try {
        await load(
          mutations.flatMap((mutation) => prefetchNeeds(mutation, viewer.tenantId)),
          locking,
        );
        const named = mutations.flatMap(
          (each) => withResolvedNames(each, snapshot, viewer.tenantId) ?? [],
        );
        await load(
          named.flatMap((mutation) => prefetchNeeds(mutation, viewer.tenantId)),
          locking,
        );
        snapshot.takeOutdated();
        while (planned.length < mutations.length) {
          const from = planned.length;
          const missing = await planWindow(mutations.slice(from, from + window), planned, bound);
          const advanced = planned.length - from;
          rounds = advanced > 0 ? 0 : rounds + 1;
          if (rounds > MAX_ROUNDS)
            throw new Error(`A plan still lacks data after ${MAX_ROUNDS} rounds`);
          if (advanced >= window / 2) window = Math.min(2 * window, mutations.length);
          else if (++slowRounds > FULL_ROUNDS) window = Math.max(MIN_WINDOW, window >> 1);
          await load(missing, locking);
          if (snapshot.takeOutdated()) {
            await undoTo(0);
            planned.length = 0;
            bound = createFindingsBound();
          }
        }
      } catch (error) {
        await undoTo(0);
        if (isMostlyFull(cost) && error instanceof PlanFull) full = error;
        throw error;
      }
      return { planned, steps: snapshot.finalize(), unlocked };
    },
  };
}

/** True when a smaller change may reach the limit as well. */
const isMostlyFull = ({ rows, bytes }: Loaded): boolean =>
  rows > MAX_LOADED.rows / 2 || bytes > MAX_LOADED.bytes / 2;

/** Error: `limit_reached`. */
function assertFewEffects(count: number): void {
  if (count > MAX_EFFECTS)
    throw new AppError(
      'limit_reached',
      `The changes affect more than ${MAX_EFFECTS} other records. Split them.`,
    );
}

const targetsOf = (mutations: readonly Mutation[]): Targets => {
  const targets = new Map<string, 'update' | 'delete'>();
  for (const { resource, operation, record } of mutations) {
    const id = (record as { id?: unknown } | null)?.id;
    if (!isPlainId(id)) continue;
    const key = recordKey(resource, id);
    if (operation === 'delete' || !targets.has(key))
      targets.set(key, operation === 'delete' ? 'delete' : 'update');
  }
  return targets;
};
