/** A text without what cannot be stored: NUL, and half of a surrogate pair. */
const storableText = (text: string): string => text.replaceAll('\0', '\uFFFD').toWellFormed();

/** JSON with all its texts and keys as PostgreSQL can store them, and clients can read them. */
export function storableJson(value: unknown): unknown {
  if (typeof value === 'string') return storableText(value);
  if (Array.isArray(value)) return value.map(storableJson);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [storableText(key), storableJson(inner)]),
  );
}
