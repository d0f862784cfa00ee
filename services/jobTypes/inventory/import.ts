import { Type, type Static } from 'typebox';
import { IMPORT_JOB_TYPE } from '../../../domain/inventory/imports.ts';
import { JobFailure, defineJobType, type JobType } from '../../../domain/jobs/jobType.ts';
import { HOUR_MS } from '../../../domain/shared/durations.ts';
import type { InventoryImports } from '../../inventory/imports.ts';
import { counted } from '../../../domain/shared/counted.ts';

const Payload = Type.Object({ importId: Type.String() }, { additionalProperties: false });
type Payload = Static<typeof Payload>;

export type ImportDeps = {
  imports: Pick<InventoryImports, 'progress' | 'writeBatch' | 'writeAll' | 'dryRun' | 'failure'>;
};

/** Imports the rows of a file. A repeated attempt continues after the last row with an outcome. */
export const inventoryImport = ({ imports }: ImportDeps): JobType<Payload> =>
  defineJobType<Payload>({
    name: IMPORT_JOB_TYPE,
    summary: 'Imports the rows of a file into the inventory',
    payload: Payload,
    createdOnlyBy: 'POST /api/inventory/import',
    lane: 'activity',
    timeoutMs: HOUR_MS,
    retry: { maxAttempts: 10 },
    run: async ({ importId }, { signal, log, progress }) => {
      const { rows, dryRun, mode, ...current } = await imports.progress(importId);
      let { done } = current;
      const reportProgress = (count: number) =>
        progress((100 * count) / rows, `${count} of ${counted(rows, 'row')}`);
      if (dryRun && done < rows)
        ({ done } = await imports.dryRun(importId, signal, reportProgress));
      else if (mode === 'all' && done < rows)
        ({ done } = await imports.writeAll(importId, signal, reportProgress));
      while (done < rows) {
        signal.throwIfAborted();
        const previous = done;
        ({ done } = await imports.writeBatch(importId, signal));
        if (done === previous)
          throw new JobFailure('import_rows_missing', 'Rows of the file are no longer stored', {
            retryable: false,
          });
        reportProgress(done);
      }
      const failure = await imports.failure(importId);
      if (failure !== null) throw new JobFailure('nothing_imported', failure, { retryable: false });
      log('info', `${counted(rows, 'row')} ${dryRun ? 'checked' : 'done'}`, {
        importId,
        dryRun,
        mode,
      });
      return { importId, rows, dryRun, mode };
    },
  });
