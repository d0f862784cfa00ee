import type { Readable } from 'node:stream';
import type { Commit, WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import {
  addRows,
  countOutcomes,
  listRows,
  type FileRow,
  type ReportedRow,
} from '../../db/inventory/importRows.ts';
import { readableImports, readJobStatuses } from '../../db/inventory/imports.ts';
import { Import } from '../../db/models/Import.ts';
import { IMPORT_JOB_TYPE, maxRowsOf, type ImportMode } from '../../domain/inventory/imports.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { JobStatus } from '../../domain/jobs/jobs.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import type { ListAnswer, ListRequest } from '../../domain/shared/lists.ts';
import type { Ids } from '../../platform/ids.ts';
import type { Slots } from '../../platform/slots.ts';
import { createPause } from '../../platform/turns.ts';
import type { Access } from '../access/access.ts';
import { authorityOf, type UserRights } from '../access/rights.ts';
import type { JobFactory } from '../jobs/createJob.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { readCsv, readNdjson } from './importFile.ts';
import { createImportRun } from './importRun.ts';
import type { InventoryQuestions } from './questions.ts';
import type { InventoryWrites } from './writes.ts';

export type InventoryImports = ReturnType<typeof createInventoryImports>;

export type FileFormat = 'csv' | 'ndjson';

/** `resource` is required for CSV; without it, each line of NDJSON is a mutation. */
export type ImportRequest = {
  format: FileFormat;
  resource?: ResourceName;
  dryRun: boolean;
  mode: ImportMode;
};

/** An import with the number of its rows for each outcome. */
export type ImportState = {
  id: string;
  /** Null for a file of mutations of several resources. */
  resource: string | null;
  dryRun: boolean;
  mode: ImportMode;
  /** The status of its job. */
  status: JobStatus;
  rows: number;
  /** The number of rows that have an outcome. */
  done: number;
  counts: Readonly<Record<string, number>>;
  jobId: string;
  createdBy: string;
  createdAt: Date;
};

/** The number of received rows that one statement stores. */
const RECEIVE_BATCH_SIZE = 1_000;
/** How long a file waits for other tenants while it is received. A request may last 60 s. */
const MAX_RECEIVE_REST_MS = 15_000;

type Deps = {
  db: Knex;
  commit: Commit;
  writeUnaudited: WriteUnaudited;
  access: Access;
  rights: UserRights;
  ids: Ids;
  writes: InventoryWrites;
  questions: InventoryQuestions;
  jobFactory: JobFactory;
  jobTypes: JobTypes;
  slots: { uploads: Slots; importWrites: Slots; wholeImports: Slots };
};

/** Imports of files. A job writes their rows, see `importRun.ts`. */
export function createInventoryImports(deps: Deps) {
  const { db, commit, writeUnaudited, access, ids, jobFactory, jobTypes, slots } = deps;

  /** Imports at tenants that the caller reads, and the caller's own. */
  const visible = (caller: Caller) =>
    readableImports(db, access.scope(caller, 'inventory:read'), caller);

  async function withCounts(records: readonly Import[]): Promise<ImportState[]> {
    const [counts, statuses] = await Promise.all([
      countOutcomes(
        db,
        records.map(({ id }) => id),
      ),
      readJobStatuses(
        db,
        records.map(({ jobId }) => jobId),
      ),
    ]);
    return records.map((record) =>
      stateOf(record, statuses.get(record.jobId) ?? 'queued', counts.get(record.id) ?? {}),
    );
  }

  async function find(caller: Caller, id: string): Promise<Import> {
    const record = await visible(caller).findById(id);
    if (!record) throw notFound('import', id);
    return record;
  }

  /** Stores the rows of a file while it is received. Returns their number. */
  async function storeRows(
    importId: string,
    rows: AsyncIterable<FileRow>,
    maxRows: number,
  ): Promise<number> {
    let count = 0;
    let batch: FileRow[] = [];
    const flush = async () => {
      if (batch.length > 0) await writeUnaudited((trx) => addRows(trx, importId, batch));
      batch = [];
    };
    const pause = createPause({ isPatient: true, maxRestMs: MAX_RECEIVE_REST_MS });
    for await (const row of rows) {
      await pause();
      if (++count > maxRows)
        throw new AppError('limit_reached', `A file may have ${maxRows} rows.`);
      batch.push(row);
      if (batch.length === RECEIVE_BATCH_SIZE) await flush();
    }
    await flush();
    return count;
  }

  return {
    ...createImportRun(deps),

    /**
     * Receives a file and creates a job that imports it. Errors: `invalid_request` with the line
     * that cannot be read, `body_too_large`, `limit_reached`, `too_many_requests`; the reason of
     * `signal`.
     */
    async receive(
      caller: Caller,
      { format, resource, dryRun, mode }: ImportRequest,
      source: Readable,
      signal: AbortSignal,
    ): Promise<{ state: ImportState; job: JobData }> {
      const id = ids.next('imp');
      const maxRows = maxRowsOf({ mode, dryRun });
      const rows = await slots.uploads.run(caller, signal, () =>
        storeRows(id, readRows(source, format, resource), maxRows),
      );
      if (rows === 0) throw invalidField('body', '', 'empty', 'has no rows');
      return commit(caller, (work) => {
        work.result(id);
        const after = { resource: resource ?? null, rows, dryRun, mode };
        work.audit('inventory.import', { type: 'import', id }, { after });
        const job = jobFactory.create(
          work,
          jobTypes.get(IMPORT_JOB_TYPE),
          { type: IMPORT_JOB_TYPE, payload: { importId: id } },
          caller,
        );
        const record = work.insert(Import, {
          id,
          tenantId: caller.tenantId,
          jobId: job.id,
          resource: resource ?? null,
          dryRun,
          mode,
          rows,
          done: 0,
          authority: authorityOf(caller),
          createdBy: caller.actorId,
          createdAt: work.now,
        });
        return { state: stateOf(record, job.status, {}), job };
      });
    },

    /** Reads an import. Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<ImportState> {
      const [state] = await withCounts([await find(caller, id)]);
      return assertDefined(state, 'import state');
    },

    /** Lists imports. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<ImportState>> {
      const answer = await readList({ db, visible: () => visible(caller) }, request);
      return { ...answer, items: await withCounts(answer.items) };
    },

    /** Lists rows with their outcomes in the order of the file. Error: `not_found`. */
    async rows(
      caller: Caller,
      id: string,
      page: { outcome: string | undefined; after: number; limit: number },
    ): Promise<ReportedRow[]> {
      await find(caller, id);
      return listRows(db, id, page);
    },
  };
}

/** Reads the rows of a file. Errors: `invalid_request` with the line, `body_too_large`. */
function readRows(
  source: Readable,
  format: FileFormat,
  resource: ResourceName | undefined,
): AsyncIterable<FileRow> {
  const definition = resource && RESOURCES[resource];
  if (format === 'ndjson') return readNdjson(source, definition);
  if (!definition) throw invalidField('query', '/resource', 'required', 'is required for CSV');
  return readCsv(source, definition);
}

const stateOf = (
  { id, resource, dryRun, mode, rows, done, jobId, createdBy, createdAt }: Import,
  status: JobStatus,
  counts: Readonly<Record<string, number>>,
): ImportState => ({
  id,
  resource,
  dryRun,
  mode,
  status,
  rows,
  done,
  counts,
  jobId,
  createdBy,
  createdAt,
});
