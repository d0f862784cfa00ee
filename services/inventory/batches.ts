import { NoChange } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { findBulkResults, type BulkResults } from '../../db/inventory/history.ts';
import { findReadable } from '../../db/inventory/records.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isResourceName } from '../../domain/inventory/names.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { Ids } from '../../platform/ids.ts';
import type {
  Mutation,
  PlanConflict,
  PlanError,
  PlanWarning,
} from '../../domain/inventory/planning.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import type { PlanOutcome } from './planner.ts';
import { outcomeOf, type BeforeCommit, type InventoryWrites, type WriteMode } from './writes.ts';

export type InventoryBatches = ReturnType<typeof createInventoryBatches>;

/** The outcome of one mutation. */
export type BatchItem = {
  resource: string;
  outcome: ReturnType<typeof outcomeOf>;
  id: string | null;
  version: number | null;
  errors: PlanError[];
  conflicts: PlanConflict[];
  warnings: PlanWarning[];
};
export type BatchReport = { results: BatchItem[] };

/** What the results of a repeated request have instead of the findings of the first one. */
const FINDINGS_NOT_KEPT: PlanWarning = {
  pointer: null,
  code: 'findings_not_kept',
  message: 'The findings of the first request are not kept. Validate the mutation to see them',
};

/** Reports the outcome of each mutation. */
function resultsOf({ planned, changes }: PlanOutcome): BatchItem[] {
  const versions = new Map(
    changes.map(({ resource, id, after }) => [`${resource}/${id}`, after?.version ?? null]),
  );
  return planned.map((each) => {
    const { resource, subject, errors, conflicts, warnings } = each;
    const outcome = outcomeOf(each);
    const id =
      outcome === 'invalid' || outcome === 'conflict'
        ? (subject?.before?.id ?? null)
        : (subject?.id ?? null);
    const version = id === null ? undefined : versions.get(`${resource}/${id}`);
    const unchangedVersion = outcome === 'unchanged' ? subject?.before?.version : undefined;
    return {
      resource,
      outcome,
      id,
      version: version ?? unchangedVersion ?? null,
      errors,
      conflicts,
      warnings,
    };
  });
}

/**
 * Stores the results of a request that may be repeated, in its transaction: what the records are when it
 * is repeated says nothing about it.
 */
const storeResults =
  (ids: Ids): BeforeCommit =>
  (work, _trx, outcome) => {
    if (outcome.changes.length === 0) throw new NoChange();
    const bulkId = ids.next('req');
    const results: BulkResults = resultsOf(outcome).map(
      ({ resource, outcome: of, id, version }) => ({
        resource,
        outcome: of,
        id,
        version,
      }),
    );
    work.audit('inventory.bulk', { type: 'bulk', id: bulkId }, { after: { results } });
    work.result(bulkId);
    return Promise.resolve();
  };

/** Batches: many mutations in one request. */
export const createInventoryBatches = ({
  db,
  access,
  ids,
  writes,
  slots,
}: {
  db: Knex;
  access: Access;
  ids: Ids;
  writes: InventoryWrites;
  slots: { largeWrites: Slots };
}) => ({
  /**
   * Applies mutations. Errors: those of a write; in mode `each`, the report has invalid ones;
   * `too_many_requests`; the reason of `signal`, before anything is written.
   */
  async apply(
    caller: Caller,
    mutations: readonly Mutation[],
    mode: WriteMode,
    signal: AbortSignal,
  ): Promise<BatchReport> {
    const outcome = await slots.largeWrites.run(caller, signal, () =>
      writes.apply(caller, mutations, mode, {
        ...(caller.idempotency && { beforeCommit: storeResults(ids) }),
      }),
    );
    return { results: resultsOf(outcome) };
  },

  /**
   * Reports the results of an earlier request of the caller, `bulkId`, without findings. For records
   * that the caller may no longer read, they say only what was done. Error: `not_found`.
   */
  async recover(caller: Caller, bulkId: string): Promise<BatchReport> {
    // Keys of an earlier release name a record, which does not say which request has changed it.
    if (!bulkId.startsWith('req_')) return { results: [] };
    const results = await findBulkResults(db, caller, bulkId);
    if (!results) throw notFound('bulk request', bulkId);
    const scope = access.scope(caller, 'inventory:read', 'inventory:write');
    const readable = new Set<string>();
    for (const [name, of] of Map.groupBy(results, ({ resource }) => resource)) {
      if (!isResourceName(name)) continue;
      const asked = of.flatMap(({ id }) => id ?? []);
      for (const { id } of await findReadable(db, RESOURCES[name], scope, asked))
        readable.add(`${name}/${id}`);
    }
    return {
      results: results.map(({ resource, outcome, id, version }): BatchItem => {
        // The caller has named the other records.
        const isHidden =
          (outcome === 'created' || outcome === 'updated') && !readable.has(`${resource}/${id}`);
        const isRejected = outcome === 'invalid' || outcome === 'conflict';
        return {
          resource,
          outcome: outcome as BatchItem['outcome'],
          ...(isHidden ? { id: null, version: null } : { id, version }),
          errors: [],
          conflicts: [],
          warnings: isRejected ? [FINDINGS_NOT_KEPT] : [],
        };
      }),
    };
  },
});
