import { listRequestEntries } from '../../db/inventory/history.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import type {
  Mutation,
  PlanConflict,
  PlanError,
  PlanWarning,
} from '../../domain/inventory/planning.ts';
import { isReadable } from '../../domain/inventory/ownership.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import { outcomeOf, type InventoryWrites, type WriteMode } from './writes.ts';

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

const NO_FINDINGS = { errors: [], conflicts: [], warnings: [] };

/** Batches: many mutations in one request. */
export const createInventoryBatches = ({
  db,
  access,
  writes,
  slots,
}: {
  db: Knex;
  access: Access;
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
    const { planned, changes } = await slots.largeWrites.run(caller, signal, () =>
      writes.apply(caller, mutations, mode),
    );
    const versions = new Map(
      changes.map(({ resource, id, after }) => [`${resource}/${id}`, after?.version ?? null]),
    );
    return {
      results: planned.map((each) => {
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
      }),
    };
  },

  /**
   * Reports the changes of an earlier request of the caller from the audit log. The request is the
   * one that last changed the record `subjectId`.
   */
  async recover(caller: Caller, subjectId: string): Promise<BatchReport> {
    const entries = await listRequestEntries(db, subjectId, caller.actorId);
    const scope = access.scope(caller, 'inventory:read', 'inventory:write');
    const resourceOf = (kind: string) =>
      Object.values(RESOURCES).find((resource) => resource.kind === kind);
    // Clients choose request ids, so entries of another request outside the scope are left out.
    const readable = entries.filter(({ subjectType, after, before }) => {
      const resource = resourceOf(subjectType);
      const row = (after ?? before) as Row | null;
      return resource && row && isReadable(scope, resource, row);
    });
    return {
      results: readable.map(({ action, subjectType, subjectId: id, after }) => ({
        resource: resourceOf(subjectType)?.name ?? subjectType,
        outcome: `${action.slice(action.lastIndexOf('.') + 1)}d` as BatchItem['outcome'],
        id,
        version: (after as Row | null)?.version ?? null,
        ...NO_FINDINGS,
      })),
    };
  },
});
