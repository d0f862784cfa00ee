import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQueries, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { answer, api, Problem, type Schemas } from '../../app/api.ts';
import { NOT_POLLED } from '../../app/refresh.ts';
import { EVERY_TENANT, type Names } from '../../parts/names.ts';
import type { Effect } from '../../parts/plan/effects.ts';
import type { FieldError } from '../../parts/problems.ts';
import { recordQuery } from '../../parts/records/findRecords.ts';
import type { Resource } from './inventoryQueries.ts';
import { referenceOf } from './resources.ts';

/** After the last key. */
const DEBOUNCE_MS = 400;
/** Names of more references than that are not read: their ids are shown. */
const MAX_NAMES = 20;

export type Mutation = {
  resource: string;
  operation: 'create' | 'update' | 'delete';
  record: Readonly<Record<string, unknown>>;
};

/** One change, or several that are made together. */
export type Mutations = Mutation | { mutations: readonly Mutation[] };

type OneValidation = Schemas['InventoryValidation'];
type Validation = OneValidation | Schemas['InventoryValidations'];

/** What a change would do, as far as the service has said. */
export type Plan = {
  /** The answer for the latest change that was planned. */
  data: Validation | undefined;
  effects: readonly Effect[];
  /** What is wrong with fields. */
  errors: readonly FieldError[];
  /** The data is older than the change, or there is none yet. */
  isOutdated: boolean;
  /** Why it could not be planned. */
  problem: Error | null;
  retry: () => void;
};

const isValidation = (body: unknown): body is Validation =>
  typeof body === 'object' && body !== null && 'validation' in body;

const oneBodyOf = ({ record, ...mutation }: Mutation) => ({ ...mutation, record: { ...record } });

/** Changes as the API takes them. */
export const bodyOf = (wanted: Mutations) =>
  'mutations' in wanted ? { mutations: wanted.mutations.map(oneBodyOf) } : oneBodyOf(wanted);

/** What all changes of a plan do, in their order. */
const effectsOf = (validation: Validation): OneValidation['effects'] =>
  'results' in validation
    ? validation.results.flatMap(({ effects }) => effects)
    : validation.effects;

/** An invalid change is an answer too, with the status 400 or 409. */
const planQuery = (
  wanted: Mutations,
  headers: Readonly<Record<string, string>>,
  refusals: number,
) => ({
  queryKey: ['plan', wanted, headers, refusals],
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<Validation> => {
    const body = bodyOf(wanted);
    const call = api.POST('/api/validation/inventory', { body, headers: { ...headers }, signal });
    const found: unknown = await answer(call).catch((error: unknown) => {
      if (error instanceof Problem && isValidation(error.body)) return error.body;
      throw error;
    });
    if (isValidation(found)) return found;
    throw new Error('The plan has no validation.');
  },
  meta: NOT_POLLED,
  staleTime: 0,
  gcTime: 0,
});

const NO_ERRORS: readonly FieldError[] = [];

/** How often the change was refused: each time there is something that the plan before did not know. */
function useRefusals(problem: unknown): number {
  const [seen, setSeen] = useState({ problem, count: 0 });
  if (seen.problem !== problem) {
    const isRefused = problem !== undefined && problem !== null;
    setSeen({ problem, count: isRefused ? seen.count + 1 : seen.count });
  }
  return seen.count;
}

type Options = {
  headers?: Readonly<Record<string, string>>;
  /** Why the change was refused when it was sent: it is planned again then. */
  refused?: unknown;
};

/** Plans a change a moment after the last key. Nothing is planned while there is none. */
export function usePlan(
  mutation: Mutations | undefined,
  { headers = {}, refused }: Options = {},
): Plan {
  const refusals = useRefusals(refused);
  const typed = mutation ? JSON.stringify(mutation) : '';
  const [asked] = useDebouncedValue(typed, DEBOUNCE_MS);
  const wanted = asked === '' ? undefined : (JSON.parse(asked) as Mutations);
  const query = useQuery({
    ...planQuery(wanted ?? { resource: '', operation: 'create', record: {} }, headers, refusals),
    enabled: wanted !== undefined,
    placeholderData: keepPreviousData,
  });
  const data = typed === '' ? undefined : query.data;
  const isOutdated = typed !== asked || query.isPlaceholderData || query.isPending;
  const errors = useMemo(
    () => data?.validation.errors.map(({ pointer, message }) => ({ pointer, detail: message })),
    [data],
  );
  const effects = useMemo(
    () =>
      (data ? effectsOf(data) : []).map((effect, at): Effect => ({
        ...effect,
        id: effect.id ?? `new:${at}`,
        version: null,
      })),
    [data],
  );
  return {
    data,
    effects,
    errors: isOutdated ? NO_ERRORS : (errors ?? NO_ERRORS),
    isOutdated: typed !== '' && isOutdated,
    problem: typed === '' ? null : query.error,
    retry: () => void query.refetch(),
  };
}

/** Names for the ids in a plan: references that were just chosen have no name in the record. */
export function usePlanNames(effects: readonly Effect[], resources: readonly Resource[]): Names {
  const wanted = new Map<string, string>();
  for (const { resource, changes } of effects) {
    const fields = resources.find(({ name }) => name === resource)?.fields ?? [];
    for (const { field, before, after } of changes) {
      const described = fields.find(({ name }) => name === field);
      const reference = described && referenceOf(described);
      if (reference === undefined) continue;
      for (const id of [before, after].flat())
        if (typeof id === 'string' && id !== EVERY_TENANT && wanted.size < MAX_NAMES)
          wanted.set(id, reference);
    }
  }
  const ids = [...wanted];
  return useQueries({
    queries: ids.map(([id, reference]) => recordQuery(reference, id)),
    combine: (results): Names => {
      const labels: Record<string, Record<string, string>> = {};
      for (const [at, [id, reference]] of ids.entries()) {
        const label = results[at]?.data?.label;
        if (label !== undefined) (labels[reference] ??= {})[id] = label;
      }
      return { labels };
    },
  });
}
