/**
 * The number of an input; empty for what is no number yet. Numbers with more digits than it can keep come as text: they
 * are sent, and the service says what is wrong with them.
 */
export function typedNumber(value: number | string): number | '' {
  const number = value === '' ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : '';
}
