import type { Row } from './resource.ts';

/** A field and what it was and is. */
export type FieldChange = { field: string; before: unknown; after: unknown };

const KEPT_BY_US: ReadonlySet<string> = new Set(['id', 'version', 'createdAt', 'updatedAt']);

/** True when two values of a field are the same. */
export const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other);

/** The fields that callers set or that follow from them, where two states of a record differ; null is no record. */
export function differences(before: Row | null, after: Row | null): FieldChange[] {
  return Object.keys(after ?? before ?? {})
    .filter(
      (field) => !KEPT_BY_US.has(field) && !isSame(before?.[field] ?? null, after?.[field] ?? null),
    )
    .map((field) => ({ field, before: before?.[field] ?? null, after: after?.[field] ?? null }));
}
