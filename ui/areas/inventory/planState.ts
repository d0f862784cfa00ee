import type { Plan } from './usePlan.ts';

/** Why a change cannot be made now; undefined if it can. */
export function whyNotApply(plan: Plan, isIncomplete: boolean): string | undefined {
  if (isIncomplete) return 'A field is incomplete.';
  if (plan.problem) return 'What it would change could not be found out.';
  if (plan.isOutdated || !plan.data) return 'What it would change is still being found out.';
  return plan.data.validation.valid ? undefined : 'It has errors or conflicts: see What changes.';
}
