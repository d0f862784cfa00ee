import { findResourceScope } from '../../db/access/access.ts';
import type { Work } from '../../db/core/commit.ts';
import type { Knex } from '../../db/core/knex.ts';
import { findFreeBlocks, findPosition, freeHintChange } from '../../db/inventory/freeSpace.ts';
import { prepareToWrite, spaceName } from '../../db/inventory/locks.ts';
import { readRecord } from '../../db/inventory/records.ts';
import { PLATFORM } from '../../domain/access/scope.ts';
import { addressBits, formatBlock, formatHost, type Block } from '../../domain/inventory/cidr.ts';
import { isSame } from '../../domain/inventory/difference.ts';
import { resourceScopesOf, withSiteOf } from '../../domain/inventory/ownership.ts';
import type { Mutation } from '../../domain/inventory/planning.ts';
import { vrfKeyOf } from '../../domain/inventory/planSnapshot.ts';
import { blockOf } from '../../domain/inventory/prefixTree.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { assertDefined } from '../../domain/shared/assert.ts';
import type { Caller } from '../../domain/shared/caller.ts';
import { AppError, invalidField, notFound } from '../../domain/shared/errors.ts';
import { createCombiner } from '../../platform/combiner.ts';
import type { Slots } from '../../platform/slots.ts';
import type { Access } from '../access/access.ts';
import { COMBINED_CREATES } from './combinedCreates.ts';
import { conflictError, inRecord } from './conflictError.ts';
import type { InventoryRecords } from './records.ts';
import type { InventoryWrites } from './writes.ts';

type Deps = {
  db: Knex;
  access: Access;
  records: InventoryRecords;
  writes: InventoryWrites;
  slots: { allocations: Slots };
};

/** A request for a free address or child prefix. `record` has further fields of the new record. */
export type Allocation = { kind: 'address' | 'prefix'; prefixLength?: number; record?: object };

/**
 * An allocation that has passed the checks which need no lock, with the prefix as it was then. The record
 * of the request has its tenant.
 */
type Item = { caller: Caller; known: Row; request: Allocation; signal: AbortSignal };

/** The last block that allocations from a prefix take. */
type FoundBlock = { prefix: Row; block: Block; isAddress: boolean };

/** What an allocation creates: the resource, and the prefix length of the block. */
type Target = { resource: 'prefixes' | 'ip-addresses'; length: number };

const { prefixes } = RESOURCES;

/** The fields that an allocation sets itself. */
const ALLOCATED_FIELDS = ['address', 'cidr', 'vrfId', 'parentPrefixId'];

/** Creates the function that allocates the free space of prefixes. */
export function createAllocate({ db, access, records, writes, slots }: Deps) {
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

  /**
   * The fields of a new record with its tenant: that of the prefix, unless the request names another one. In a
   * table that tenants share, only prefixes of the platform have space for others. Error: `invalid_request`.
   */
  async function withTenant(prefix: Row, record: object): Promise<object> {
    const { tenantId, ...fields } = record as { tenantId?: unknown };
    const own = { ...fields, tenantId: prefix.tenantId };
    if (tenantId === undefined || tenantId === null || tenantId === prefix.tenantId) return own;
    if (prefix.tenantId === PLATFORM) return record;
    const position = await findPosition(db, prefix.id);
    if (position?.shared === null) return record;
    const tenant = await readRecord(db, 'tenants', String(prefix.tenantId));
    if (tenant && isSame(tenantId, { name: tenant.name })) return own;
    throw invalidField(
      'body',
      '/record/tenantId',
      'parent_tenant',
      `must be ${String(prefix.tenantId)}, the tenant of the prefix: each has its own address space here`,
    );
  }

  /**
   * Locks the space of a prefix and finds free blocks for allocations that differ only in their
   * callers and records; `found` gets the last one. Errors: `not_found`, `prefix_exhausted`,
   * `allocation_refused`, `invalid_request`.
   */
  async function findMutations(
    trx: Knex,
    [first, ...others]: readonly [Item, ...Item[]],
    found: FoundBlock[],
  ): Promise<Mutation[]> {
    const { caller, known, request } = first;
    await prepareToWrite(trx, {
      spaces: new Set([spaceName(vrfKeyOf(known), String(known.tenantId))]),
      forPlatform: access.holds(caller.rights, 'inventory:write', { tenantId: PLATFORM }),
      definitions: { shared: new Set(), exclusive: new Set() },
      isBrief: false,
    });
    const prefix = await readRecord(trx, 'prefixes', known.id, true);
    const isMoved =
      prefix && (vrfKeyOf(prefix) !== vrfKeyOf(known) || prefix.tenantId !== known.tenantId);
    if (!prefix || isMoved) throw notFound('prefix', known.id);
    const whole = blockOf(prefix);
    const target = targetOf(prefix, whole, request);
    const items = [first, ...others];
    const isAddress = target.resource === 'ip-addresses';
    const wanted = { length: target.length, isAddress };
    const blocks = await findFreeBlocks(trx, prefix, whole, wanted, items.length);
    const last = blocks.at(-1);
    if (!last || blocks.length < items.length) throw prefixExhausted(whole, target);
    // A transaction that is tried again finds other blocks.
    found.splice(0, 1, { prefix, block: last, isAddress });
    return blocks.flatMap((block, i) => {
      const item = items[i];
      return item ? [allocationMutation(prefix, target, block, item.request)] : [];
    });
  }

  /** Runs the write of allocations, those of prefixes in a slot. */
  const inSlot = <T>({ caller, request, signal }: Item, write: () => Promise<T>): Promise<T> =>
    request.kind === 'prefix' ? slots.allocations.run(caller, signal, write) : write();

  const saveHints = (work: Work, found: readonly FoundBlock[]): Promise<void> => {
    for (const { prefix, block, isAddress } of found)
      work.change(freeHintChange(prefix, block, isAddress));
    return Promise.resolve();
  };

  /**
   * Makes one allocation. The search runs in the writing transaction and under the lock of the
   * space, so that the next allocation sees this one.
   */
  async function allocateAlone(item: Item): Promise<Row> {
    const found: FoundBlock[] = [];
    const { planned, changes } = await inSlot(item, () =>
      writes.apply(item.caller, (trx) => findMutations(trx, [item], found), 'all', {
        toError: (plans) => conflictError(plans, inRecord),
        beforeCommit: (work) => saveHints(work, found),
        warns: false,
      }),
    );
    const created = changes.find(({ id }) => id === planned[0]?.subject?.id);
    return assertDefined(created?.after, 'allocated record');
  }

  /** Makes allocations in one transaction, or none: a block that one leaves out would be below the hint. */
  async function allocateTogether(items: readonly Item[]): Promise<readonly (Row | null)[]> {
    const [first, ...others] = items;
    const none = items.map(() => null);
    if (!first) return none;
    const found: FoundBlock[] = [];
    let isStarted = false;
    try {
      return await inSlot(first, async () => {
        isStarted = true;
        // While they waited for the slot, too.
        if (items.some(({ signal }) => signal.aborted)) return none;
        return writes.createTogether(
          items.map(({ caller }) => caller),
          (trx) => findMutations(trx, [first, ...others], found),
          { isAllOrNone: true, beforeCommit: (work) => saveHints(work, found) },
        );
      });
    } catch (error) {
      // Without a slot, each waits for its own.
      if (isStarted) throw error;
      return none;
    }
  }

  const combine = createCombiner<Item, Row>({ ...COMBINED_CREATES, together: allocateTogether });

  /**
   * Creates the lowest free address, or the lowest free child prefix of a length. Concurrent
   * requests get different results. Errors: those of a write, `not_found`, `prefix_exhausted`,
   * `allocation_refused`; for a prefix `too_many_requests` and, before anything is written, the
   * reason of `signal`.
   */
  return async function allocate(
    caller: Caller,
    prefixId: string,
    request: Allocation,
    signal: AbortSignal,
  ): Promise<{ resource: 'prefixes' | 'ip-addresses'; row: Row }> {
    const known = await records.read(caller, 'prefixes', prefixId, 'inventory:write');
    for (const field of ALLOCATED_FIELDS) {
      if (request.record && Object.hasOwn(request.record, field))
        throw invalidField('body', `/record/${field}`, 'unknown_field', 'is set by the allocation');
    }
    await requireWrite(caller, known);
    const record = await withTenant(known, request.record ?? {});
    const item = { caller, known, request: { ...request, record }, signal };
    const same = [prefixId, vrfKeyOf(known), known.tenantId, request.kind, request.prefixLength];
    // Allocations from one prefix wait for each other's commits: concurrent ones share one.
    const row = await combine(caller.rights, [...same, caller.tenantId].join(' '), item, () =>
      allocateAlone(item),
    );
    return { resource: request.kind === 'address' ? 'ip-addresses' : 'prefixes', row };
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
  const record = { ...request.record, vrfId: prefix.vrfId, ...allocated };
  return { resource, operation: 'create', record };
}

/** An address with the length of its prefix, as an interface is configured with it. */
const addressIn = (prefix: Row, { family, first }: Block): string =>
  `${formatHost(family, first)}/${blockOf(prefix).length}`;
