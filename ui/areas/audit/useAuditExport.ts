import { useFileExport } from '../../app/useFileExport.ts';
import { serverNow } from '../../parts/clock.ts';
import type { ListSearch } from '../../parts/list/search.ts';
import { exportEntries } from './auditQueries.ts';

/** Saves the entries of a search as a file of NDJSON. */
export function useAuditExport(search: ListSearch) {
  const { bytes, problem, download } = useFileExport();
  return {
    bytes,
    problem,
    download: () =>
      download('audit.ndjson', (signal) => exportEntries(search, new Date(serverNow()), signal)),
  };
}
