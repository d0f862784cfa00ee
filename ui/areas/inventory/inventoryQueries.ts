import { answer, api, type Schemas } from '../../app/api.ts';
import type { ListAnswer } from '../../parts/list/useList.ts';
import type { Names } from '../../parts/names.ts';

export type Resource = Schemas['Resource'];
export type ResourceField = Schemas['ResourceField'];
export type RecordChange = Schemas['RecordChange'];

/** A record of any resource. Its further fields are those that the description of the resource has. */
export type InventoryRecord = {
  readonly id: string;
  readonly version: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly included?: Names | undefined;
  readonly [field: string]: unknown;
};

type Reading = { signal: AbortSignal };

const NAMES = 'labels,people';

/** The key of everything that is read of a resource. */
export const resourceKey = (resource: string) => ['inventory', resource] as const;

/** Events after which prefixes may be used otherwise. */
export const USAGE_EVENTS = [
  'inventory.prefix.*',
  'inventory.ip-address.*',
  'inventory.ip-range.*',
];

/** Pages read what depends on many records again at most once in this time. */
export const DERIVED_MS = 5_000;

/** The key of everything that is read of a record. */
export const recordKey = (resource: string, id: string) =>
  [...resourceKey(resource), 'of', id] as const;

/** The paths of all resources have the same form; the types know each by itself. */
export const listPath = (resource: string) =>
  `/api/inventory/${resource}` as '/api/inventory/prefixes';
export const onePath = (resource: string) =>
  `/api/inventory/${resource as 'prefixes'}/{id}` as const;
const changesPath = (resource: string) =>
  `/api/inventory/${resource as 'prefixes'}/{id}/changes` as const;

/** Records of a list, with names instead of ids; prefixes with their usage. */
export async function readRecords(
  resource: string,
  query: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<ListAnswer<InventoryRecord>> {
  const include = resource === 'prefixes' ? `${NAMES},usage` : NAMES;
  const page = await answer(
    api.GET(listPath(resource), { params: { query: { ...query, include } }, signal }),
  );
  const { items, ...rest } = page;
  // Usage comes beside the records, by their ids.
  const usages = page.included?.usage ?? {};
  return {
    ...rest,
    items: items.map((record): InventoryRecord => ({ ...record, usage: usages[record.id] })),
  };
}

/** A record as it is, or as it was at `at`. */
export const inventoryRecordQuery = (resource: string, id: string, at?: string) => ({
  queryKey: [...recordKey(resource, id), 'record', at ?? 'now'],
  queryFn: async ({ signal }: Reading) => {
    const query = { include: NAMES, ...(at !== undefined && { at }) };
    const record = await answer(
      api.GET(onePath(resource), { params: { path: { id }, query }, signal }),
    );
    return record as InventoryRecord;
  },
});

/** A page of the changes of a record, the newest first. */
export const readChanges = (
  resource: string,
  id: string,
  part: { limit: number; cursor?: string | undefined },
  signal: AbortSignal,
) =>
  answer(
    api.GET(changesPath(resource), {
      params: { path: { id }, query: { ...part, include: NAMES } },
      signal,
    }),
  );

/** How many records a list with these filters has; null where the service does not count them. */
export const recordCountQuery = (
  resource: string,
  filter: Readonly<Record<string, readonly string[]>> = {},
) => ({
  queryKey: [...resourceKey(resource), 'count', filter],
  queryFn: async ({ signal }: Reading) => {
    const query = { ...filter, limit: 1, count: true };
    const page = await answer(api.GET(listPath(resource), { params: { query }, signal }));
    return page.count ?? null;
  },
});
