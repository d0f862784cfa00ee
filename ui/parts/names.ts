/** What `include=labels,people` adds to a response: labels by kind and id, and people by id. */
export type Names = {
  labels?: Readonly<Record<string, Readonly<Record<string, string>> | undefined>> | undefined;
  people?: Readonly<Record<string, { displayName: string } | undefined>> | undefined;
};

/** The label of a record of `kind`, or of any kind if that is not known; undefined if it has none. */
export function labelOf(names: Names | undefined, id: string, kind?: string): string | undefined {
  const labels = names?.labels;
  if (!labels) return undefined;
  if (kind !== undefined) return labels[kind]?.[id];
  for (const byId of Object.values(labels)) {
    const label = byId?.[id];
    if (label !== undefined) return label;
  }
  return undefined;
}

/** The name of an account, or its id if it has none here. Holdfast itself is `system`. */
export const personName = (names: Names | undefined, id: string): string =>
  names?.people?.[id]?.displayName ?? (id === 'system' ? 'Holdfast' : id);

/** Names of several responses; later ones win. */
export function mergeNames(all: readonly (Names | undefined)[]): Names {
  const labels: Record<string, Record<string, string>> = {};
  const people: Record<string, { displayName: string }> = {};
  for (const names of all) {
    for (const [kind, byId] of Object.entries(names?.labels ?? {}))
      labels[kind] = Object.assign(labels[kind] ?? {}, byId);
    for (const [id, person] of Object.entries(names?.people ?? {})) if (person) people[id] = person;
  }
  return { labels, people };
}
