import { cut } from '../../domain/shared/excerpt.ts';
import {
  AppError,
  invalidFields,
  notFound,
  versionConflict,
  type FieldError,
} from '../../domain/shared/errors.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isValid, pointerInMutation, type Planned } from '../../domain/inventory/planning.ts';

/** Where a finding of the plan at `index` is in the body of the request. */
type PointerInBody = (pointer: string | null, planned: Planned, index: number) => string | null;

/** For bodies with `mutations`. */
const inBatch: PointerInBody = (pointer, planned, index) =>
  `/mutations/${index}${pointer === null ? '' : pointerInMutation(planned, pointer)}`;

/** For bodies with the fields of a new record in `record`. */
export const inRecord: PointerInBody = (pointer) => pointer && `/record${pointer}`;

/** For bodies that are the record. */
const inBody: PointerInBody = (pointer) => pointer;

/** The error for invalid plans: all errors of all mutations, or all conflicts without errors. */
export function conflictError(
  planned: readonly Planned[],
  pointerInBody: PointerInBody = inBatch,
): AppError {
  const errors = planned.flatMap((each, i) =>
    each.errors.map(({ pointer, ...error }): FieldError => ({
      in: 'body',
      ...error,
      pointer: pointerInBody(pointer, each, i) ?? '',
    })),
  );
  if (errors.length > 0) return invalidFields(errors);
  const conflicts = planned.flatMap((each, i) =>
    each.conflicts.map((conflict) => ({
      ...conflict,
      pointer: pointerInBody(conflict.pointer, each, i),
    })),
  );
  return new AppError(
    codeOf(conflicts),
    cut(conflicts.map(({ message }) => message).join('; '), 1_000),
    { conflicts },
  );
}

function codeOf(conflicts: readonly { code: string }[]): 'legal_hold' | 'in_use' | 'conflict' {
  if (conflicts.some(({ code }) => code === 'legal_hold')) return 'legal_hold';
  return conflicts.every(({ code }) => code === 'in_use') ? 'in_use' : 'conflict';
}

/** The error for the record with this id in the path, or for a create when `id` is null. */
export function conflictErrorOfOne(planned: Planned, id: string | null): AppError {
  const isMissing =
    id !== null &&
    planned.errors.some(({ pointer, code }) => pointer === '/id' && code === 'not_found');
  if (isMissing) return notFound(RESOURCES[planned.resource as ResourceName].kind, id);
  const isStale = planned.conflicts.some(({ code }) => code === 'version_conflict');
  if (isStale && planned.errors.length === 0 && planned.subject?.before)
    return versionConflict(planned.subject.before.version);
  return conflictError([planned], inBody);
}

/** True when every plan is valid. */
export const allValid = (planned: readonly Planned[]): boolean => planned.every(isValid);
