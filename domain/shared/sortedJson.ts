/**
 * A JSON value as text in which the names of objects are sorted: equal values have equal texts. Fields that are
 * undefined are left out, as JSON does.
 */
export function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const entries = Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => `${JSON.stringify(name)}:${sortedJson(each)}`);
  return `{${entries.join(',')}}`;
}
