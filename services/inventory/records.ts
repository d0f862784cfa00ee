import { findLast, findState, listChanges } from '../../db/inventory/history.ts';
import {
  findRecord,
  listRecords,
  type RecordFilter,
  type RecordKey,
  type RecordSort,
} from '../../db/inventory/records.ts';
import type { Page, PageRequest } from '../../db/core/keyset.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { AuditEntry } from '../../db/models/AuditEntry.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { notFound } from '../../domain/shared/errors.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Resource, Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { isSeen } from '../../domain/inventory/standing.ts';
import type { Access } from '../access.ts';

export type InventoryRecords = ReturnType<typeof createInventoryRecords>;

export type { RecordFilter, RecordKey, RecordSort } from '../../db/inventory/records.ts';

type Deps = { db: Knex; access: Access };

/** Reading the inventory: records, lists, and what a record was. */
export function createInventoryRecords({ db, access }: Deps) {
  const scopeOf = (caller: Caller) => access.scope(caller, 'inventory:read');

  const sees = (caller: Caller, resource: Resource, row: Row): boolean =>
    isSeen(scopeOf(caller), resource, row);

  /** Error: `not_found`. */
  async function read(caller: Caller, name: ResourceName, id: string): Promise<Row> {
    const row = await findRecord(db, RESOURCES[name], scopeOf(caller), id);
    if (!row) throw notFound(RESOURCES[name].kind, id);
    return row;
  }

  /** Whoever may read a record may read its past; of one that was deleted, who might have read it then. */
  async function mayReadPast(caller: Caller, resource: Resource, id: string): Promise<void> {
    const row =
      (await findRecord(db, resource, scopeOf(caller), id)) ?? (await findGone(resource, id));
    if (!row || !sees(caller, resource, row)) throw notFound(resource.kind, id);
  }

  /** The last state of a record that is not there any more. */
  async function findGone(resource: Resource, id: string): Promise<Row | undefined> {
    const state = await findState(db, resource, id, null);
    return state === null ? findLast(db, resource, id) : undefined;
  }

  return {
    read,

    /** Records inside the caller's scope. */
    list: (
      caller: Caller,
      name: ResourceName,
      filter: RecordFilter,
      page: { sort: RecordSort; after: RecordKey | undefined; limit: number },
    ) => listRecords(db, RESOURCES[name], scopeOf(caller), filter, page),

    /** The record as it was at a time. Error: `not_found`, also when it was not there then. */
    async readAt(caller: Caller, name: ResourceName, id: string, at: Date): Promise<Row> {
      const resource = RESOURCES[name];
      await mayReadPast(caller, resource, id);
      const row = await findState(db, resource, id, at);
      if (!row || !sees(caller, resource, row)) throw notFound(resource.kind, id);
      return row;
    },

    /** The changes of a record, newest first. Error: `not_found`. */
    async changes(
      caller: Caller,
      name: ResourceName,
      id: string,
      page: PageRequest,
    ): Promise<Page<AuditEntry>> {
      await mayReadPast(caller, RESOURCES[name], id);
      const { items, nextKey } = await listChanges(db, RESOURCES[name], id, page);
      // What stood elsewhere then is the business of those who watch over there.
      const visible = items.filter(({ before, after }) =>
        [before, after].every(
          (state) => state === null || sees(caller, RESOURCES[name], state as Row),
        ),
      );
      return { items: visible, nextKey };
    },
  };
}
