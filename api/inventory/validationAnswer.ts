import {
  isValid,
  pointerInMutation,
  type Effect,
  type Planned,
} from '../../domain/inventory/planning.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { createPause } from '../../platform/turns.ts';
import type { HttpResponse } from '../http/response.ts';

/** The bytes of the answer to a validation. */
const MAX_ANSWER_BYTES = 8 * 1_048_576;

const HIDDEN_FIELDS: ReadonlySet<string> = new Set(['version', 'createdAt', 'updatedAt']);

type Findings = Pick<Planned, 'errors' | 'conflicts' | 'warnings'>;
type NewIds = ReadonlySet<string>;

/**
 * The answer to a validation. Status 200 when valid, 400 with errors, 409 with conflicts only. It is
 * made in turns, as it may be long. Errors: `limit_reached`; the reason of `signal`.
 */
export async function validationAnswer(
  actorId: string,
  planned: readonly Planned[],
  { isBatch, signal }: { isBatch: boolean; signal: AbortSignal },
): Promise<HttpResponse> {
  const hasErrors = planned.some(({ errors }) => errors.length > 0);
  const status = hasErrors ? 400 : planned.every(isValid) ? 200 : 409;
  const pause = createPause({ signal, isPatient: true });
  const parts: string[] = [];
  let bytes = 0;
  for (const part of answerParts(actorId, planned, isBatch)) {
    bytes += Buffer.byteLength(part);
    if (bytes > MAX_ANSWER_BYTES) throw tooLong();
    parts.push(part);
    await pause();
  }
  return { status, headers: {}, json: parts.join('') };
}

const tooLong = (): AppError =>
  new AppError(
    'limit_reached',
    `The answer would be larger than ${MAX_ANSWER_BYTES / 1_048_576} MiB. Split the changes.`,
  );

function* answerParts(
  actorId: string,
  planned: readonly Planned[],
  isBatch: boolean,
): Generator<string> {
  const newIds = newIdsOf(planned);
  yield `{"actorId":${JSON.stringify(actorId)},`;
  const [only] = planned;
  if (!isBatch && only) {
    yield* resultParts(only, newIds);
  } else {
    yield* summaryParts(planned, newIds);
    yield ',"results":[';
    for (const [i, each] of planned.entries()) {
      yield i === 0 ? '{' : ',{';
      yield* resultParts(each, newIds);
      yield '}';
    }
    yield ']';
  }
  yield '}';
}

/** The generated ids of records that plans create. */
const newIdsOf = (planned: readonly Planned[]): Set<string> =>
  new Set(
    planned.flatMap(({ operation, subject }) =>
      operation === 'create' && subject && /_[0-9a-z]{26}$/.test(subject.id) ? [subject.id] : [],
    ),
  );

/** Null instead of the id of a record that does not exist yet. */
const masked = <T>(value: T, newIds: NewIds): T | null =>
  typeof value === 'string' && newIds.has(value) ? null : value;

/** All findings of a batch. */
function* summaryParts(planned: readonly Planned[], newIds: NewIds): Generator<string> {
  yield `"validation":{"valid":${planned.every(isValid)}`;
  for (const kind of ['errors', 'conflicts', 'warnings'] as const) {
    yield `,"${kind}":[`;
    let isFirst = true;
    for (const [i, each] of planned.entries()) {
      const at = (pointer: string | null) =>
        `/mutations/${i}${pointer === null ? '' : pointerInMutation(each, pointer)}`;
      for (const finding of findingsOf(each, newIds)[kind]) {
        yield (isFirst ? '' : ',') + JSON.stringify({ ...finding, pointer: at(finding.pointer) });
        isFirst = false;
      }
    }
    yield ']';
  }
  yield '}';
}

const findingsOf = ({ errors, conflicts, warnings }: Findings, newIds: NewIds): Findings => ({
  errors,
  conflicts: conflicts.map((conflict) => ({ ...conflict, id: masked(conflict.id, newIds) })),
  warnings,
});

/** The plan of one mutation, without braces. */
function* resultParts(planned: Planned, newIds: NewIds): Generator<string> {
  const { resource, operation, candidateRecord, effects } = planned;
  const fields = Object.entries<unknown>({ ...candidateRecord }).flatMap(([field, value]) =>
    HIDDEN_FIELDS.has(field) || (field === 'id' && newIds.has(String(value)))
      ? []
      : [[field, masked(value, newIds)]],
  );
  yield `"resource":${JSON.stringify(resource)},"operation":${JSON.stringify(operation)}`;
  const validation = { valid: isValid(planned), ...findingsOf(planned, newIds) };
  yield `,"validation":${JSON.stringify(validation)}`;
  yield `,"candidateRecord":${JSON.stringify(Object.fromEntries(fields))},"effects":[`;
  for (const [i, effect] of effects.entries())
    yield (i === 0 ? '' : ',') + JSON.stringify(effectView(effect, newIds));
  yield ']';
}

const effectView = (effect: Effect, newIds: NewIds) => ({
  ...effect,
  id: masked(effect.id, newIds),
  label: newIds.has(effect.label) ? 'new' : effect.label,
  changes: effect.changes.map(({ field, before, after }) => ({
    field,
    before: masked(before, newIds),
    after: masked(after, newIds),
  })),
});
