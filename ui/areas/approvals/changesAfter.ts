/**
 * The changes of a record after a request was made, of the newest ones. Versions do not say which these are: a restore
 * returns to an earlier one.
 */
export function changesAfter<C extends { at: string }>(
  changes: readonly C[],
  requestedAt: string,
): readonly C[] {
  const end = changes.findIndex(({ at }) => Date.parse(at) <= Date.parse(requestedAt));
  return end === -1 ? changes : changes.slice(0, end);
}
