const LABELS = ['name', 'cidr', 'address', 'model', 'label', 'startAddress'] as const;

/** What a record of the inventory is called, as its list has it; without a name its id. */
export function recordLabel(record: { readonly id: string }): string {
  const fields: Readonly<Record<string, unknown>> = { ...record };
  const name = LABELS.map((field) => fields[field]).find(
    (value) => typeof value === 'string' && value !== '',
  );
  return typeof name === 'string' ? name : record.id;
}
