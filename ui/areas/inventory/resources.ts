import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { answer, api } from '../../app/api.ts';
import { PLATFORM, TENANT_HEADER } from '../../app/session/tenant.ts';
import { nounOf } from '../../../domain/shared/nouns.ts';
import { resourcesQuery } from '../../parts/records/resources.ts';
import type { Resource, ResourceField } from './inventoryQueries.ts';

/** The resources as the console groups them. One that is in no group is shown in the last. */
const GROUPS = [
  { title: 'Addresses', names: ['prefixes', 'ip-addresses', 'ip-ranges', 'vrfs'] },
  { title: 'VLANs', names: ['vlans', 'vlan-groups'] },
  { title: 'Equipment', names: ['devices', 'interfaces', 'cables', 'racks'] },
  { title: 'Facilities', names: ['sites', 'locations', 'regions', 'tenants'] },
  { title: 'Catalogue', names: ['device-types', 'device-roles', 'platforms', 'manufacturers'] },
  { title: 'Labels and fields', names: ['tags', 'custom-fields'] },
] as const;

export type ResourceGroup = { title: string; resources: readonly Resource[] };

/** Resources by group, in the order of the console; without groups that have none. */
export function groupsOf(resources: readonly Resource[]): ResourceGroup[] {
  const byName = new Map(resources.map((resource) => [resource.name as string, resource]));
  const groups = GROUPS.map(({ title, names }) => ({
    title: title,
    resources: names.flatMap((name) => byName.get(name) ?? []),
  }));
  const known = new Set<string>(GROUPS.flatMap(({ names }) => names));
  const others = resources.filter(({ name }) => !known.has(name));
  return [...groups, { title: 'Others', resources: others }].filter(
    (group) => group.resources.length > 0,
  );
}

/** The description of one resource, once it is read. `isUnknown` if there is no such resource. */
export function useResource(name: string) {
  const { data, error, refetch } = useQuery(resourcesQuery);
  const resource = data?.items.find((each) => each.name === name);
  return {
    resource,
    all: data?.items,
    isUnknown: data !== undefined && resource === undefined,
    error,
    retry: () => void refetch(),
  };
}

const resourcesIn = (tenantId: string) => ({
  queryKey: [...resourcesQuery.queryKey, tenantId],
  queryFn: ({ signal }: { signal: AbortSignal }) =>
    answer(api.GET('/api/inventory/resources', { headers: { [TENANT_HEADER]: tenantId }, signal })),
  staleTime: resourcesQuery.staleTime,
});

/** The platform's definitions hold for all tenants, and alone for what belongs to the platform. */
const onlyOfPlatform = (resource: Resource): Resource => ({
  ...resource,
  customFields: resource.customFields.filter(({ tenantId }) => tenantId === PLATFORM.tenantId),
});

/**
 * The description of a resource for the records of a tenant, which has custom fields of its own; undefined until it
 * is read. Without a tenant, and where it cannot be read, that of the session.
 */
export function useResourceOf(
  resource: Resource,
  tenantId: string | undefined,
): Resource | undefined {
  const isOfPlatform = tenantId === PLATFORM.tenantId;
  const { data, error } = useQuery({
    ...resourcesIn(tenantId ?? ''),
    enabled: tenantId !== undefined && !isOfPlatform,
    // A form that is taken to another tenant stays.
    placeholderData: keepPreviousData,
    retry: false,
  });
  const ofPlatform = useMemo(() => onlyOfPlatform(resource), [resource]);
  if (isOfPlatform) return ofPlatform;
  if (tenantId === undefined || error) return resource;
  return data?.items.find(({ name }) => name === resource.name);
}

/** The title of a list of records: `IP addresses`. */
export function titleOf({ name }: Pick<Resource, 'name'>): string {
  const noun = nounOf(name, 2);
  return noun.charAt(0).toUpperCase() + noun.slice(1);
}

/** Which records refer to a record of `resource`: the resource that they are of, and the field. */
export const referrersOf = (
  resource: string,
  all: readonly Resource[],
): { resource: Resource; field: ResourceField }[] =>
  all.flatMap((other) =>
    other.fields
      .filter((field) => field.reference === resource && other.filters.includes(field.name))
      .map((field) => ({ resource: other, field })),
  );

/** The kind of the records that a field refers to. Lists of tags and tenants have ids, too. */
export const referenceOf = ({ name, reference }: ResourceField): string | undefined =>
  reference ?? (name === 'tags' ? 'tags' : name === 'sharedWith' ? 'tenants' : undefined);

/** A record's own name, or its id. */
export function labelIn(resource: Resource, record: Readonly<Record<string, unknown>>): string {
  const label = record[resource.label];
  return typeof label === 'string' && label !== '' ? label : String(record.id);
}
