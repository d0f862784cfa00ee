import { isValid, type Planned } from '../../domain/inventory/planning.ts';
import type { Usage } from '../../services/inventory/addressSpace.ts';

const HIDDEN_FIELDS: ReadonlySet<string> = new Set(['version', 'createdAt', 'updatedAt']);

/** Replaces ids of records that do not exist yet: by null, and in labels by `new`. */
function maskNewIds<T>(value: T, newIds: ReadonlySet<string>): T {
  return newIds.size === 0
    ? value
    : (JSON.parse(JSON.stringify(value), (name, each: unknown) =>
        typeof each === 'string' && newIds.has(each) ? (name === 'label' ? 'new' : null) : each,
      ) as T);
}

/** The generated ids of records that plans create. */
const newIdsOf = (planned: readonly Planned[]): Set<string> =>
  new Set(
    planned.flatMap(({ operation, subject }) =>
      operation === 'create' && subject && /_[0-9a-z]{26}$/.test(subject.id) ? [subject.id] : [],
    ),
  );

const validationSummary = (planned: Pick<Planned, 'errors' | 'conflicts' | 'warnings'>) => {
  const { errors, conflicts, warnings } = planned;
  return { valid: isValid(planned), errors, conflicts, warnings };
};

function mutationResult(planned: Planned, newIds: ReadonlySet<string>) {
  const { resource, operation, candidateRecord, effects } = planned;
  const record = Object.entries(candidateRecord).filter(
    ([field, value]) => !HIDDEN_FIELDS.has(field) && !(field === 'id' && newIds.has(String(value))),
  );
  return {
    resource,
    operation,
    validation: maskNewIds(validationSummary(planned), newIds),
    candidateRecord: maskNewIds(Object.fromEntries(record), newIds),
    effects: maskNewIds(effects, newIds),
  };
}

/** A validation response. Status 200 when valid, 400 with errors, 409 with conflicts only. */
export function validationView(
  actorId: string,
  planned: readonly Planned[],
  isBatch: boolean,
): { status: number; body: object } {
  const newIds = newIdsOf(planned);
  const errors = planned.flatMap((each, i) =>
    each.errors.map((error) => ({
      ...error,
      pointer: isBatch ? `/mutations/${i}/record${error.pointer}` : error.pointer,
    })),
  );
  const status = errors.length > 0 ? 400 : planned.every(isValid) ? 200 : 409;
  const [only] = planned;
  if (!isBatch && only) return { status, body: { actorId, ...mutationResult(only, newIds) } };
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
      validation: maskNewIds(validationSummary(all), newIds),
      results: planned.map((each) => mutationResult(each, newIds)),
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
