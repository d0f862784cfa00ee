import { findResourceScope } from '../../db/access/access.ts';
import type { Knex } from '../../db/core/knex.ts';
import { findFreeBlock, listOccupied, saveFreeHint } from '../../db/inventory/freeSpace.ts';
import { prepareToWrite, spaceName } from '../../db/inventory/locks.ts';
import { listRecords, readRecord } from '../../db/inventory/records.ts';
import { readUsage, type Usage } from '../../db/inventory/usage.ts';
import {
  addressBits,
  coveringBlocks,
  formatBlock,
  formatHost,
  gapsIn,
  isBlock,
  mergeSpans,
  parseBlock,
  type Block,
  type Span,
} from '../../domain/inventory/cidr.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { isReadable, resourceScopesOf, withSiteOf } from '../../domain/inventory/ownership.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import { vrfKeyOf } from '../../domain/inventory/planSnapshot.ts';
import { blockOf } from '../../domain/inventory/prefixTree.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import { conflictError } from './conflictError.ts';
import type { InventoryRecords } from './records.ts';
import type { InventoryWrites } from './writes.ts';

export type { Usage } from '../../db/inventory/usage.ts';

export type AddressSpace = ReturnType<typeof createAddressSpace>;

/** A request for a free address or child prefix. `record` has further fields of the new record. */
export type Allocation = { kind: 'address' | 'prefix'; prefixLength?: number; record?: object };

/** A child in a tree. Its id and row are null when the caller may not read it. */
export type TreeChild = { cidr: string; id: string | null; row: Row | null; usage: Usage };

type Deps = {
  db: Knex;
  access: Access;
  records: InventoryRecords;
  writes: InventoryWrites;
  slots: { allocations: Slots };
};

/** What an allocation creates: the resource, and the prefix length of the block. */
type Target = { resource: 'prefixes' | 'ip-addresses'; length: number };

const EVERYWHERE = { kind: 'everywhere' } as const;
const { prefixes } = RESOURCES;

/** The fields that an allocation sets itself. */
const ALLOCATED_FIELDS = ['address', 'cidr', 'vrfId', 'parentPrefixId'];

/** The contents and the free space of prefixes. */
export function createAddressSpace({ db, access, records, writes, slots }: Deps) {
  /** Checks that a caller may write to a prefix. A site of another tenant is no right there. */
  async function requireWrite(caller: Caller, prefix: Row): Promise<void> {
    for (const scope of resourceScopesOf(prefixes, prefix)) {
      const { siteId = null } = scope;
      const site = siteId && (await findResourceScope(db, { siteId, deviceId: undefined }));
      await access.require(
        caller,
        'inventory:write',
        site ? withSiteOf(site.resourceScope.tenantId, scope) : scope,
      );
    }
  }

  /** Lists the free networks of one page of a tree: outside its children, ranges and addresses. */
  async function freeNetworks(
    prefix: Row,
    children: readonly Row[],
    after: string | undefined,
    isLast: boolean,
  ): Promise<{ free: string[]; exact: boolean }> {
    const blocks = children.map(blockOf);
    const page = pageSpan(blockOf(prefix), blocks, after, isLast);
    if (!page) return { free: [], exact: true };
    const { spans, exact } = await listOccupied(db, prefix.id, page);
    const gaps = gapsIn(page, mergeSpans([...blocks, ...spans]));
    return { free: gaps.flatMap(coveringBlocks).map(formatBlock), exact };
  }

  return {
    /**
     * Creates the lowest free address, or the lowest free child prefix of a length. Concurrent
     * requests get different results. Errors: those of a write, `not_found`, `prefix_exhausted`,
     * `allocation_refused`; for a prefix `too_many_requests` and, before anything is written, the
     * reason of `signal`.
     */
    async allocate(
      caller: Caller,
      prefixId: string,
      request: Allocation,
      signal: AbortSignal,
    ): Promise<{ resource: 'prefixes' | 'ip-addresses'; row: Row }> {
      const known = await records.read(caller, 'prefixes', prefixId, 'inventory:write');
      for (const field of ALLOCATED_FIELDS) {
        if (request.record && Object.hasOwn(request.record, field))
          throw invalidField(
            'body',
            `/record/${field}`,
            'unknown_field',
            'is set by the allocation',
          );
      }
      await requireWrite(caller, known);
      let found: { prefix: Row; block: Block } | undefined;
      // The search runs in the writing transaction and under the lock of the space, so that the
      // next allocation sees this one.
      const search = async (trx: Knex): Promise<Mutation[]> => {
        await prepareToWrite(trx, {
          spaces: new Set([spaceName(vrfKeyOf(known), String(known.tenantId))]),
          forPlatform: access.holds(caller.rights, 'inventory:write', { tenantId: PLATFORM }),
          definitions: { shared: new Set(), exclusive: new Set() },
          isBrief: false,
        });
        const prefix = await readRecord(trx, 'prefixes', prefixId, true);
        const isMoved =
          prefix && (vrfKeyOf(prefix) !== vrfKeyOf(known) || prefix.tenantId !== known.tenantId);
        if (!prefix || isMoved) throw notFound('prefix', prefixId);
        const whole = blockOf(prefix);
        const target = targetOf(prefix, whole, request);
        const block = await findFreeBlock(trx, prefix, whole, target.length);
        if (!block) throw prefixExhausted(whole, target);
        found = { prefix, block };
        return [allocationMutation(prefix, target, block, request)];
      };
      const write = () =>
        writes.apply(caller, search, 'all', {
          toError: (plans) => conflictError(plans, false),
          beforeCommit: async (_, trx) =>
            void (found && (await saveFreeHint(trx, found.prefix, found.block))),
        });
      const { planned, changes } =
        request.kind === 'prefix'
          ? await slots.allocations.run(caller, signal, write)
          : await write();
      const created = changes.find(({ id }) => id === planned[0]?.subject?.id);
      return {
        resource: request.kind === 'address' ? 'ip-addresses' : 'prefixes',
        row: assertDefined(created?.after, 'allocated record'),
      };
    },

    /** Reads the usage of a prefix. Error: `not_found`. */
    async usage(caller: Caller, prefixId: string): Promise<Usage> {
      const prefix = await records.read(caller, 'prefixes', prefixId);
      return usageOf(await readUsage(db, [prefix.id]), prefix.id);
    },

    /**
     * Reads a prefix, one page of its children in order, and the free networks between them. A page
     * continues after the network `after`. Error: `not_found`.
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
        const canRead = isReadable(scope, prefixes, row);
        return {
          cidr: String(row.cidr),
          id: canRead ? row.id : null,
          row: canRead ? row : null,
          usage: usageOf(usages, row.id),
        };
      });
      return {
        prefix,
        usage: usageOf(usages, prefix.id),
        children,
        ...(await freeNetworks(prefix, items, after?.value, next === null)),
        next,
      };
    },
  };
}

/** Validates a request against its prefix. Errors: `invalid_request`, `allocation_refused`. */
function targetOf(prefix: Row, whole: Block, { kind, prefixLength }: Allocation): Target {
  const bits = addressBits(whole.family);
  const invalidLength = (code: string, message: string) =>
    invalidField('body', '/prefixLength', code, message);
  if (kind === 'address') {
    if (prefixLength !== undefined) throw invalidLength('unknown_field', 'is for prefixes');
    if (prefix.allocationMode !== 'pool')
      throw new AppError(
        'allocation_refused',
        `Addresses are allocated from prefixes with the mode pool; this one is ${String(prefix.allocationMode)}.`,
      );
    return { resource: 'ip-addresses', length: bits };
  }
  if (prefixLength === undefined) throw invalidLength('required', 'is required for a prefix');
  if (prefixLength <= whole.length || prefixLength > bits) {
    const message = `must be from ${whole.length + 1} to ${bits} in ${formatBlock(whole)}`;
    throw invalidLength('range', message);
  }
  if (prefix.allocationMode === 'dynamic')
    throw new AppError('allocation_refused', 'DHCP manages the prefix.');
  return { resource: 'prefixes', length: prefixLength };
}

function prefixExhausted(whole: Block, { resource, length }: Target): AppError {
  const wanted = resource === 'prefixes' ? `/${length}` : 'address';
  return new AppError('prefix_exhausted', `${formatBlock(whole)} has no free ${wanted}.`);
}

function allocationMutation(
  prefix: Row,
  { resource }: Target,
  block: Block,
  request: Allocation,
): Mutation {
  const allocated =
    resource === 'prefixes'
      ? { cidr: formatBlock(block), parentPrefixId: prefix.id }
      : { address: addressIn(prefix, block) };
  const record = {
    tenantId: prefix.tenantId,
    ...request.record,
    vrfId: prefix.vrfId,
    ...allocated,
  };
  return { resource, operation: 'create', record };
}

/** An address with the length of its prefix, as an interface is configured with it. */
const addressIn = (prefix: Row, { family, first }: Block): string =>
  `${formatHost(family, first)}/${blockOf(prefix).length}`;

function usageOf(usages: ReadonlyMap<string, Usage>, id: string): Usage {
  const usage = usages.get(id);
  if (!usage) throw notFound('prefix', id);
  return usage;
}

/**
 * The part of a prefix that one page of its children covers: from the end of the network `after`
 * to the end of the last child or, on the last page, of the prefix. Null when it is empty.
 */
function pageSpan(
  whole: Block,
  children: readonly Block[],
  after: string | undefined,
  isLast: boolean,
): Span | null {
  const previous = after === undefined ? undefined : parseBlock(after);
  const first = previous && isBlock(previous) ? previous.last + 1n : whole.first;
  const last = isLast ? whole.last : (children.at(-1)?.last ?? whole.last);
  return first > last ? null : { family: whole.family, first, last };
}
