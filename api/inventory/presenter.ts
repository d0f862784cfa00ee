import { isValid, type Planned } from '../../domain/inventory/planning.ts';
import type { Usage } from '../../services/inventory/addressSpace.ts';

const HIDDEN: ReadonlySet<string> = new Set(['version', 'createdAt', 'updatedAt']);

/** Ids that a rehearsal made up are nobody's: they are left out, or null where something points to them. */
function withoutIds<T>(value: T, made: ReadonlySet<string>): T {
  return made.size === 0
    ? value
    : (JSON.parse(JSON.stringify(value), (name, each: unknown) =>
        typeof each === 'string' && made.has(each) ? (name === 'label' ? 'new' : null) : each,
      ) as T);
}

const madeUp = (planned: readonly Planned[]): Set<string> =>
  new Set(
    planned.flatMap(({ operation, subject }) =>
      operation === 'create' && subject && /_[0-9a-z]{26}$/.test(subject.id) ? [subject.id] : [],
    ),
  );

const validation = (planned: Pick<Planned, 'errors' | 'conflicts' | 'warnings'>) => {
  const { errors, conflicts, warnings } = planned;
  return { valid: isValid(planned), errors, conflicts, warnings };
};

function result(planned: Planned, made: ReadonlySet<string>) {
  const { resource, operation, candidateRecord, effects } = planned;
  const record = Object.entries(candidateRecord).filter(
    ([field, value]) => !HIDDEN.has(field) && !(field === 'id' && made.has(String(value))),
  );
  return {
    resource,
    operation,
    validation: withoutIds(validation(planned), made),
    candidateRecord: withoutIds(Object.fromEntries(record), made),
    effects: withoutIds(effects, made),
  };
}

/** The body of a validation, and its status: 200 when it is valid, 400 with errors, 409 with conflicts alone. */
export function validationView(
  actorId: string,
  planned: readonly Planned[],
  several: boolean,
): { status: number; body: object } {
  const made = madeUp(planned);
  const errors = planned.flatMap((each, i) =>
    each.errors.map((error) => ({
      ...error,
      pointer: several ? `/mutations/${i}/record${error.pointer}` : error.pointer,
    })),
  );
  const status = errors.length > 0 ? 400 : planned.every(isValid) ? 200 : 409;
  const [only] = planned;
  if (!several && only) return { status, body: { actorId, ...result(only, made) } };
  const at = (i: number, pointer: string | null) =>
    `/mutations/${i}${pointer === null ? '' : `/record${pointer}`}`;
  const all = {
    errors,
    conflicts: planned.flatMap((each, i) =>
      each.conflicts.map((conflict) => ({ ...conflict, pointer: at(i, conflict.pointer) })),
    ),
    warnings: planned.flatMap((each, i) =>
      each.warnings.map((warning) => ({ ...warning, pointer: at(i, warning.pointer) })),
    ),
  };
  return {
    status,
    body: {
      actorId,
      validation: withoutIds(validation(all), made),
      results: planned.map((each) => result(each, made)),
    },
  };
}

export const usageView = ({ size, used, children, addresses, ranges }: Usage) => ({
  size: size.toString(),
  used: used.toString(),
  free: (size - used).toString(),
  percent: Number((used * 10_000n) / size) / 100,
  children,
  addresses,
  ranges,
});
