import { findFree, keepHint, listTaken } from '../../db/inventory/freeSpace.ts';
import { prepareToWrite } from '../../db/inventory/locks.ts';
import { listRecords, readRecord } from '../../db/inventory/records.ts';
import { readUsage, type Usage } from '../../db/inventory/usage.ts';
import type { Knex } from '../../db/core/knex.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import {
  bitsOf,
  blocksOf,
  formatBlock,
  formatHost,
  gapsIn,
  mergeSpans,
  type Block,
  type Span,
} from '../../domain/inventory/cidr.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { blockOf } from '../../domain/inventory/prefixTree.ts';
import { placeOf } from '../../domain/inventory/standing.ts';
import { vrfKeyOf } from '../../domain/inventory/planSnapshot.ts';
import { covers } from '../../domain/access/scope.ts';
import type { Access } from '../access.ts';
import type { InventoryRecords } from './records.ts';
import { refusalOf } from './conflictError.ts';
import type { InventoryWrites } from './writes.ts';

export type { Usage } from '../../db/inventory/usage.ts';

export type AddressSpace = ReturnType<typeof createAddressSpace>;

export type Allocation = { kind: 'address' | 'prefix'; prefixLength?: number; record?: object };

/** A child in the tree; its id is null where the caller may not read it. */
export type TreeChild = { cidr: string; id: string | null; row: Row | null; usage: Usage };

type Deps = { db: Knex; access: Access; records: InventoryRecords; writes: InventoryWrites };

const EVERYWHERE = { kind: 'everywhere' } as const;
const { prefixes } = RESOURCES;

/** What prefixes hold, and what of them is free. */
export function createAddressSpace({ db, access, records, writes }: Deps) {
  /** What is asked for, once the prefix is known: the resource, the length of the block, the field that it goes into. */
  function wanted(prefix: Row, whole: Block, { kind, prefixLength }: Allocation) {
    const bits = bitsOf(whole.family);
    if (kind === 'address') {
      if (prefixLength !== undefined)
        throw invalidField('body', '/prefixLength', 'unknown_field', 'is for prefixes');
      if (prefix.allocationMode !== 'pool')
        throw new AppError(
          'allocation_refused',
          `The prefix has the allocation mode ${String(prefix.allocationMode)}; next addresses come from prefixes with the mode pool.`,
        );
      return { resource: 'ip-addresses' as const, length: bits };
    }
    if (prefixLength === undefined)
      throw invalidField('body', '/prefixLength', 'required', 'is required for a prefix');
    if (prefixLength <= whole.length || prefixLength > bits) {
      throw invalidField(
        'body',
        '/prefixLength',
        'range',
        `must be from ${whole.length + 1} to ${bits} in ${formatBlock(whole)}`,
      );
    }
    if (prefix.allocationMode === 'dynamic')
      throw new AppError('allocation_refused', 'The prefix is owned by DHCP.');
    return { resource: 'prefixes' as const, length: prefixLength };
  }

  /** The free networks of one page: what neither a child nor a range nor an address of the prefix takes. */
  async function free(
    prefix: Row,
    children: readonly Row[],
    after: string | undefined,
    isLast: boolean,
  ): Promise<{ free: string[]; exact: boolean }> {
    const page = pageOf(blockOf(prefix), children.map(blockOf), after, isLast);
    if (!page) return { free: [], exact: true };
    const { spans, exact } = await listTaken(db, vrfKeyOf(prefix), page);
    return {
      free: gapsIn(page, mergeSpans([...children.map(blockOf), ...spans]))
        .flatMap(blocksOf)
        .map(formatBlock),
      exact,
    };
  }

  return {
    /**
     * Makes the lowest free address or child prefix. However many ask at once, each gets another one. Errors: those of
     * a write, `not_found`, `no_room`, `allocation_refused`.
     */
    async allocate(
      caller: Caller,
      prefixId: string,
      asked: Allocation,
    ): Promise<{ resource: 'prefixes' | 'ip-addresses'; row: Row }> {
      const known = await records.read(caller, 'prefixes', prefixId);
      for (const field of ['address', 'cidr', 'vrfId', 'parentPrefixId']) {
        if (asked.record && Object.hasOwn(asked.record, field))
          throw invalidField('body', `/record/${field}`, 'unknown_field', 'is what is asked for');
      }
      await access.require(caller, 'inventory:write', placeOf(prefixes, known));
      let found: { prefix: Row; block: Block } | undefined;
      // The search is in the transaction that writes: whoever asks next sees what this one took.
      const search = async (trx: Knex) => {
        await prepareToWrite(trx, { vrfs: new Set([vrfKeyOf(known)]), definitions: false });
        const prefix = await readRecord(trx, 'prefixes', prefixId, true);
        if (!prefix || vrfKeyOf(prefix) !== vrfKeyOf(known)) throw notFound('prefix', prefixId);
        const whole = blockOf(prefix);
        const { resource, length } = wanted(prefix, whole, asked);
        const block = await findFree(trx, prefix, whole, length);
        if (!block)
          throw new AppError(
            'no_room',
            `${formatBlock(whole)} has no room for ${asked.kind === 'address' ? 'another address' : `a /${length}`}.`,
          );
        found = { prefix, block };
        const text =
          resource === 'prefixes' ? formatBlock(block) : formatHost(block.family, block.first);
        const place = {
          vrfId: prefix.vrfId,
          ...(resource === 'prefixes'
            ? { cidr: text, parentPrefixId: prefix.id }
            : { address: text }),
        };
        return [
          {
            resource,
            operation: 'create',
            record: { tenantId: prefix.tenantId, ...asked.record, ...place },
          },
        ];
      };
      const { planned, changes } = await writes.apply(caller, search, 'all', {
        refuse: (plans) => refusalOf(plans, false),
        along: async (_, trx) => void (found && (await keepHint(trx, found.prefix, found.block))),
      });
      const row = changes.find(({ id }) => id === planned[0]?.subject?.id)?.after;
      if (!row) throw new Error('An allocation ended without its record');
      return { resource: asked.kind === 'address' ? 'ip-addresses' : 'prefixes', row };
    },

    /** How full a prefix is. Error: `not_found`. */
    async usage(caller: Caller, prefixId: string): Promise<Usage> {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      return usageOf(await readUsage(db, [prefix.id]), prefix.id);
    },

    /**
     * A prefix with what is right below it, in order, and the free networks between, page by page: `after` is the
     * network behind which it goes on. Error: `not_found`.
     */
    async tree(
      caller: Caller,
      prefixId: string,
      { after, limit }: { after: { value: string; id: string } | undefined; limit: number },
    ) {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      const scope = access.scope(caller, 'inventory:read');
      const { items, next } = await listRecords(
        db,
        prefixes,
        EVERYWHERE,
        { fields: { parentPrefixId: prefix.id } },
        { sort: { field: 'cidr', descending: false }, after, limit },
      );
      const usages = await readUsage(db, [prefix.id, ...items.map(({ id }) => id)]);
      const children = items.map((row): TreeChild => {
        const seen = covers(scope, placeOf(prefixes, row));
        return {
          cidr: String(row.cidr),
          id: seen ? row.id : null,
          row: seen ? row : null,
          usage: usageOf(usages, row.id),
        };
      });
      return {
        prefix,
        usage: usageOf(usages, prefix.id),
        children,
        ...(await free(prefix, items, after?.value, next === null)),
        next,
      };
    },
  };
}

function usageOf(usages: ReadonlyMap<string, Usage>, id: string): Usage {
  const usage = usages.get(id);
  if (!usage) throw notFound('prefix', id);
  return usage;
}

/** The part of a prefix that one page of its children is about: from the child before it to its last, or to the end. */
function pageOf(
  whole: Block,
  children: readonly Block[],
  after: string | undefined,
  isLast: boolean,
): Span | null {
  const before = after === undefined ? undefined : blockOf({ id: '', version: 0, cidr: after });
  const first = before ? before.last + 1n : whole.first;
  const last = isLast ? whole.last : (children.at(-1)?.last ?? whole.last);
  return first > last ? null : { family: whole.family, first, last };
}
