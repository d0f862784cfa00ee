const WHOLE = /^-?\d{1,17}$/;
const DECIMAL = /^-?\d{1,17}(?:\.\d{1,17})?$/;

/**
 * The number that a text writes in decimal notation, `12` or `-1.5`; undefined for any other text, such
 * as `0x10`, `1e3`, `+1` or ` 5`, and for whole numbers that are not exact.
 */
export function parseDecimal(
  text: string,
  kind: 'integer' | 'number' = 'number',
): number | undefined {
  if (!(kind === 'integer' ? WHOLE : DECIMAL).test(text)) return undefined;
  const value = Number(text);
  return kind === 'integer' && !Number.isSafeInteger(value) ? undefined : value;
}
