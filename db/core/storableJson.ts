/** An escape in a JSON text; the first alternative is one that PostgreSQL's JSON functions refuse. */
const ESCAPES = /\\u(?:0000|d[89a-f][0-9a-f]{2})|\\./g;

/**
 * JSON for PostgreSQL's JSON functions, which refuse a whole statement for one NUL or half of a surrogate
 * pair: these become U+FFFD. `JSON.stringify` writes each of them as an escape, and no whole pair.
 */
export function storableJson(value: unknown): string {
  const json = JSON.stringify(value);
  return json.includes('\\u')
    ? json.replace(ESCAPES, (escape) => (escape.length > 2 ? '\ufffd' : escape))
    : json;
}
