import { Type, type Static } from 'typebox';
import type { Knex } from '../../db/core/knex.ts';
import { Import } from '../../db/models/Import.ts';
import { IMPORT } from '../../domain/inventory/imports.ts';
import { JobFailure, jobType, type JobType } from '../../domain/jobType.ts';
import type { InventoryImports } from '../inventory/imports.ts';

const Payload = Type.Object({ importId: Type.String() }, { additionalProperties: false });
type Payload = Static<typeof Payload>;

export type ImportDeps = { db: Knex; imports: Pick<InventoryImports, 'step' | 'rehearse'> };

/** Takes the rows of a file into the inventory. Begun again, it goes on behind the last row that has an outcome. */
export const inventoryImport = ({ db, imports }: ImportDeps): JobType<Payload> =>
  jobType<Payload>({
    name: IMPORT,
    summary: 'Takes the rows of a file into the inventory',
    payload: Payload,
    onlyThrough: 'POST /api/inventory/import',
    lane: 'activity',
    timeoutMs: 3_600_000,
    retry: { maxAttempts: 10 },
    run: async ({ importId }, { signal, log, progress }) => {
      let record = await Import.query(db).findById(importId).throwIfNotFound();
      const { rows, dryRun } = record;
      const tell = (done: number) => progress((100 * done) / rows, `${done} of ${rows} rows`);
      if (dryRun && record.done < rows) record = await imports.rehearse(importId, signal, tell);
      while (record.done < rows) {
        signal.throwIfAborted();
        const { done } = record;
        record = await imports.step(importId);
        if (record.done === done)
          throw new JobFailure('rows_missing', 'Rows of the file are not kept any more', {
            retryable: false,
          });
        tell(record.done);
      }
      log('info', `${rows} rows are done`, { importId, dryRun });
      return { importId, rows, dryRun };
    },
  });
