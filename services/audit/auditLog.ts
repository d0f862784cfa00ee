import { findCheckpoint } from '../../db/audit/archives.ts';
import { readHeadPosition } from '../../db/audit/chain.ts';
import { AuditEntry } from '../../db/models/AuditEntry.ts';
import { AuditHead } from '../../db/models/AuditHead.ts';
import type { Knex } from '../../db/core/knex.ts';
import { createdAtSql, LONGEST_COMMIT_MS } from '../../db/core/listConditions.ts';
import type { Sql } from '../../db/core/sql.ts';
import { readList, type ListSource } from '../../db/core/lists.ts';
import { whereInScope } from '../../db/core/scopeSql.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, notFound } from '../../domain/shared/errors.ts';
import {
  pageOf,
  type ListAnswer,
  type ListCondition,
  type ListKey,
  type ListField,
  type ListRequest,
  type ListSort,
} from '../../domain/shared/lists.ts';
import { createPause } from '../../platform/turns.ts';
import type { Access } from '../access/access.ts';

export type AuditLog = ReturnType<typeof createAuditLog>;

/** Entries read per query by an export. */
const EXPORT_BATCH = 500;

/** The most by which the time in an entry's id is before its `at`: clocks of processes differ. */
const ID_TOLERANCE_MS = 60_000;

const OLDEST_FIRST: ListSort = { field: 'id', kind: 'text', nullable: false, descending: false };

const POSITION: ListField = { field: 'position', kind: 'bigint', nullable: false };
const IN_CHAIN_ORDER: ListSort = { ...POSITION, descending: false };

/** What follows a position in the chain of a tenant. */
export type ChainRequest = { tenantId: string; after: number };

const timeSql = (condition: ListCondition): Sql | undefined =>
  condition.field === 'at'
    ? createdAtSql('aud', condition, {
        toleranceMs: ID_TOLERANCE_MS,
        laterMs: LONGEST_COMMIT_MS,
        column: 'at',
      })
    : undefined;

/** Read access to the audit log. */
export function createAuditLog({ db, access }: { db: Knex; access: Access }) {
  const sourceFor = (caller: Caller): ListSource<AuditEntry> => ({
    db,
    visible() {
      const query = AuditEntry.query(db);
      whereInScope(query, access.scope(caller, 'audit:read'));
      return query;
    },
    condition: timeSql,
  });

  /** The position at which the chain ends now. Error: `unknown_position` if that is before `after`. */
  async function headAfter({ tenantId, after }: ChainRequest): Promise<number> {
    const head = await readHeadPosition(db, tenantId);
    if (after <= head) return head;
    throw new AppError(
      'unknown_position',
      `The chain of ${tenantId} ends at ${head}: it was restored, or lost entries in a failover.`,
    );
  }

  /** A page of the entries between a position and `head`. Error: `entries_archived`. */
  async function readChain(
    caller: Caller,
    { tenantId, after, head }: ChainRequest & { head: number },
    request: ListRequest,
  ): Promise<ListAnswer<AuditEntry>> {
    const answer = await readList(sourceFor(caller), {
      ...request,
      where: [
        ...request.where,
        { ...POSITION, operator: 'gt', values: [after] },
        { ...POSITION, operator: 'lte', values: [head] },
      ],
      sort: IN_CHAIN_ORDER,
    });
    // Read afterwards: what is archived in between must not be missed.
    const archived = (await findCheckpoint(db, tenantId))?.position ?? 0;
    if (Number(request.after?.value ?? after) >= archived) return answer;
    throw new AppError(
      'entries_archived',
      `The entries of ${tenantId} up to the position ${archived} are archived. Continue after it.`,
      { oldestPosition: archived + 1 },
    );
  }

  /** All pages of `load`. Each goes on after the last entry of the one before. */
  async function* readAll(
    load: (page: ListRequest) => Promise<ListAnswer<AuditEntry>>,
    where: readonly ListCondition[],
    signal: AbortSignal,
  ): AsyncGenerator<AuditEntry> {
    for (let after: ListKey | undefined; ;) {
      // An error, not the end: readers must see that the export is incomplete.
      signal.throwIfAborted();
      const pause = createPause({ signal, isPatient: true });
      const { items, next } = await load({ ...pageOf(EXPORT_BATCH, after), where });
      await pause();
      yield* items;
      if (!next) return;
      after = next;
    }
  }

  return {
    /** Entries inside the caller's scope. */
    list: (caller: Caller, request: ListRequest): Promise<ListAnswer<AuditEntry>> =>
      readList(sourceFor(caller), request),

    /**
     * One page of the matching entries after a position of a tenant's chain, in the order of the chain, and the
     * position up to which it covers the chain. Entries get their positions in order, after their commit, so none
     * appears later before that position. Errors: `permission_denied`; `entries_archived` if entries after the
     * position are archived; `unknown_position` if the chain ends before it.
     */
    async listAfter(
      caller: Caller,
      chain: ChainRequest,
      request: ListRequest,
    ): Promise<ListAnswer<AuditEntry> & { lastPosition: number }> {
      await access.require(caller, 'audit:read', { tenantId: chain.tenantId });
      const head = await headAfter(chain);
      const answer = await readChain(caller, { ...chain, head }, request);
      return { ...answer, lastPosition: Number(answer.next?.value ?? head) };
    },

    /** The heads of the chains of the tenants whose entries the caller may read. */
    heads: (caller: Caller, request: ListRequest): Promise<ListAnswer<AuditHead>> =>
      readList(
        {
          db,
          visible() {
            const query = AuditHead.rows(db);
            whereInScope(query, access.scope(caller, 'audit:read'));
            return query;
          },
        },
        request,
      ),

    /** Error: `not_found`. */
    async read(caller: Caller, id: string): Promise<AuditEntry> {
      const entry = await sourceFor(caller).visible().findById(id);
      if (!entry) throw notFound('audit entry', id);
      return entry;
    },

    /**
     * Every matching entry, oldest first, read in batches until `signal` aborts; with `chain`, those of `listAfter`
     * up to the present end of the chain. Errors: `permission_denied` if the caller holds the permission at no
     * tenant; with `chain`, those of `listAfter`.
     */
    async stream(
      caller: Caller,
      { where, chain }: { where: readonly ListCondition[]; chain: ChainRequest | undefined },
      signal: AbortSignal,
    ): Promise<AsyncGenerator<AuditEntry>> {
      if (!chain) {
        await access.requireAtSomeTenant(caller, 'audit:read');
        return readAll(
          (page) => readList(sourceFor(caller), { ...page, sort: OLDEST_FIRST }),
          where,
          signal,
        );
      }
      await access.require(caller, 'audit:read', { tenantId: chain.tenantId });
      const head = await headAfter(chain);
      const load = (page: ListRequest) => readChain(caller, { ...chain, head }, page);
      // What is archived already is an error before the response begins.
      await load(pageOf(1));
      return readAll(load, where, signal);
    },
  };
}
