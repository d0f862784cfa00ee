import type { Place } from '../access/scope.ts';
import { differences, isSame, type FieldChange } from './difference.ts';
import { MAX_MUTATIONS } from './mutations.ts';
import type { ResourceName } from './names.ts';
import {
  isValid,
  type Effect,
  type Operation,
  type PlanConflict,
  type PlanError,
  type Planned,
  type PlanWarning,
} from './planning.ts';
import type { Row } from './resource.ts';
import { RESOURCES } from './resources/index.ts';
import { labelOf, placeOf, placesOf } from './standing.ts';
import type { Change } from './planSnapshot.ts';

/**
 * A record that a plan changes, as it is kept to be compared with a later plan. The id of one that is not there yet is
 * `new:` and its number in the plan; `version` is null for it.
 */
export type FrozenEffect = {
  action: Operation;
  resource: ResourceName;
  id: string;
  label: string;
  reason: Effect['reason'];
  version: number | null;
  /** When it was made: a readable id can be given again. Null for one that is not there yet. */
  madeAt: string | null;
  /** Where the record stands: whoever may not read it there is not told of it. */
  place: Place;
  /** Every field that differs; of a new record all that it gets, of one that goes all that it had. */
  changes: FieldChange[];
};

/**
 * Everything that a plan changes, seen by nobody in particular, and what it advised. `places` is where whoever makes it needs
 * `inventory:write`.
 */
export type FrozenPlan = { effects: FrozenEffect[]; warnings: PlanWarning[]; places: Place[] };

type Outcome = { planned: readonly Planned[]; changes: readonly Change[] };

/** Where a finding lies: in which mutation, and there in the record. */
const at = (i: number, pointer: string | null): string =>
  `/mutations/${i}${pointer === null ? '' : `/record${pointer}`}`;

const keyOf = ({ resource, id }: { resource: string; id: string }): string => `${resource}/${id}`;

/** Records that get an id when they are written, by the number that stands for it until then. */
export function numbersOf({ planned, changes }: Outcome): ReadonlyMap<string, string> {
  const asked = planned.flatMap(({ subject }) => (subject ? [keyOf(subject)] : []));
  const made = new Map(
    changes
      .filter(({ before, resource }) => before === null && RESOURCES[resource].ids !== null)
      .map((change) => [keyOf(change), change.id]),
  );
  const inOrder = [...new Set([...asked.filter((key) => made.has(key)), ...made.keys()])];
  return new Map(inOrder.map((key, i) => [made.get(key) ?? '', `new:${i + 1}`]));
}

function reasonOf({ before, after }: Change, told: Effect['reason'] | undefined): Effect['reason'] {
  if (told) return told;
  // What whoever asked may not read, the plan does not tell them.
  if (after === null) return 'cascade';
  return before && !isSame(before.parentPrefixId, after.parentPrefixId) ? 'reparented' : 'freed';
}

const recordOf = ({ before, after }: Change): Row => after ?? before ?? { id: '', version: 0 };

/** What a valid plan changes, in an order of its own: two plans that do the same are frozen alike. */
export function freeze(outcome: Outcome): FrozenPlan {
  const { planned, changes } = outcome;
  const numbers = numbersOf(outcome);
  const numbered = <T>(value: T): T =>
    JSON.parse(JSON.stringify(value), (_, each: unknown) =>
      typeof each === 'string' ? (numbers.get(each) ?? each) : each,
    ) as T;
  // What was asked for comes as it was asked for, then what follows from it.
  const asked = new Map(
    planned.flatMap(({ subject }, i) => (subject ? [[keyOf(subject), i] as const] : [])).reverse(),
  );
  const rankOf = (change: Change) =>
    `${String(asked.get(keyOf(change)) ?? MAX_MUTATIONS).padStart(6, '0')} ${keyOf(change)}`;
  const reasons = new Map(
    planned.flatMap(({ effects }) => effects.map((effect) => [keyOf(effect), effect.reason])),
  );
  const inOrder = [...changes].sort((one, other) => (rankOf(one) < rankOf(other) ? -1 : 1));
  const effects = inOrder.map((change): FrozenEffect => {
    const { resource, id, before, after } = change;
    const declared = RESOURCES[resource];
    return {
      action: after ? (before ? 'update' : 'create') : 'delete',
      resource,
      id: numbers.get(id) ?? id,
      label: numbered(labelOf(declared, recordOf(change))),
      reason: reasonOf(change, reasons.get(keyOf(change))),
      version: before?.version ?? null,
      madeAt: numbered(before?.createdAt ?? null) as string | null,
      place: numbered(placeOf(declared, before ?? recordOf(change))),
      changes: numbered(differences(before, after)),
    };
  });
  const places = new Map(
    planned.flatMap(placesOf).map((place) => [JSON.stringify(place), numbered(place)]),
  );
  return {
    effects,
    warnings: planned.flatMap(({ warnings }, i) =>
      warnings.map((warning) => ({ ...warning, pointer: at(i, warning.pointer) })),
    ),
    places: [...places.values()],
  };
}

/** An effect that was approved and what it would be now; null where it was or is none. */
export type EffectDifference = { approved: FrozenEffect | null; now: FrozenEffect | null };

/** How a plan differs from the one that was approved. With errors or conflicts there is no plan now. */
export type PlanDifference = {
  errors: PlanError[];
  conflicts: PlanConflict[];
  effects: EffectDifference[];
};

const sameEffect = (one: FrozenEffect, other: FrozenEffect): boolean =>
  one.action === other.action &&
  one.version === other.version &&
  one.madeAt === other.madeAt &&
  isSame(one.changes, other.changes);

/** How what would happen now differs from what was approved; null when it is the same. */
export function planDifference(approved: FrozenPlan, now: Outcome): PlanDifference | null {
  if (!now.planned.every(isValid)) return invalidNow(now.planned);
  const then = new Map(approved.effects.map((effect) => [keyOf(effect), effect]));
  const current = new Map(freeze(now).effects.map((effect) => [keyOf(effect), effect]));
  const effects = [...new Set([...then.keys(), ...current.keys()])].flatMap(
    (key): EffectDifference[] => {
      const [before, after] = [then.get(key) ?? null, current.get(key) ?? null];
      return before && after && sameEffect(before, after) ? [] : [{ approved: before, now: after }];
    },
  );
  return effects.length === 0 ? null : { errors: [], conflicts: [], effects };
}

/** The errors and conflicts of several mutations, each with a pointer that says which one. */
export function invalidNow(planned: readonly Planned[]): PlanDifference {
  return {
    errors: planned.flatMap(({ errors }, i) =>
      errors.map((error) => ({ ...error, pointer: at(i, error.pointer) })),
    ),
    conflicts: planned.flatMap(({ conflicts }, i) =>
      conflicts.map((conflict) => ({ ...conflict, pointer: at(i, conflict.pointer) })),
    ),
    effects: [],
  };
}
