/** The search parameters of an address. All are text: addresses stay readable and can be typed. */
export type SearchText = Record<string, string>;

/** Reads the search parameters of an address; of a repeated one the values with commas between them. */
export function parseSearch(query: string): SearchText {
  const search: SearchText = {};
  for (const [name, value] of new URLSearchParams(query))
    search[name] = search[name] === undefined ? value : `${search[name]},${value}`;
  return search;
}

/** Writes search parameters; those that are empty are left out. */
export function stringifySearch(search: Readonly<Record<string, unknown>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(search))
    if (['string', 'number', 'boolean'].includes(typeof value) && value !== '')
      params.set(name, `${value as string | number | boolean}`);
  const query = params.toString();
  // Readable where the RFC allows it: 10.0.0.0/8, a,b and names with a colon.
  return query === ''
    ? ''
    : `?${query.replaceAll('%2F', '/').replaceAll('%2C', ',').replaceAll('%3A', ':')}`;
}
