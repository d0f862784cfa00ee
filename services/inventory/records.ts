import { findArchivedUntil } from '../../db/audit/archives.ts';
import { findDeleted, findLeft, findStateAt, listChanges } from '../../db/inventory/history.ts';
import { findRecord, findShared, listRecords } from '../../db/inventory/records.ts';
import { inheritAsOfNow } from '../../db/inventory/inheritedScopes.ts';
import type { KeysetPage, PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { AuditEntry } from '../../db/models/AuditEntry.ts';
import type { Permission } from '../../domain/access/permissions.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isReadable, tenantOf } from '../../domain/inventory/ownership.ts';
import { sharedView } from '../../domain/inventory/sharing.ts';
import { withItems, type ListAnswer, type ListRequest } from '../../domain/shared/lists.ts';
import type { Access } from '../access/access.ts';
import { resolveFilter, type RecordFilterRequest } from './listFilters.ts';
import { nounOf } from '../../domain/shared/nouns.ts';

export type InventoryRecords = ReturnType<typeof createInventoryRecords>;

export type { RecordFilterRequest } from './listFilters.ts';

/** A page of the changes of a record. `archivedUntil`: changes until then may be in an archive only. */
type ChangePage = KeysetPage<AuditEntry> & { archivedUntil: Date | null };

type Deps = { db: Knex; access: Access };

/** Reads of the inventory: records, lists and history. */
export function createInventoryRecords({ db, access }: Deps) {
  const scopeOf = (caller: Caller) => access.scope(caller, 'inventory:read');

  const canRead = (caller: Caller, resource: Resource, row: Row): boolean =>
    isReadable(scopeOf(caller), resource, row);

  /**
   * Reads a record that the caller may read, or has just acted on with `actedWith`. Error:
   * `not_found`.
   */
  async function read(
    caller: Caller,
    name: ResourceName,
    id: string,
    actedWith: Permission = 'inventory:read',
  ): Promise<Row> {
    const scope = access.scope(caller, 'inventory:read', actedWith);
    const row =
      (await findRecord(db, RESOURCES[name], scope, id)) ?? (await readShared(caller, name, id));
    if (!row) throw notFound(RESOURCES[name].kind, id);
    return row;
  }

  /** Reads a record that another tenant shares: the record, but not its history. */
  async function readShared(
    caller: Caller,
    name: ResourceName,
    id: string,
  ): Promise<Row | undefined> {
    const row = await findShared(db, RESOURCES[name], scopeOf(caller), id);
    return row && sharedView(scopeOf(caller), RESOURCES[name], row);
  }

  /**
   * Callers who may read a record may read its history. For a deleted record, or one that has left
   * the tenants of the caller, its last state decides. Returns the record, or that state. Error:
   * `not_found`.
   */
  async function readWithHistory(caller: Caller, resource: Resource, id: string): Promise<Row> {
    const scope = scopeOf(caller);
    for (const find of [
      () => findRecord(db, resource, scope, id),
      () => findDeleted(db, resource, id),
      () => findLeft(db, resource, scope, id),
    ]) {
      const row = await find();
      if (row && (await canReadState(caller, resource, row))) return row;
    }
    throw notFound(resource.kind, id);
  }

  /** True when the caller may read a past state of a record, given what it would belong to now. */
  const canReadState = async (caller: Caller, resource: Resource, state: Row): Promise<boolean> =>
    (await inheritAsOfNow(db, resource, [state])).every((row) => canRead(caller, resource, row));

  /** Until when entries about a record may be archived; null without archives. */
  const archivedUntil = (resource: Resource, row: Row): Promise<Date | null> =>
    findArchivedUntil(db, tenantOf(resource, row));

  return {
    read,

    /**
     * Reads a record for a caller who may read or change it; whether the change is allowed is
     * checked when it is planned. Error: `not_found`.
     */
    async readToChange(caller: Caller, name: ResourceName, id: string): Promise<Row> {
      for (const scope of [scopeOf(caller), access.scope(caller, 'inventory:write')]) {
        const row = await findRecord(db, RESOURCES[name], scope, id);
        if (row) return row;
      }
      const shared = await readShared(caller, name, id);
      if (shared) return shared;
      throw notFound(RESOURCES[name].kind, id);
    },

    /**
     * Lists records inside the caller's scope, or those that are shared with its tenants. Error:
     * `invalid_request` (custom fields, names of references).
     */
    async list(
      caller: Caller,
      name: ResourceName,
      asked: RecordFilterRequest,
      request: ListRequest,
    ): Promise<ListAnswer<Row>> {
      const [resource, scope] = [RESOURCES[name], scopeOf(caller)];
      const { filter, where } = await resolveFilter(db, resource, scope, asked);
      const answer = await listRecords(db, resource, scope, filter, {
        ...request,
        where: [...request.where, ...where],
      });
      return withItems(
        answer,
        answer.items.map((row) => sharedView(scope, resource, row)),
      );
    },

    /**
     * Reads a record as it was at a time. Errors: `not_found`, also when it did not exist then,
     * `history_incomplete`.
     */
    async readAt(caller: Caller, name: ResourceName, id: string, at: Date): Promise<Row> {
      const resource = RESOURCES[name];
      const last = await readWithHistory(caller, resource, id);
      const row = await findStateAt(db, resource, id, at);
      if (row === undefined)
        throw historyIncomplete(resource, id, await archivedUntil(resource, last));
      if (!row || !(await canReadState(caller, resource, row))) throw notFound(resource.kind, id);
      return row;
    },

    /** Lists the changes of a record, newest first. Error: `not_found`. */
    async changes(
      caller: Caller,
      name: ResourceName,
      id: string,
      page: PageRequest,
    ): Promise<ChangePage> {
      const last = await readWithHistory(caller, RESOURCES[name], id);
      const { items, nextKey } = await listChanges(db, RESOURCES[name], id, page);
      // A record may have been outside the caller's scope before, or may be now.
      const states = items
        .flatMap(({ before, after }) => [before, after])
        .filter((state) => state !== null) as Row[];
      const rows = await inheritAsOfNow(db, RESOURCES[name], states);
      const hidden = new Set<unknown>(
        states.filter((_, i) => {
          const row = rows[i];
          return !row || !canRead(caller, RESOURCES[name], row);
        }),
      );
      const visible = items.filter(
        ({ before, after }) => !hidden.has(before) && !hidden.has(after),
      );
      return {
        items: visible,
        nextKey,
        archivedUntil: await archivedUntil(RESOURCES[name], last),
      };
    },
  };
}

const historyIncomplete = ({ kind }: Resource, id: string, archived: Date | null): AppError =>
  new AppError(
    'history_incomplete',
    archived
      ? `The audit log no longer says what the ${nounOf(kind)} ${id} was then: its entries until ${archived.toISOString()} are archived.`
      : `The audit log of this installation does not say what the ${nounOf(kind)} ${id} was then.`,
  );
