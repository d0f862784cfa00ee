import { api } from '../../../app/api.ts';
import { ExportMenu } from '../../../app/ExportMenu.tsx';
import type { Import } from './importQueries.ts';
import type { Outcome } from './importText.ts';

type Props = { record: Import; outcome: Outcome[] | undefined };

/** Saves the report of the rows that are shown as a file. */
export function ReportButton({ record: { id, dryRun }, outcome }: Props) {
  return (
    <ExportMenu
      label="Report"
      name={dryRun ? `dry-run-${id}` : `import-${id}`}
      read={(format, signal) =>
        api.GET('/api/inventory/imports/{id}/report', {
          params: { path: { id }, query: { format, ...(outcome && { outcome }) } },
          parseAs: 'stream',
          signal,
        })
      }
    />
  );
}
