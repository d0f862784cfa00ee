import type { Row } from './resource.ts';

/** The value of a field before and after a change. */
export type FieldChange = { field: string; before: unknown; after: unknown };

const SYSTEM_FIELDS: ReadonlySet<string> = new Set(['id', 'version', 'createdAt', 'updatedAt']);

/** True when two values of a field are equal as JSON. */
export const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

/**
 * The fields in which two states of a record differ, without those that the system sets. Null means
 * that the record does not exist.
 */
export function differences(before: Row | null, after: Row | null): FieldChange[] {
  return Object.keys(after ?? before ?? {})
    .filter(
      (field) =>
        !SYSTEM_FIELDS.has(field) && !isSame(before?.[field] ?? null, after?.[field] ?? null),
    )
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }));
}
