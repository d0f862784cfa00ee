import type { Readable } from 'node:stream';
import type { Commit, Note } from '../../db/commit.ts';
import {
  addRows,
  countOutcomes,
  endRows,
  findTaken,
  listRows,
  nextRows,
  type FileRow,
  type ReportedRow,
  type RowOutcome,
} from '../../db/inventory/importRows.ts';
import { keysetPage, type Page, type PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import { Import } from '../../db/models/Import.ts';
import { Job } from '../../db/models/Job.ts';
import { scopeCondition } from '../../db/core/scopeSql.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import { IMPORT, MAX_DRY_ROWS, MAX_IMPORT_ROWS } from '../../domain/inventory/imports.ts';
import type { Mutation, Planned } from '../../domain/inventory/planning.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Ids } from '../../platform/ids.ts';
import { jobWorkflowId, type DispatchTask } from '../../temporal/contracts.ts';
import type { Access } from '../access.ts';
import type { JobStarts } from '../jobStarts.ts';
import type { JobTypes } from '../jobTypes/registry.ts';
import { authorityOf, type UserRights } from '../access/rights.ts';
import { readCsv, readNdjson } from './importFile.ts';
import { outcomeOf, type InventoryWrites } from './writes.ts';

export type InventoryImports = ReturnType<typeof createInventoryImports>;

export type FileFormat = 'csv' | 'ndjson';
export type ImportRequest = { format: FileFormat; resource?: ResourceName; dryRun: boolean };

/** An import and how many of its rows came to what. */
export type ImportState = {
  record: Import;
  counts: Readonly<Record<string, number>>;
  status: Job['status'];
};

/** Why rows are not written that were planned. */
const REFUSALS: ReadonlySet<string> = new Set(['conflict', 'in_use', 'limit_reached']);

/** Rows that are kept, and rows that are planned and written, at once. */
const RECEIVED_AT_ONCE = 1_000;
const WRITTEN_AT_ONCE = 500;

type Deps = {
  db: Knex;
  commit: Commit<DispatchTask>;
  note: Note;
  access: Access;
  rights: UserRights;
  ids: Ids;
  writes: InventoryWrites;
  starts: JobStarts;
  jobTypes: () => JobTypes;
};

/** Files that are taken in, row by row, by a job. */
export function createInventoryImports({
  db,
  commit,
  note,
  access,
  rights,
  ids,
  writes,
  starts,
  jobTypes,
}: Deps) {
  /** Imports at tenants that the caller reads, and the caller's own. */
  function visible(caller: Caller) {
    const { sql, bindings } = scopeCondition(access.scope(caller, 'inventory:read'));
    return Import.query(db).whereRaw(`(${sql} OR (created_by = ? AND tenant_id = ?))`, [
      ...bindings,
      caller.actorId,
      caller.tenantId,
    ]);
  }

  async function withCounts(records: readonly Import[]): Promise<ImportState[]> {
    const counts = await countOutcomes(
      db,
      records.map(({ id }) => id),
    );
    const jobs = await Job.query(db)
      .findByIds(records.map(({ jobId }) => jobId))
      .select('id', 'status');
    return records.map((record) => ({
      record,
      counts: counts.get(record.id) ?? {},
      status: jobs.find(({ id }) => id === record.jobId)?.status ?? 'queued',
    }));
  }

  async function find(caller: Caller, id: string): Promise<Import> {
    const record = await visible(caller).findById(id);
    if (!record) throw notFound('import', id);
    return record;
  }

  /** Keeps the rows of a file as they come; returns how many. */
  async function keepRows(
    importId: string,
    rows: AsyncIterable<FileRow>,
    most: number,
  ): Promise<number> {
    let [count, batch]: [number, FileRow[]] = [0, []];
    const flush = async () => {
      if (batch.length > 0) await note((trx) => addRows(trx, importId, batch));
      batch = [];
    };
    for await (const row of rows) {
      if (++count > most) throw new AppError('limit_reached', `A file may have ${most} rows.`);
      batch.push(row);
      if (batch.length === RECEIVED_AT_ONCE) await flush();
    }
    await flush();
    return count;
  }

  /** The caller that rows are written for: whoever sent the file, with the rights held now. */
  const actor = async ({ authority, createdBy, tenantId, jobId }: Import): Promise<Caller> => ({
    ...systemCaller(tenantId, jobWorkflowId(jobId)),
    actorId: createdBy,
    rights: await rights.ofAuthority(authority),
  });

  return {
    /**
     * Takes a file in and starts a job for it. Errors: `invalid_request` with the line that cannot be read,
     * `body_too_large`, `limit_reached`.
     */
    async receive(
      caller: Caller,
      { format, resource, dryRun }: ImportRequest,
      source: Readable,
    ): Promise<{ state: ImportState; job: Job }> {
      const declared = resource && RESOURCES[resource];
      if (format === 'csv' && !declared)
        throw invalidField('query', '/resource', 'required', 'is required for CSV');
      const id = ids.next('imp');
      const rows = await keepRows(
        id,
        format === 'csv' && declared ? readCsv(source, declared) : readNdjson(source, declared),
        dryRun ? MAX_DRY_ROWS : MAX_IMPORT_ROWS,
      );
      if (rows === 0) throw invalidField('body', '', 'empty', 'has no rows');
      return commit(caller, (work) => {
        // First: a request that is sent again is answered with what its first entry is about.
        work.audit(
          'inventory.import',
          { type: 'import', id },
          { after: { resource: resource ?? null, rows, dryRun } },
        );
        const job = starts.add(
          work,
          jobTypes().get(IMPORT),
          { type: IMPORT, payload: { importId: id } },
          caller,
        );
        const record = work.insert(Import, {
          id,
          tenantId: caller.tenantId,
          jobId: job.id,
          resource: resource ?? null,
          dryRun,
          rows,
          done: 0,
          authority: authorityOf(caller),
          createdBy: caller.actorId,
          createdAt: work.now,
        });
        return { state: { record, counts: {}, status: job.status }, job };
      });
    },

    /** Error: `not_found`. */
    read: async (caller: Caller, id: string): Promise<ImportState> =>
      (await withCounts([await find(caller, id)]))[0] ?? {
        record: await find(caller, id),
        counts: {},
        status: 'queued',
      },

    async list(caller: Caller, page: PageRequest): Promise<Page<ImportState>> {
      const { items, nextKey } = await keysetPage(visible(caller), page);
      return { items: await withCounts(items), nextKey };
    },

    /** What came of each row, in the order of the file. Error: `not_found`. */
    async rows(
      caller: Caller,
      id: string,
      page: { outcome: string | undefined; after: number; limit: number },
    ): Promise<ReportedRow[]> {
      await find(caller, id);
      return listRows(db, id, page);
    },

    /**
     * Plans and writes the next rows in one transaction, which also notes what came of them: begun again, it goes on
     * where it was, and no row is written twice. Returns the import as it is then.
     */
    async step(importId: string, limit = WRITTEN_AT_ONCE): Promise<Import> {
      const record = await Import.query(db).findById(importId).throwIfNotFound();
      const caller = await actor(record);
      let rows: FileRow[] = [];
      await writes
        .apply(
          caller,
          async (trx) => {
            await Import.query(trx).findById(importId).forUpdate();
            rows = await nextRows(trx, importId, limit);
            return withOperations(trx, rows);
          },
          'each',
          {
            along: async (work, trx, { planned }) => {
              await endRows(trx, importId, outcomes(rows, planned));
              work.audit(
                'inventory.import.step',
                { type: 'import', id: importId },
                { after: { rows: rows.length, from: rows[0]?.line ?? null } },
              );
            },
          },
        )
        .catch(async (error: unknown) => {
          const refused = error instanceof AppError ? REFUSALS.has(error.code) : isOfTheRows(error);
          if (!refused) throw error;
          // What cannot be written together may be apart; what cannot by itself has this as its outcome.
          if (rows.length > 1) return void (await this.step(importId, Math.ceil(rows.length / 2)));
          const known =
            error instanceof AppError
              ? error
              : new AppError('conflict', 'The row cannot be written.');
          const conflicts = [
            { pointer: null, code: known.code, message: known.message, resource: null, id: null },
          ];
          await note((trx) =>
            endRows(
              trx,
              importId,
              rows.map(({ line }) => ({
                line,
                outcome: 'conflict',
                recordId: null,
                report: { errors: [], conflicts, warnings: [] },
              })),
            ),
          );
        });
      return Import.query(db).findById(importId).throwIfNotFound();
    },

    /** Plans all rows, each on top of those before it, and keeps only what would have come of them. */
    async rehearse(
      importId: string,
      signal: AbortSignal,
      progress: (done: number) => void,
    ): Promise<Import> {
      const record = await Import.query(db).findById(importId).throwIfNotFound();
      const caller = await actor(record);
      const all = await nextRows(db, importId, MAX_DRY_ROWS);
      const ended: RowOutcome[] = [];
      await writes.rehearseInSteps(caller, async (trx, plan) => {
        for (let at = 0; at < all.length; at += WRITTEN_AT_ONCE) {
          signal.throwIfAborted();
          const rows = all.slice(at, at + WRITTEN_AT_ONCE);
          ended.push(
            ...outcomes(rows, await plan(await withOperations(trx, rows))).map((row) => ({
              ...row,
              recordId: null,
            })),
          );
          progress(ended.length);
        }
      });
      // All or none: begun again, it looks at all of them again.
      await note((trx) => endRows(trx, importId, ended));
      return Import.query(db).findById(importId).throwIfNotFound();
    },
  };
}

/** True for a failure of planning itself: a database that is away, or a lock that is not to be had, says so by a code. */
const isOfTheRows = (error: unknown): boolean =>
  error instanceof Error &&
  (error as { code?: unknown }).code === undefined &&
  error.name !== 'KnexTimeoutError' &&
  !/connection|timeout|terminated|abort/i.test(error.message);

const idOf = (record: unknown): string => {
  const { id } = record as { id?: unknown };
  return typeof id === 'string' && !id.includes('\0') ? id : '';
};

/** A readable id does not say whether its record is there. */
async function withOperations(trx: Knex, rows: readonly FileRow[]): Promise<Mutation[]> {
  const taken = new Map<string, Set<string>>();
  for (const name of ['tenants', 'tags'] as const) {
    const wanted = rows.flatMap(({ mutation: { resource, record } }) =>
      resource === name ? [idOf(record)] : [],
    );
    taken.set(name, new Set(wanted.length > 0 ? await findTaken(trx, name, wanted) : []));
  }
  return rows.map(({ mutation }) => {
    const known = taken.get(mutation.resource);
    if (!known || mutation.operation !== 'update') return mutation;
    const id = idOf(mutation.record);
    const operation = known.has(id) ? 'update' : 'create';
    known.add(id);
    return { ...mutation, operation };
  });
}

const outcomes = (rows: readonly FileRow[], planned: readonly Planned[]): RowOutcome[] =>
  rows.flatMap(({ line }, i): RowOutcome[] => {
    const plan = planned[i];
    if (!plan) return [];
    const { errors, conflicts, warnings, subject } = plan;
    const outcome = outcomeOf(plan);
    return [
      {
        line,
        outcome,
        recordId: outcome === 'invalid' || outcome === 'conflict' ? null : (subject?.id ?? null),
        report: { errors, conflicts, warnings },
      },
    ];
  });
