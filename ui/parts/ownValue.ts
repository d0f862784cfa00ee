/**
 * The value of a key that others have chosen, such as a part of an address or an id; undefined if the record has
 * none. Reading it with brackets finds `constructor` and others in every object.
 */
export const ownValue = <T>(
  record: Readonly<Record<string, T>> | undefined,
  key: string,
): T | undefined => (record !== undefined && Object.hasOwn(record, key) ? record[key] : undefined);
