import { useQueryClient } from '@tanstack/react-query';
import { answer, api, Problem } from '../../../app/api.ts';
import { useCreation } from '../../../app/useCreation.ts';
import type { Where } from '../../../parts/permissions.tsx';
import type { Resource } from '../inventoryQueries.ts';
import { whyNotApply } from '../planState.ts';
import { bodyOf, usePlan, type Mutation, type Mutations } from '../usePlan.ts';

/** What a dialog about several records needs. */
export type BulkProps = {
  resource: Resource;
  all: readonly Resource[];
  /** The records that were selected: never all that a filter matches. */
  ids: readonly string[];
  /** Those that were listed when the dialog was opened, by id: others may have changed a record since. */
  versions: ReadonlyMap<string, number>;
  /** How many of them others have changed since. */
  changed: number;
  /** Goes on with all of them as they are listed now. */
  takePresent: () => void;
  /** What these records have in common. */
  where: Where;
  onDone: () => void;
};

/** The API takes no more in one request. */
const MAX_RECORDS = 1_000;

/** The change of a record, if it is still the version that was seen. */
const ofVersion = (change: Mutation, versions: BulkProps['versions']): Mutation => {
  const version = versions.get(String(change.record.id));
  return version === undefined ? change : { ...change, record: { ...change.record, version } };
};

/** Plans several changes, and makes all of them or none. */
export function useBulk(
  changes: readonly Mutation[],
  { versions, onDone }: Pick<BulkProps, 'versions' | 'onDone'>,
) {
  const client = useQueryClient();
  const isTooMany = changes.length > MAX_RECORDS;
  const wanted: Mutations = { mutations: changes.map((each) => ofVersion(each, versions)) };
  const { create, isBusy, error } = useCreation({
    send: async (mutations: Mutations, header) => {
      const body = { mode: 'all' as const, ...(bodyOf(mutations) as { mutations: [] }) };
      const call = api.POST('/api/inventory/bulk', { params: { header }, body });
      const { counts, results } = await answer(call);
      if ((counts.invalid ?? 0) + (counts.conflict ?? 0) === 0) return counts;
      const first = results.flatMap((each) => [...each.errors, ...each.conflicts])[0];
      throw new Problem({
        ...{ status: 409, code: first?.code ?? 'conflict', title: 'Nothing was changed' },
        detail: first?.message ?? 'Others have changed a record at the same time.',
        conflicts: results.flatMap(({ conflicts }) => conflicts),
      });
    },
    onMade: () => {
      void client.invalidateQueries({ queryKey: ['inventory'] });
      onDone();
    },
  });
  const isPlanned = changes.length > 0 && !isTooMany;
  const plan = usePlan(isPlanned ? wanted : undefined, { refused: error });
  return {
    plan,
    reason: isTooMany
      ? `${MAX_RECORDS} records can be changed together: choose fewer.`
      : whyNotApply(plan, false),
    apply: () => create(wanted),
    isBusy,
    error,
  };
}
