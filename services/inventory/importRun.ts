import type { WriteUnaudited } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import {
  countOutcomes,
  nextRows,
  pendingLines,
  recordOutcomes,
  type FileRow,
  type RowOutcome,
} from '../../db/inventory/importRows.ts';
import { lockImport, readImport } from '../../db/inventory/imports.ts';
import type { Import } from '../../db/models/Import.ts';
import { jobWorkflowId } from '../../domain/dispatch/workflowIds.ts';
import { importFailure } from '../../domain/inventory/imports.ts';
import type { ImportMode } from '../../domain/inventory/importLimits.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Mutation, Planned } from '../../domain/inventory/planning.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { JobFailure } from '../../domain/jobs/jobType.ts';
import { systemCaller, type Caller } from '../../domain/shared/caller.ts';
import { AppError } from '../../domain/shared/errors.ts';
import type { Slots } from '../../platform/slots.ts';
import type { UserRights } from '../access/rights.ts';
import { createImportPace } from './importPace.ts';
import type { Questions } from './planner.ts';
import { isPlanningError } from './planningError.ts';
import type { InventoryQuestions } from './questions.ts';
import { isConcurrentChange, isRefusedChange } from './retryOnConflict.ts';
import { outcomeOf, type InventoryWrites } from './writes.ts';

/** The number of rows that one step of a transaction plans, at most. */
const STEP_SIZE = 500;

/** How long the transaction of an import of the mode `all` may last: others may wait for it. */
const MAX_WRITE_ALL_MS = 30_000;

/** When an import that took too long is tried again. */
const RETRY_AFTER_SECONDS = 60;

/**
 * Errors of a write that are outcomes of its rows. All other errors fail the attempt, also `conflict`:
 * conflicts with other records are part of a plan, so that it means that concurrent changes interfered,
 * unless the database has always refused the rows.
 */
const REJECTION_CODES: ReadonlySet<string> = new Set(['in_use', 'legal_hold', 'limit_reached']);

type Deps = {
  db: Knex;
  writeUnaudited: WriteUnaudited;
  rights: UserRights;
  writes: InventoryWrites;
  questions: InventoryQuestions;
  slots: { importWrites: Slots; wholeImports: Slots };
  maxWriteAllMs?: number;
};

/** Rolls back an import of the mode `all`; `outcomes` are those of its rows. */
class RejectedImport extends Error {
  readonly outcomes: readonly RowOutcome[];

  constructor(outcomes: readonly RowOutcome[]) {
    super('Rows of the import are invalid');
    this.outcomes = outcomes;
  }
}

/** How many rows of an import exist, and how many of them have an outcome. */
export type ImportProgress = { rows: number; done: number };

/** The run of an import, as its job executes it. */
export function createImportRun({
  db,
  writeUnaudited,
  rights,
  writes,
  questions,
  slots,
  maxWriteAllMs = MAX_WRITE_ALL_MS,
}: Deps) {
  const pace = createImportPace();
  /** The caller that rows are written for: the sender of the file with its present rights. */
  const callerFor = async ({ authority, createdBy, tenantId, jobId }: Import): Promise<Caller> => ({
    ...systemCaller(tenantId, jobWorkflowId(jobId)),
    actorId: createdBy,
    rights: await rights.forAuthority(authority),
  });

  const storeOutcomes = (importId: string, outcomes: readonly RowOutcome[]): Promise<void> =>
    writeUnaudited((own) =>
      own.transaction(async (trx) => {
        await lockImport(trx, importId);
        await recordOutcomes(trx, importId, outcomes);
      }),
    );

  /**
   * Writes up to `limit` rows. When the whole batch is rejected, or concurrent changes always interfere,
   * it writes half of it. When a single row is rejected, the error is its outcome. Error:
   * `concurrent_change`, to be tried again.
   */
  async function writeRows(importId: string, caller: Caller, limit: number): Promise<void> {
    let rows: FileRow[] = [];
    const source = async (trx: Knex): Promise<Mutation[]> => {
      await lockImport(trx, importId);
      rows = await nextRows(trx, importId, { limit });
      return rows.map(mutationOf);
    };
    try {
      await writes.apply(caller, source, 'each', {
        beforeCommit: async (work, trx, { planned }) => {
          await recordOutcomes(trx, importId, outcomesOf(rows, planned));
          work.audit(
            'inventory.import.step',
            { type: 'import', id: importId },
            { after: { rows: rows.length, from: rows[0]?.line ?? null } },
          );
        },
      });
    } catch (error) {
      const isRejected = isRejection(error);
      if (rows.length > 1 && (isRejected || isConcurrentChange(error)))
        return writeRows(importId, caller, Math.ceil(rows.length / 2));
      if (!isRejected) throw isConcurrentChange(error) ? concurrentFailure(error) : error;
      await storeOutcomes(
        importId,
        rows.map(({ line }) => rejectedOutcome(line, error)),
      );
    }
  }

  /** Plans all rows in order without writing any. */
  async function planAll(
    caller: Caller,
    importId: string,
    signal: AbortSignal,
    onProgress: (done: number) => void,
  ): Promise<RowOutcome[]> {
    const outcomes: RowOutcome[] = [];
    await questions.dryRunInSteps(caller, signal, async (plan, trx) => {
      for await (const rows of stepsOf(trx, importId)) {
        signal.throwIfAborted();
        const found = await askAbout(plan, rows, signal);
        outcomes.push(...found.map((row) => ({ ...row, recordId: null })));
        onProgress(outcomes.length);
      }
    });
    return outcomes;
  }

  /**
   * Writes all rows in one transaction. Returns their outcomes if one of them is invalid: then none
   * is written. Errors: `unavailable` when it takes too long; `concurrent_change`; the reason of `signal`.
   */
  async function writeTogether(
    { id: importId, rows: count }: Pick<Import, 'id' | 'rows'>,
    caller: Caller,
    signal: AbortSignal,
    onProgress: (part: number) => void,
  ): Promise<RowOutcome[] | null> {
    const late = AbortSignal.timeout(maxWriteAllMs);
    const either = AbortSignal.any([signal, late]);
    const write = () =>
      writes.applyInSteps(caller, either, async (work, trx, apply) => {
        await lockImport(trx, importId);
        const outcomes: RowOutcome[] = [];
        // Rows after an invalid one are planned too, so that all errors are found.
        for await (const rows of stepsOf(trx, importId)) {
          either.throwIfAborted();
          outcomes.push(...outcomesOf(rows, await apply(rows.map(mutationOf))));
          onProgress((count + outcomes.length) >> 1);
        }
        if (outcomes.length === 0) return;
        if (outcomes.some(isRejected)) throw new RejectedImport(skipValid(outcomes));
        await recordOutcomes(trx, importId, outcomes);
        work.audit(
          'inventory.import.step',
          { type: 'import', id: importId },
          { after: { rows: outcomes.length, from: outcomes[0]?.line ?? null } },
        );
      });
    try {
      await write();
      return null;
    } catch (error) {
      signal.throwIfAborted();
      if (late.aborted) throw tookTooLong(maxWriteAllMs);
      if (error instanceof RejectedImport) return [...error.outcomes];
      if (isRejection(error))
        return (await pendingLines(db, importId)).map((line) => rejectedOutcome(line, error));
      throw isConcurrentChange(error) ? concurrentFailure(error) : error;
    }
  }

  return {
    /** Reads the progress of an import. */
    progress: async (
      importId: string,
    ): Promise<ImportProgress & { dryRun: boolean; mode: ImportMode }> => {
      const { rows, done, dryRun, mode } = await readImport(db, importId);
      return { rows, done, dryRun, mode };
    },

    /** Why an import fails although all its rows have an outcome; null when it succeeds. */
    async failure(importId: string): Promise<string | null> {
      const record = await readImport(db, importId);
      const counts = await countOutcomes(db, [record]);
      return importFailure(record.mode, record.rows, counts.get(importId) ?? {});
    },

    /**
     * Writes all rows in one transaction, or none when one of them is invalid, and stores their
     * outcomes. A repeated attempt starts from the first row. Few such imports write at a time.
     * Returns the progress. Errors: `too_many_requests`, `unavailable` and `concurrent_change`, to be tried again.
     */
    async writeAll(
      importId: string,
      signal: AbortSignal,
      onProgress: (done: number) => void,
    ): Promise<ImportProgress> {
      const record = await readImport(db, importId);
      if (record.done >= record.rows) return record;
      const caller = await callerFor(record);
      // Planned without locks first: nobody waits for a file with errors.
      const expected = await planAll(caller, importId, signal, (done) => onProgress(done >> 1));
      const rejected = expected.some(isRejected)
        ? skipValid(expected)
        : await slots.wholeImports.run(caller, signal, () =>
            writeTogether(record, caller, signal, onProgress),
          );
      if (rejected) await storeOutcomes(importId, rejected);
      return readImport(db, importId);
    },

    /**
     * Plans and writes the next rows and stores their outcomes in the same transaction. A repeated
     * attempt continues after the last stored outcome, so that no row is written twice. Returns the
     * progress. The imports of a tenant take turns, batch by batch, and leave time to other tenants.
     */
    async writeBatch(importId: string, signal: AbortSignal): Promise<ImportProgress> {
      const caller = await callerFor(await readImport(db, importId));
      await slots.importWrites.run(caller, signal, () =>
        pace.step(caller.tenantId, signal, (maxRows) => writeRows(importId, caller, maxRows)),
      );
      return readImport(db, importId);
    },

    /**
     * Plans all rows, each on top of the previous ones, and stores their outcomes only. They are
     * stored together, so that a repeated attempt starts from the first row. Returns the progress.
     */
    async dryRun(
      importId: string,
      signal: AbortSignal,
      onProgress: (done: number) => void,
    ): Promise<ImportProgress> {
      const record = await readImport(db, importId);
      const caller = await callerFor(record);
      const outcomes = await planAll(caller, importId, signal, onProgress);
      const isSkipped = record.mode === 'all' && outcomes.some(isRejected);
      await storeOutcomes(importId, isSkipped ? skipValid(outcomes) : outcomes);
      return readImport(db, importId);
    },
  };
}

const tookTooLong = (timeoutMs: number): AppError =>
  new AppError(
    'unavailable',
    `The rows could not be written together within ${timeoutMs / 1_000} s. Try again, or split the file.`,
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );

/** Concurrent changes say nothing about the rows: another attempt may write them. */
const concurrentFailure = ({ message }: Error): JobFailure =>
  new JobFailure('concurrent_change', message, { retryable: true });

/** The rows without an outcome, in order, step by step. */
async function* stepsOf(trx: Knex, importId: string): AsyncGenerator<FileRow[]> {
  for (let after = 0; ;) {
    const rows = await nextRows(trx, importId, { limit: STEP_SIZE, after });
    const last = rows.at(-1);
    if (!last) return;
    yield rows;
    after = last.line;
  }
}

const isRejected = ({ outcome }: RowOutcome): boolean =>
  outcome === 'invalid' || outcome === 'conflict';

/** The outcomes of rows of which none is written. */
const skipValid = (outcomes: readonly RowOutcome[]): RowOutcome[] =>
  outcomes.map((row) => (isRejected(row) ? row : { ...row, outcome: 'skipped', recordId: null }));

/** True for an error that concerns the rows and not the attempt. */
const isRejection = (error: unknown): boolean =>
  error instanceof AppError
    ? REJECTION_CODES.has(error.code) || isRefusedChange(error)
    : isPlanningError(error);

/** The outcome of a row that cannot be written even by itself. */
function rejectedOutcome(line: number, error: unknown): RowOutcome {
  const { code, message } =
    error instanceof AppError ? error : new AppError('conflict', 'The row cannot be written.');
  const conflicts = [{ pointer: null, code, message, resource: null, id: null }];
  const report = { errors: [], conflicts, warnings: [] };
  return { line, outcome: 'conflict', recordId: null, report };
}

/**
 * Plans rows on top of the earlier ones. Rows that are rejected together are planned by halves.
 * Error: the reason of `signal`, which says nothing about the rows.
 */
async function askAbout(
  questions: Questions,
  rows: readonly FileRow[],
  signal: AbortSignal,
): Promise<RowOutcome[]> {
  try {
    return outcomesOf(rows, (await questions.plan(rows.map(mutationOf))).planned);
  } catch (error) {
    signal.throwIfAborted();
    if (!isRejection(error)) throw error;
    if (rows.length === 1) return rows.map(({ line }) => rejectedOutcome(line, error));
    const half = Math.ceil(rows.length / 2);
    return [
      ...(await askAbout(questions, rows.slice(0, half), signal)),
      ...(await askAbout(questions, rows.slice(half), signal)),
    ];
  }
}

/**
 * The mutation of a row. Callers choose the ids of tenants and tags: unless the file says what to do, a row
 * creates the record if there is none when the row is planned.
 */
function mutationOf({ mutation: { isOperationGiven, ...mutation } }: FileRow): Mutation {
  const { resource: name } = mutation;
  const isChosen =
    Object.hasOwn(RESOURCES, name) && RESOURCES[name as ResourceName].idPrefix === null;
  return isChosen && !isOperationGiven ? { ...mutation, createsMissing: true } : mutation;
}

/** The outcome of each row according to its plan. */
function outcomesOf(rows: readonly FileRow[], planned: readonly Planned[]): RowOutcome[] {
  return planned.flatMap((plan, i): RowOutcome[] => {
    const row = rows[i];
    if (!row) return [];
    const { errors, conflicts, warnings, subject } = plan;
    const outcome = outcomeOf(plan);
    const isWritten = outcome !== 'invalid' && outcome !== 'conflict';
    return [
      {
        line: row.line,
        outcome,
        recordId: isWritten ? (subject?.id ?? null) : null,
        report: { errors, conflicts, warnings },
      },
    ];
  });
}
