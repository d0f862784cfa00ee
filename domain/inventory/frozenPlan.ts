import { contains, PLATFORM, type ResourceScope } from '../access/scope.ts';
import { assertDefined } from '../shared/assert.ts';
import { differences, isSame, type FieldChange } from './difference.ts';
import { MAX_MUTATIONS } from './mutations.ts';
import type { ResourceName } from './names.ts';
import {
  GRANTS_REMOVED,
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
import { labelOf, resourceScopesOf } from './ownership.ts';
import type { PlannedChange } from './planSnapshot.ts';

/**
 * A record that a plan changes, stored for the comparison with a later plan. A record that does not
 * exist yet has `new:` and a number as its id, and null as its `version`.
 */
export type FrozenEffect = {
  action: Operation;
  resource: ResourceName;
  id: string;
  label: string;
  reason: Effect['reason'];
  version: number | null;
  /** Distinguishes records that had the same readable id one after the other. Null if new. */
  createdAt: string | null;
  /** Readers without `inventory:read` at this scope do not see the effect. */
  resourceScope: ResourceScope;
  /** Further scopes at which readers see it, for a record that belongs to several. */
  otherScopes?: ResourceScope[];
  /** The fields that differ: of a new record all that are set, of a deleted one all that were. */
  changes: FieldChange[];
};

/**
 * All effects and warnings of a plan, for no particular reader. Applying the plan requires
 * `inventory:write` at each of `requiredScopes`.
 */
export type FrozenPlan = {
  effects: FrozenEffect[];
  warnings: PlanWarning[];
  requiredScopes: ResourceScope[];
};

type PlannedChanges = { planned: readonly Planned[]; changes: readonly PlannedChange[] };

/** The JSON Pointer of a finding: the mutation, and the field of its record. */
const pointerIn = (i: number, pointer: string | null): string =>
  `/mutations/${i}${pointer === null ? '' : `/record${pointer}`}`;

const keyOf = ({ resource, id }: { resource: string; id: string }): string => `${resource}/${id}`;

/** The placeholders (`new:1`, `new:2`, …) of the records that a plan creates, by their ids. */
export function placeholderIds({ planned, changes }: PlannedChanges): ReadonlyMap<string, string> {
  const requestedKeys = planned.flatMap(({ subject }) => (subject ? [keyOf(subject)] : []));
  const createdIds = new Map(
    changes
      .filter(({ before, resource }) => before === null && RESOURCES[resource].idPrefix !== null)
      .map((change) => [keyOf(change), change.id]),
  );
  const orderedKeys = [
    ...new Set([...requestedKeys.filter((key) => createdIds.has(key)), ...createdIds.keys()]),
  ];
  return new Map(
    orderedKeys.map((key, i) => [
      assertDefined(createdIds.get(key), `id of ${key}`),
      `new:${i + 1}`,
    ]),
  );
}

function reasonOf(
  { before, after }: PlannedChange,
  declaredReason: Effect['reason'] | undefined,
): Effect['reason'] {
  if (declaredReason) return declaredReason;
  // The plan does not declare effects on records that the requester may not read.
  if (after === null) return 'cascade';
  return before && !isSame(before.parentPrefixId, after.parentPrefixId)
    ? 'reparented'
    : 'reference_cleared';
}

const currentRow = ({ before, after, id }: PlannedChange): Row =>
  assertDefined(after ?? before, `row of ${id}`);

/**
 * Freezes a valid plan. Two plans that do the same result in equal frozen plans: new ids are
 * replaced by placeholders, and effects are sorted.
 */
export function freezePlan(outcome: PlannedChanges): FrozenPlan {
  const { planned, changes } = outcome;
  const placeholders = placeholderIds(outcome);
  const withPlaceholders = <T>(value: T): T =>
    JSON.parse(JSON.stringify(value), (_, each: unknown) =>
      typeof each === 'string' ? (placeholders.get(each) ?? each) : each,
    ) as T;
  // Requested changes come first, in the order of the request, then cascades.
  const requestOrder = new Map(
    planned.flatMap(({ subject }, i) => (subject ? [[keyOf(subject), i] as const] : [])).reverse(),
  );
  const sortKey = (change: PlannedChange) =>
    `${String(requestOrder.get(keyOf(change)) ?? MAX_MUTATIONS).padStart(6, '0')} ${keyOf(change)}`;
  // A record that the request names changes because of it, whatever else would change it.
  const reasons = new Map(
    planned
      .flatMap(({ effects }) => effects.map((effect) => [keyOf(effect), effect.reason] as const))
      .sort(([, one], [, other]) => Number(one === 'requested') - Number(other === 'requested')),
  );
  const inOrder = [...changes].sort((one, other) => (sortKey(one) < sortKey(other) ? -1 : 1));
  const effects = inOrder.map((change): FrozenEffect => {
    const { resource, id, before, after } = change;
    const definition = RESOURCES[resource];
    const [resourceScope, ...otherScopes] = resourceScopesOf(
      definition,
      before ?? currentRow(change),
    ).map(withPlaceholders);
    return {
      action: after ? (before ? 'update' : 'create') : 'delete',
      resource,
      id: placeholders.get(id) ?? id,
      label: withPlaceholders(labelOf(definition, currentRow(change))),
      reason: reasonOf(change, reasons.get(keyOf(change))),
      version: before?.version ?? null,
      createdAt: withPlaceholders(before?.createdAt ?? null) as string | null,
      resourceScope: assertDefined(resourceScope, 'resource scope'),
      ...(otherScopes.length > 0 && { otherScopes }),
      changes: withPlaceholders(differences(before, after)),
    };
  });
  const scopes = new Map(
    planned
      .flatMap(({ requiredScopes }) => requiredScopes)
      .map((scope) => [JSON.stringify(scope), withPlaceholders(scope)]),
  );
  return {
    effects,
    warnings: planned.flatMap(({ warnings }, i) =>
      warnings.map((warning) => ({ ...warning, pointer: pointerIn(i, warning.pointer) })),
    ),
    requiredScopes: [...scopes.values()],
  };
}

/** An effect as approved and as it would be now. Null if there was or is none. */
export type EffectDifference = { approved: FrozenEffect | null; now: FrozenEffect | null };

/**
 * How a plan differs from the approved one. With errors or conflicts there is no current plan.
 */
export type PlanDifference = {
  errors: PlanError[];
  conflicts: PlanConflict[];
  effects: EffectDifference[];
};

const isSameEffect = (one: FrozenEffect, other: FrozenEffect): boolean =>
  one.action === other.action &&
  one.version === other.version &&
  one.createdAt === other.createdAt &&
  isSame(one.changes, other.changes);

/** True if the approvers of a request with the scope `resourceScope` may decide on records at `required`. */
const isInside = (resourceScope: ResourceScope, required: ResourceScope): boolean =>
  contains(resourceScope, required) &&
  (resourceScope.tenantId === PLATFORM || resourceScope.tenantId === required.tenantId);

/** A required scope of a plan that is outside the scope of its request; undefined if there is none. */
export const findOutside = (
  resourceScope: ResourceScope,
  { requiredScopes }: Pick<FrozenPlan, 'requiredScopes'>,
): ResourceScope | undefined =>
  requiredScopes.find((required) => !isInside(resourceScope, required));

/**
 * Records get the site of what they belong to without a new version, so a plan with the same effects
 * may need rights elsewhere.
 */
const outsideErrors = (resourceScope: ResourceScope, planned: readonly Planned[]): PlanError[] =>
  planned.flatMap((each, i) =>
    findOutside(resourceScope, each)
      ? [
          {
            pointer: pointerIn(i, null),
            code: 'outside_scope',
            message: 'would change records outside the scope of the request',
          },
        ]
      : [],
  );

/**
 * Grants are no records of the inventory, so no effect shows that a change removes them: a warning of the plan does.
 * Without it, nobody has approved that.
 */
const grantErrors = (approved: FrozenPlan, planned: readonly Planned[]): PlanError[] =>
  planned
    .flatMap(({ warnings }, i) =>
      warnings.map((each) => ({ ...each, pointer: pointerIn(i, each.pointer) })),
    )
    .filter(
      ({ code, pointer }) =>
        code === GRANTS_REMOVED &&
        !approved.warnings.some((each) => each.code === code && each.pointer === pointer),
    );

/**
 * Compares the approved plan of a request with a current one. Returns null if they do the same, inside
 * `resourceScope`, the scope of the request.
 */
export function planDifference(
  approved: FrozenPlan,
  outcome: PlannedChanges,
  resourceScope: ResourceScope,
): PlanDifference | null {
  if (!outcome.planned.every(isValid)) return invalidPlanDifference(outcome.planned);
  const approvedByKey = new Map(approved.effects.map((effect) => [keyOf(effect), effect]));
  const currentByKey = new Map(
    freezePlan(outcome).effects.map((effect) => [keyOf(effect), effect]),
  );
  const effects = [...new Set([...approvedByKey.keys(), ...currentByKey.keys()])].flatMap(
    (key): EffectDifference[] => {
      const [before, after] = [approvedByKey.get(key) ?? null, currentByKey.get(key) ?? null];
      return before && after && isSameEffect(before, after)
        ? []
        : [{ approved: before, now: after }];
    },
  );
  const errors = [
    ...outsideErrors(resourceScope, outcome.planned),
    ...grantErrors(approved, outcome.planned),
  ];
  return effects.length + errors.length === 0 ? null : { errors, conflicts: [], effects };
}

/** The difference of a plan that is no longer valid: its errors and conflicts, with pointers. */
export function invalidPlanDifference(planned: readonly Planned[]): PlanDifference {
  return {
    errors: planned.flatMap(({ errors }, i) =>
      errors.map((error) => ({ ...error, pointer: pointerIn(i, error.pointer) })),
    ),
    conflicts: planned.flatMap(({ conflicts }, i) =>
      conflicts.map((conflict) => ({ ...conflict, pointer: pointerIn(i, conflict.pointer) })),
    ),
    effects: [],
  };
}
