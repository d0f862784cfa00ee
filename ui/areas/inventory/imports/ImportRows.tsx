import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { answer, api } from '../../../app/api.ts';
import { Empty } from '../../../parts/Empty.tsx';
import { ListSection } from '../../../parts/list/ListSection.tsx';
import { splitValues, withoutAppearance, type ListSearch } from '../../../parts/list/search.ts';
import { useList, type Facet } from '../../../parts/list/useList.ts';
import { rowFilters } from './importFilters.ts';
import { importKey, isRunning, type Import, type ImportRow } from './importQueries.ts';
import { OUTCOMES, type Outcome } from './importText.ts';
import { ReportButton } from './ReportButton.tsx';
import { RowDialog } from './RowDialog.tsx';
import { rowColumns } from './rowColumns.tsx';

type Props = { record: Import; search: ListSearch; onSearch: (search: ListSearch) => void };

const keyOf = ({ line }: ImportRow): string => String(line);

const isOutcome = (text: string): text is Outcome => OUTCOMES.some((each) => each === text);

/** The outcomes that the address asks for; undefined for all rows. */
export function outcomesOf(search: ListSearch): Outcome[] | undefined {
  const outcomes = splitValues(search.outcome).filter(isOutcome);
  return outcomes.length > 0 ? outcomes : undefined;
}

/** Rows with the outcomes that the address asks for. The import has counted them. */
function useRows(record: Import, search: ListSearch) {
  const { id, counts, done, rows } = record;
  const client = useQueryClient();
  const queryKey = [...importKey(id), 'rows'];
  const outcome = outcomesOf(search);
  const list = useList<ImportRow>({
    queryKey: [...queryKey, withoutAppearance(search)],
    counted: false,
    read: ({ limit, cursor }, signal) => {
      const query = { limit, ...(cursor !== undefined && { cursor }), ...(outcome && { outcome }) };
      const params = { path: { id }, query };
      return answer(api.GET('/api/inventory/imports/{id}/rows', { params, signal }));
    },
  });
  // More rows have an outcome.
  useEffect(
    () => void client.invalidateQueries({ queryKey: [...importKey(id), 'rows'] }),
    [client, id, done],
  );
  const values = OUTCOMES.map((value) => ({ value, count: counts[value] ?? 0 }));
  const facet: Facet = { values, exact: true, others: 0 };
  const value = outcome ? outcome.reduce((sum, each) => sum + (counts[each] ?? 0), 0) : rows;
  return { ...list, facets: { outcome: facet }, count: { value, exact: true } };
}

/** The rows of the file with their outcomes. */
export function ImportRows({ record, search, onSearch }: Props) {
  const list = useRows(record, search);
  const [open, setOpen] = useState<ImportRow>();
  const { dryRun, resource } = record;
  const columns = useMemo(() => rowColumns(dryRun, resource === null), [dryRun, resource]);
  const filters = useMemo(() => rowFilters(dryRun), [dryRun]);
  return (
    <>
      <ListSection
        title="Rows"
        noun={['row', 'rows']}
        actions={<ReportButton record={record} outcome={outcomesOf(search)} />}
        list={list}
        filters={filters}
        search={search}
        onSearch={onSearch}
        columns={columns}
        rowKey={keyOf}
        onOpen={useCallback((row: ImportRow) => setOpen(row), [])}
        empty={
          <Empty
            kind="nothing"
            title="No rows"
            detail={
              isRunning(record)
                ? 'Loading the rows.'
                : 'The rows are purged: their retention has passed.'
            }
          />
        }
      />
      <RowDialog row={open} dryRun={dryRun} onClose={() => setOpen(undefined)} />
    </>
  );
}
