import { isSame } from './difference.ts';
import { isValid, type Effect, type Mutation, type Planned } from './planning.ts';

/** Effects that are read before other work may get a turn. */
const EFFECTS_PER_TURN = 100;

const keyOf = ({ resource, id }: { resource: string; id: string }): string => `${resource}/${id}`;

/**
 * Shows a change as requested that a mutation requests, also when an earlier mutation of the same
 * request already causes it: a prefix that is moved below a parent which is created before it is
 * reparented by both. The effect moves to the mutation that requests it. Yields often, so that the
 * caller can pause.
 */
export function* attributeRequested(
  planned: readonly Planned[],
  mutations: readonly Mutation[],
): Generator<void> {
  const causedBy = new Map<string, Planned[]>();
  for (const [i, plan] of planned.entries()) {
    claimEffects(plan, mutations[i]?.record, causedBy);
    yield;
    for (const [n, effect] of plan.effects.entries()) {
      if (n % EFFECTS_PER_TURN === 0) yield;
      if (effect.action !== 'update' || effect.reason === 'requested') continue;
      const key = keyOf(effect);
      causedBy.set(key, [...(causedBy.get(key) ?? []), plan]);
    }
  }
}

/** Moves effects of earlier mutations on the record of a plan to it, as far as it requests them. */
function claimEffects(
  plan: Planned,
  record: unknown,
  causedBy: ReadonlyMap<string, readonly Planned[]>,
): void {
  const { subject, operation } = plan;
  const after = subject?.after;
  if (!after || operation !== 'update' || !isValid(plan) || typeof record !== 'object') return;
  const key = keyOf(subject);
  for (const earlier of causedBy.get(key) ?? [])
    earlier.effects = earlier.effects.flatMap((effect) => {
      if (keyOf(effect) !== key) return [effect];
      const isRequested = ({ field, after: value }: Effect['changes'][number]) =>
        Object.hasOwn(record ?? {}, field) && isSame(value, after[field]);
      const requested = effect.changes.filter(isRequested);
      if (requested.length === 0) return [effect];
      addRequested(plan, { ...effect, changes: requested });
      const others = effect.changes.filter((change) => !isRequested(change));
      return others.length > 0 ? [{ ...effect, changes: others }] : [];
    });
}

function addRequested(plan: Planned, { changes, resource, id, label }: Effect): void {
  plan.unchanged = false;
  const own = plan.effects.find(({ reason }) => reason === 'requested');
  if (own) own.changes.push(...changes);
  else
    plan.effects.unshift({ action: 'update', resource, id, label, reason: 'requested', changes });
}
