/**
 * Whether a number is a multiple of a positive one, as both are written: 0.07 is a multiple of 0.01, though the
 * quotient of their doubles is 7.000000000000001. Whole steps are exact.
 */
export function isMultipleOf(value: number, step: number): boolean {
  if (value % step === 0) return true;
  if (Number.isInteger(step)) return false;
  const quotient = value / step;
  // Either number and the quotient are rounded, each by half of `Number.EPSILON` at most.
  return Math.abs(quotient - Math.round(quotient)) <= Math.abs(quotient) * 2 * Number.EPSILON;
}
