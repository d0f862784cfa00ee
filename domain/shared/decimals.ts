const WHOLE = /^-?\d{1,17}$/;
const DECIMAL = /^-?\d{1,17}(?:\.\d{1,17})?$/;

/**
 * The number that a text writes in decimal notation, `12` or `-1.5`, or as JSON has it in a record, such as
 * `1e-7`; undefined for any other text, such as `0x10`, `1e3`, `+1` or ` 5`, and for whole numbers that are
 * not exact.
 */
export function parseDecimal(
  text: string,
  kind: 'integer' | 'number' = 'number',
): number | undefined {
  const value = Number(text);
  const isWritten = kind === 'number' && Number.isFinite(value) && String(value) === text;
  if (!isWritten && !(kind === 'integer' ? WHOLE : DECIMAL).test(text)) return undefined;
  return kind === 'integer' && !Number.isSafeInteger(value) ? undefined : value;
}
