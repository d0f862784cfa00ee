import { useQuery } from '@tanstack/react-query';
import { answer, api } from '../../app/api.ts';

type Reading = { signal: AbortSignal };

/** All resources: what lists, columns, filters and forms are made of. */
export const resourcesQuery = {
  queryKey: ['inventory', 'resources'],
  queryFn: ({ signal }: Reading) => answer(api.GET('/api/inventory/resources', { signal })),
  staleTime: 60_000,
};

const NONE: ReadonlySet<string> = new Set();

/** The fields of a resource whose values are choices; none until they are known. */
export function useChoiceFields(resource: string | undefined): ReadonlySet<string> {
  const { data } = useQuery({ ...resourcesQuery, enabled: resource !== undefined, retry: false });
  const fields = data?.items.find(({ name }) => name === resource)?.fields;
  return fields ? new Set(fields.filter(({ choices }) => choices).map(({ name }) => name)) : NONE;
}
