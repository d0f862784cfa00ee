import {
  AppError,
  invalidFields,
  notFound,
  staleVersion,
  type FieldError,
} from '../../domain/shared/errors.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isValid, type Planned } from '../../domain/inventory/planning.ts';

/** A pointer into the record of the mutation at `at`, or into the record alone where there is one mutation only. */
const placed = (at: number | null, pointer: string | null): string | null =>
  at === null || pointer === null ? pointer : `/mutations/${at}/record${pointer}`;

/** Why a change is not made: every error of every mutation, or every conflict when there are none. */
export function refusalOf(planned: readonly Planned[], several: boolean): AppError {
  const at = (i: number) => (several ? i : null);
  const errors = planned.flatMap((each, i) =>
    each.errors.map(({ pointer, ...error }): FieldError => ({
      in: 'body',
      ...error,
      pointer: placed(at(i), pointer) ?? '',
    })),
  );
  if (errors.length > 0) return invalidFields(errors);
  const conflicts = planned.flatMap((each, i) =>
    each.conflicts.map((conflict) => ({
      ...conflict,
      pointer: placed(at(i), conflict.pointer) ?? (several ? `/mutations/${i}` : null),
    })),
  );
  const code = conflicts.every((conflict) => conflict.code === 'in_use') ? 'in_use' : 'conflict';
  return new AppError(
    code,
    conflicts
      .map(({ message }) => message)
      .join('; ')
      .slice(0, 1_000),
    { conflicts },
  );
}

/** The same for one record that a path names. */
export function refusalOfOne(planned: Planned, id: string | null): AppError {
  const gone =
    id !== null &&
    planned.errors.some(({ pointer, code }) => pointer === '/id' && code === 'not_found');
  if (gone) return notFound(RESOURCES[planned.resource as ResourceName].kind, id);
  const stale = planned.conflicts.some(({ code }) => code === 'version_stale');
  if (stale && planned.errors.length === 0 && planned.subject?.before)
    return staleVersion(planned.subject.before.version);
  return refusalOf([planned], false);
}

export const allValid = (planned: readonly Planned[]): boolean => planned.every(isValid);
