import type { Planned } from './planning.ts';

/** The number of findings that the plans of one request list together. */
export const MAX_REQUEST_FINDINGS = 1_000;

/**
 * Bounds the findings of the plans of one request. Once there are as many as allowed, the plan of an
 * invalid mutation lists one more, so that it remains invalid.
 */
export function createFindingsBound() {
  let left = MAX_REQUEST_FINDINGS;
  return (planned: Planned): void => {
    const { errors, conflicts, warnings } = planned;
    const keep = <T>(findings: T[], atLeast: 0 | 1): T[] => {
      const kept = findings.slice(0, Math.max(left, atLeast));
      left -= kept.length;
      return kept.length < findings.length ? kept : findings;
    };
    planned.errors = keep(errors, 1);
    planned.conflicts = keep(conflicts, errors.length > 0 ? 0 : 1);
    planned.warnings = keep(warnings, 0);
  };
}
