import { useQueries } from '@tanstack/react-query';
import { useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { PLATFORM } from '../../app/session/tenant.ts';
import { useSession } from '../../app/session/useSession.ts';
import { splitValues, type ListSearch } from '../../parts/list/search.ts';
import { resourceKey, type Resource } from './inventoryQueries.ts';
import { useResourceOf } from './resources.ts';

type CustomField = Resource['customFields'][number];

/** What filters and columns of custom fields have before the name. */
const PREFIX = 'customFields.';

/** Addresses have fewer: each name is a request. */
const MOST_NAMES = 20;

/** The names of the custom fields by which an address filters, or that it has as columns. */
function customNames(search: ListSearch): string[] {
  const ids = [...Object.keys(search), ...splitValues(search.columns)];
  const names = ids.filter((id) => id.startsWith(PREFIX)).map((id) => id.slice(PREFIX.length));
  return [...new Set(names)].slice(0, MOST_NAMES);
}

/**
 * The tenant whose custom fields a list of records offers: the only one that it is filtered by, or that of the
 * session. Catalogues belong to the platform.
 */
function tenantOfList(
  { name, fields }: Resource,
  search: ListSearch,
  present: string,
): { tenantId: string; isOnly: boolean } {
  const hasTenant = fields.some((field) => field.name === 'tenantId');
  if (!hasTenant && name !== 'tenants') return { ...PLATFORM, isOnly: true };
  const [only, ...others] = hasTenant ? splitValues(search.tenantId) : [];
  return only !== undefined && others.length === 0
    ? { tenantId: only, isOnly: true }
    : { tenantId: present, isOnly: false };
}

/** One field for all that tenants have defined by a name; of different types, it is found by what one types. */
function mergeDefinitions(all: readonly CustomField[]): CustomField | undefined {
  const [first, ...others] = all;
  if (first === undefined || others.length === 0) return first;
  const isSame = others.every(({ type }) => type === first.type);
  const choices = [...new Set(all.flatMap((each) => each.choices))];
  return { ...first, type: isSame ? first.type : 'text', choices };
}

/** Most definitions of one name that are read; the service knows all of them. */
const MOST_DEFINITIONS = 200;

/** What tenants have defined by a name, as far as the user may read it. */
const definitionsQuery = (resource: Resource['name'], name: string) => ({
  queryKey: [...resourceKey('custom-fields'), 'named', resource, name],
  queryFn: async ({ signal }: { signal: AbortSignal }): Promise<CustomField[]> => {
    const query = { resource: [resource], name: [name], limit: MOST_DEFINITIONS };
    const call = api.GET('/api/inventory/custom-fields', { params: { query }, signal });
    const { items } = await answer(call);
    return items.map((each) => ({ ...each, tenantId: each.tenantId ?? PLATFORM.tenantId }));
  },
  staleTime: 60_000,
  retry: 1,
});

type Definitions = { data?: CustomField[] | undefined; isPending: boolean };

/** Undefined where the definitions of a name are not read yet; none where they cannot be read. */
const definitionsIn = (results: readonly Definitions[]) =>
  results.map(({ data = [], isPending }) => (isPending ? undefined : data));

/** A resource with the definitions of what an address names and it does not have; undefined until they are read. */
function withNamed(
  own: Resource | undefined,
  names: readonly string[],
  found: readonly (readonly CustomField[] | undefined)[],
): Resource | undefined {
  if (!own) return undefined;
  const known = new Set(own.customFields.map(({ name }) => name));
  const others = found.filter((_, at) => !known.has(names[at] ?? ''));
  if (others.includes(undefined)) return undefined;
  const merged = others.flatMap((each) => mergeDefinitions(each ?? []) ?? []);
  return merged.length === 0 ? own : { ...own, customFields: [...own.customFields, ...merged] };
}

/**
 * A resource with the custom fields that its list offers: those of one tenant, and those that the address names,
 * whatever tenant has them. With a note if the list has records of other tenants; undefined until all is read.
 */
export function useListFields(resource: Resource, search: ListSearch) {
  const { tenant: present, tenants } = useSession();
  const { tenantId, isOnly } = tenantOfList(resource, search, present);
  const own = useResourceOf(resource, tenantId === present ? undefined : tenantId);
  const names = useMemo(() => customNames(search), [search]);
  const found = useQueries({
    queries: names.map((name) => definitionsQuery(resource.name, name)),
    combine: definitionsIn,
  });
  const offered = useMemo(() => withNamed(own, names, found), [own, names, found]);
  if (!offered) return undefined;
  const isOfOneTenant = isOnly || tenants?.length === 1;
  const isOfTenants = offered.customFields.some((each) => each.tenantId !== PLATFORM.tenantId);
  return {
    resource: offered,
    note: isOfOneTenant || !isOfTenants ? undefined : noteOf(resource, tenantId),
  };
}

const noteOf = ({ plural, fields }: Resource, tenantId: string): string => {
  const canFilter = fields.some(({ name }) => name === 'tenantId');
  const others = canFilter ? ' Filter by one tenant to have the custom fields of that tenant.' : '';
  return `The list has ${plural} of all tenants that you see. Its custom fields are those of the tenant ${tenantId}, which you work in, and of the platform.${others}`;
};
