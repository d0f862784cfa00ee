import { api } from '../../app/api.ts';
import { ExportMenu } from '../../app/ExportMenu.tsx';
import { serverNow } from '../../parts/clock.ts';
import { splitValues, type Filter, type ListSearch } from '../../parts/list/search.ts';
import type { Resource } from './inventoryQueries.ts';
import { listQuery } from './resourceFilters.ts';

type Props = { resource: Resource; filters: readonly Filter[]; search: ListSearch };

const exportPath = (resource: string) =>
  `/api/inventory/${resource}/export` as '/api/inventory/sites/export';

/**
 * The fields of the columns that the address has; undefined for all fields, if it has none. What a list
 * computes beside its records, such as usage, is no field.
 */
function fieldsOf({ fields }: Resource, search: ListSearch): string[] | undefined {
  const known = new Set([...fields.map(({ name }) => name), 'createdAt', 'updatedAt', 'version']);
  const chosen = splitValues(search.columns).map((id) => id.split('.')[0] ?? id);
  const names = [...new Set(chosen)].filter((name) => known.has(name));
  return names.length > 0 ? names : undefined;
}

/** Saves the records of the list as a file, with its filters, its order, and the columns that are chosen. */
export function RecordExport({ resource, filters, search }: Props) {
  const fields = fieldsOf(resource, search);
  return (
    <ExportMenu
      label="Export"
      name={resource.name}
      note={
        fields === undefined
          ? 'All fields of the records of this list'
          : 'The columns that you have chosen'
      }
      read={(format, signal) => {
        const { limit, ...query } = listQuery(filters, search, new Date(serverNow()), {
          limit: 1,
        });
        // Which fields there are depends on the resource.
        const asked: object = { ...query, ...(fields && { fields }), format };
        return api.GET(exportPath(resource.name), {
          params: { query: asked },
          parseAs: 'stream',
          signal,
        });
      }}
    />
  );
}
