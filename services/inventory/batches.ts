import { listRequest } from '../../db/inventory/history.ts';
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
import { isSeen } from '../../domain/inventory/standing.ts';
import type { Access } from '../access.ts';
import { outcomeOf, type InventoryWrites, type Mode } from './writes.ts';

export type InventoryBulk = ReturnType<typeof createInventoryBulk>;

/** What came of one mutation. */
export type BulkItem = {
  resource: string;
  outcome: ReturnType<typeof outcomeOf>;
  id: string | null;
  version: number | null;
  errors: PlanError[];
  conflicts: PlanConflict[];
  warnings: PlanWarning[];
};
export type BulkReport = { results: BulkItem[] };

const none = { errors: [], conflicts: [], warnings: [] };

/** Many changes in one request. */
export const createInventoryBulk = ({
  db,
  access,
  writes,
}: {
  db: Knex;
  access: Access;
  writes: InventoryWrites;
}) => ({
  /** Errors: those of a write; in mode `each` what is invalid is in the report. */
  async apply(caller: Caller, mutations: readonly Mutation[], mode: Mode): Promise<BulkReport> {
    const { planned, changes } = await writes.apply(caller, mutations, mode);
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
        return {
          resource,
          outcome,
          id,
          version:
            versions.get(`${resource}/${id ?? ''}`) ??
            (outcome === 'updated' ? (subject?.before?.version ?? null) : null),
          errors,
          conflicts,
          warnings,
        };
      }),
    };
  },

  /** What a request has done whose answer was lost, from its trail. */
  async recover(caller: Caller, subjectId: string): Promise<BulkReport> {
    const entries = await listRequest(db, subjectId, caller.actorId);
    const scope = access.scope(caller, 'inventory:read');
    const resourceOf = (kind: string) =>
      Object.values(RESOURCES).find((resource) => resource.kind === kind);
    // Request ids come from clients: what another request did elsewhere is not told.
    const seen = entries.filter(({ subjectType, after, before }) => {
      const [resource, row] = [resourceOf(subjectType), (after ?? before) as Row | null];
      return resource && row && isSeen(scope, resource, row);
    });
    return {
      results: seen.map(({ action, subjectType, subjectId: id, after }) => ({
        resource: resourceOf(subjectType)?.name ?? subjectType,
        outcome: `${action.slice(action.lastIndexOf('.') + 1)}d` as BulkItem['outcome'],
        id,
        version: (after as Row | null)?.version ?? null,
        ...none,
      })),
    };
  },
});
