import type { Readable } from 'node:stream';
import type { Commit, WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { readList } from '../../db/core/lists.ts';
import {
  addRows,
  copyRows,
  countOutcomes,
  listRows,
  type FileRow,
  type RowsRequest,
} from '../../db/inventory/importRows.ts';
import {
  findApplied,
  lockImport,
  readableImports,
  readImportJobs,
  type ImportJob,
} from '../../db/inventory/imports.ts';
import { Import } from '../../db/models/Import.ts';
import { IMPORT_JOB_TYPE } from '../../domain/inventory/imports.ts';
import { maxRowsOf, type ImportMode } from '../../domain/inventory/importLimits.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import {
  isFinal,
  type JobError,
  type JobProgress,
  type JobStatus,
} from '../../domain/jobs/jobs.ts';
import type { JobData } from '../../domain/jobs/records.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import { hasWritten, storedWriterKeyOf, type Caller } from '../../domain/shared/caller.ts';
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
import { reportedRow, reportText, type ImportRowReport } from './importReport.ts';
import { createImportRun } from './importRun.ts';
import type { InventoryQuestions } from './questions.ts';
import type { InventoryWrites } from './writes.ts';
import { counted } from '../../domain/shared/counted.ts';

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
  /** The dry run whose rows it writes. */
  dryRunId: string | null;
  /** The state of its job. */
  status: JobStatus;
  progress: JobProgress | null;
  error: JobError | null;
  finishedAt: Date | null;
  /** The caller may see what the file has, and write the rows of a dry run. */
  contentVisible: boolean;
  tenantId: string;
  rows: number;
  /** The number of rows that have an outcome. */
  done: number;
  counts: Readonly<Record<string, number>>;
  jobId: string;
  createdBy: string;
  createdAt: Date;
};

/** The number of rows of a report that are read together. */
const REPORT_PAGE_SIZE = 500;
/** How long a file waits for other tenants while it is received, of `MAX_IMPORT_SECONDS`. */
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

  /** Imports at tenants that the caller reads, and the caller's own; with an API token, those that it has sent. */
  const visible = (caller: Caller) =>
    readableImports(db, access.scope(caller, 'inventory:read'), caller);

  /**
   * Whether a caller may see what the rows of an import have. Others who read the import see the
   * outcomes only: the rows may be about records of other tenants.
   */
  const seesContent = (caller: Caller, { authority, tenantId }: Import): boolean =>
    (hasWritten(caller, storedWriterKeyOf(authority)) && tenantId === caller.tenantId) ||
    access.scope(caller, 'inventory:read').kind === 'everywhere';

  async function withCounts(caller: Caller, records: readonly Import[]): Promise<ImportState[]> {
    const [counts, jobs] = await Promise.all([
      countOutcomes(db, records),
      readImportJobs(
        db,
        records.map(({ jobId }) => jobId),
      ),
    ]);
    return records.map((record) =>
      stateOf(
        record,
        jobs.get(record.jobId),
        counts.get(record.id) ?? {},
        seesContent(caller, record),
      ),
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
    const pause = createPause({ isPatient: true, maxRestMs: MAX_RECEIVE_REST_MS });
    async function* received(): AsyncGenerator<FileRow> {
      for await (const row of rows) {
        await pause();
        if (++count > maxRows)
          throw new AppError('limit_reached', `A file may have ${counted(maxRows, 'row')}.`);
        yield row;
      }
    }
    await writeUnaudited((db) => addRows(db, importId, received()));
    return count;
  }

  async function* textOfReport(
    id: string,
    { outcomes, format }: Pick<RowsRequest, 'outcomes'> & { format: FileFormat },
    isVisible: boolean,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const pause = createPause({ signal, isPatient: true });
    for (let after: number | null = 0; after !== null;) {
      signal.throwIfAborted();
      const isFirst = after === 0;
      const page = await listRows(db, id, { outcomes, after, limit: REPORT_PAGE_SIZE });
      await pause();
      const rows = page.rows.map((row) => reportedRow(row, isVisible));
      yield reportText(format, rows, isFirst);
      after = page.next;
    }
  }

  /** Creates the record of an import whose rows are stored, and its job. Error: `conflict`. */
  const start = (
    caller: Caller,
    id: string,
    content: Pick<Import, 'resource' | 'rows' | 'dryRun' | 'mode' | 'dryRunId'>,
  ): Promise<{ state: ImportState; job: JobData }> =>
    commit(caller, async (work) => {
      work.result(id);
      const { dryRunId, ...after } = content;
      if (dryRunId !== null) {
        const trx = await work.trx();
        await lockImport(trx, dryRunId);
        await checkNotApplied(trx, dryRunId);
      }
      work.audit(
        'inventory.import',
        { type: 'import', id },
        { after: dryRunId === null ? after : content },
      );
      const type = jobTypes.get(IMPORT_JOB_TYPE);
      const job = jobFactory.create(work, { type, payload: { importId: id }, caller });
      const record = work.insert(Import, {
        ...content,
        id,
        tenantId: caller.tenantId,
        jobId: job.id,
        done: 0,
        counts: {},
        authority: authorityOf(caller),
        createdBy: caller.actorId,
        createdAt: work.now,
      });
      return { state: stateOf(record, job, {}, true), job };
    });

  /** Error: `conflict`, if the rows of a dry run are imported already: new records would be doubled. */
  async function checkNotApplied(trx: Knex, dryRunId: string): Promise<void> {
    const appliedId = await findApplied(trx, dryRunId);
    if (appliedId !== undefined)
      throw new AppError(
        'conflict',
        `The rows were imported by ${appliedId}. Send the file again to import it another time.`,
      );
  }

  /** Error: `conflict`, if the rows of an import cannot be written as those of a dry run. */
  async function checkApplicable(caller: Caller, record: Import): Promise<void> {
    const { id, dryRun, tenantId, jobId } = record;
    if (!dryRun) throw new AppError('conflict', `The import ${id} is not a dry run.`);
    // The rows would be about other records there.
    if (tenantId !== caller.tenantId)
      throw new AppError('conflict', `The dry run was made in the tenant ${tenantId}.`);
    const status = (await readImportJobs(db, [jobId])).get(jobId)?.status ?? 'queued';
    if (!isFinal(status) || record.done < record.rows)
      throw new AppError('conflict', 'The dry run has not checked all rows.');
    await checkNotApplied(db, id);
  }

  return {
    ...createImportRun(deps),

    /**
     * Receives a file and creates a job that imports it. Errors: `permission_denied` without
     * `inventory:write` in the tenant of the request, before anything is read; `invalid_request` with the
     * line that cannot be read, `body_too_large`, `limit_reached`, `too_many_requests`; the reason of `signal`.
     */
    async receive(
      caller: Caller,
      { format, resource, dryRun, mode }: ImportRequest,
      source: Readable,
      signal: AbortSignal,
    ): Promise<{ state: ImportState; job: JobData }> {
      await access.requireWithinTenant(caller, 'inventory:write');
      const id = ids.next('imp');
      const maxRows = maxRowsOf({ mode, dryRun });
      const rows = await slots.uploads.receive(caller, signal, source, () =>
        storeRows(id, readRows(source, format, resource), maxRows),
      );
      if (rows === 0) throw invalidField('body', '', 'empty', 'has no rows');
      return start(caller, id, { resource: resource ?? null, rows, dryRun, mode, dryRunId: null });
    },

    /**
     * Creates a job that writes the rows of a dry run, exactly as they were checked. Errors:
     * `not_found`; `conflict` while the dry run has not ended, at another tenant, of an import that is no
     * dry run, or if its rows are imported already; `permission_denied` for callers who may not see what the file has,
     * and without `inventory:write` in the tenant of the request.
     */
    async apply(
      caller: Caller,
      dryRunId: string,
      signal: AbortSignal,
    ): Promise<{ state: ImportState; job: JobData }> {
      await access.requireWithinTenant(caller, 'inventory:write');
      const record = await find(caller, dryRunId);
      if (!seesContent(caller, record))
        throw new AppError('permission_denied', 'Only the sender of the file can import its rows.');
      await checkApplicable(caller, record);
      const id = ids.next('imp');
      const rows = await slots.uploads.run(caller, signal, () =>
        writeUnaudited((trx) => copyRows(trx, dryRunId, id)),
      );
      if (rows !== record.rows) throw new AppError('conflict', 'The rows are no longer stored.');
      const { resource, mode } = record;
      return start(caller, id, { resource, rows, dryRun: false, mode, dryRunId });
    },

    /** Reads an import. Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<ImportState> {
      const [state] = await withCounts(caller, [await find(caller, id)]);
      return assertDefined(state, 'import state');
    },

    /** Lists imports. */
    async list(caller: Caller, request: ListRequest): Promise<ListAnswer<ImportState>> {
      const answer = await readList({ db, visible: () => visible(caller) }, request);
      return { ...answer, items: await withCounts(caller, answer.items) };
    },

    /**
     * Lists rows with their outcomes in the order of the file. `nextKey` is the last line if more
     * follow. Error: `not_found`.
     */
    async rows(
      caller: Caller,
      id: string,
      request: RowsRequest,
    ): Promise<{ items: ImportRowReport[]; nextKey: string | null }> {
      const record = await find(caller, id);
      const isVisible = seesContent(caller, record);
      const { rows, next } = await listRows(db, id, request);
      return {
        items: rows.map((row) => reportedRow(row, isVisible)),
        nextKey: next === null ? null : String(next),
      };
    },

    /**
     * The report of an import as text that is read while it is sent, a line for each finding. `recheck` gets
     * the caller with its current rights. Errors: `not_found`; of `recheck`, `permission_denied` for a
     * caller who saw what the file has, and may not any more.
     */
    async report(
      caller: Caller,
      id: string,
      request: Pick<RowsRequest, 'outcomes'> & { format: FileFormat },
      signal: AbortSignal,
    ): Promise<{ text: AsyncIterable<string>; recheck(caller: Caller): void }> {
      const record = await find(caller, id);
      const isVisible = seesContent(caller, record);
      return {
        text: textOfReport(id, request, isVisible, signal),
        recheck(current) {
          if (isVisible && !seesContent(current, record))
            throw new AppError('permission_denied', 'You may no longer see the rows of the file.');
        },
      };
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
  record: Import,
  job: Omit<ImportJob, 'id'> | undefined,
  counts: Readonly<Record<string, number>>,
  contentVisible: boolean,
): ImportState => {
  const { id, resource, dryRun, mode, dryRunId, rows, done, jobId, tenantId } = record;
  const { status = 'queued', progress = null, error = null, finishedAt = null } = job ?? {};
  return {
    ...{ id, tenantId, resource, dryRun, mode, dryRunId, rows, done, counts, jobId },
    ...{ status, progress, error, finishedAt, contentVisible },
    createdBy: record.createdBy,
    createdAt: record.createdAt,
  };
};
