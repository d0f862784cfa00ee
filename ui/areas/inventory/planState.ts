/** What is known of the plan of a change. */
type Plan = {
  data: { validation: { valid: boolean } } | undefined;
  effects: readonly unknown[];
  isOutdated: boolean;
  problem: Error | null;
};

/** Why a change cannot be made now; undefined if it can. */
export function whyNotApply(plan: Plan, isIncomplete: boolean): string | undefined {
  if (isIncomplete) return 'A field is incomplete.';
  if (plan.problem) return 'The effect of the change could not be computed.';
  if (plan.isOutdated || !plan.data) return 'The effect of the change is still being computed.';
  if (!plan.data.validation.valid) return 'It has errors or conflicts: see What changes.';
  // The service would accept it, and change nothing.
  return plan.effects.length === 0 ? 'It would change nothing.' : undefined;
}
