import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { recordSchema, type Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { blockOf } from '../../domain/inventory/prefixTree.ts';
import type { AddressSpace, TreeChild } from '../../services/inventory/addressSpace.ts';
import type { BulkReport, InventoryBulk } from '../../services/inventory/batches.ts';
import type { InventoryRecords } from '../../services/inventory/records.ts';
import type { InventoryWrites } from '../../services/inventory/writes.ts';
import { created, ok, type Answer } from '../kit/answer.ts';
import { etagOf } from '../kit/etag.ts';
import { pageQuery } from '../http/pagination.ts';
import { decodeRecordKey, encodeRecordKey } from './recordCursor.ts';
import { readMutations } from './mutations.ts';
import { route, type Route } from '../kit/route.ts';
import { usageView, validationView } from './presenter.ts';
import { Nullable } from '../http/schemas.ts';
import {
  AllocateRequest,
  BulkRequest,
  BulkResult,
  UsageView,
  ValidationRequest,
  ValidationResult,
  ValidationResults,
} from './schemas.ts';

const area = 'Inventory';
const closed = { additionalProperties: false };
const OnePrefix = Type.Object({ id: Type.String({ minLength: 1, maxLength: 100 }) }, closed);
const TreeQuery = Type.Object(pageQuery, closed);

const Prefix = recordSchema(RESOURCES.prefixes);
const TreeView = Type.Object(
  {
    prefix: Prefix,
    usage: UsageView,
    children: Type.Array(
      Type.Object(
        {
          cidr: Type.String(),
          id: Nullable(Type.String({ description: 'null where you may not read it.' })),
          status: Nullable(Type.String()),
          usage: UsageView,
        },
        closed,
      ),
    ),
    free: Type.Array(Type.String(), {
      description: 'The free networks on this page, the fewest that there can be.',
    }),
    exact: Type.Boolean({
      description:
        'False where more than 4,096 addresses or ranges lie on this page: free may then hold some of them.',
    }),
    nextCursor: Nullable(Type.String()),
  },
  { title: 'PrefixTree', ...closed },
);

type Deps = {
  writes: InventoryWrites;
  bulk: InventoryBulk;
  space: AddressSpace;
  records: InventoryRecords;
};

/** What would come of a change, many changes at once, and the space in prefixes. */
export function inventoryPlanRoutes({ writes, bulk, space, records }: Deps): Route[] {
  const made = ({ resource, row }: { resource: string; row: Row }): Answer =>
    created(`/api/inventory/${resource}/${row.id}`, row, { etag: etagOf(row.version) });
  const kindOf = (id: string) => (id.startsWith('pfx_') ? 'prefixes' : 'ip-addresses');

  return [
    route({
      method: 'POST',
      path: '/api/validation/inventory',
      area,
      permission: 'inventory:read',
      summary: 'Say what would come of one change or of several in order; nothing is kept',
      body: ValidationRequest,
      bodyCheckedLater: true,
      answers: {
        200: Type.Union([ValidationResult, ValidationResults]),
        400: Type.Union([ValidationResult, ValidationResults]),
        409: Type.Union([ValidationResult, ValidationResults]),
      },
      handle: async ({ caller, body }) => validate(writes, caller, body),
    }),
    route({
      method: 'POST',
      path: '/api/inventory/bulk',
      area,
      permission: 'inventory:write',
      summary: 'Make many changes in one transaction: all of them, or those that are valid',
      body: BulkRequest,
      answers: { 200: BulkResult },
      recover: async (caller, id) => ok(bulkView(await bulk.recover(caller, id))),
      handle: async ({ caller, body }) =>
        ok(bulkView(await bulk.apply(caller, body.mutations, body.mode))),
    }),
    route({
      method: 'POST',
      path: '/api/inventory/prefixes/{id}/allocate',
      area,
      permission: 'inventory:write',
      summary: 'Make the next free address or child prefix',
      params: OnePrefix,
      body: AllocateRequest,
      answers: { 201: Type.Union([Prefix, recordSchema(RESOURCES['ip-addresses'])]) },
      recover: async (caller, id) =>
        made({ resource: kindOf(id), row: await records.read(caller, kindOf(id), id) }),
      handle: async ({ caller, params, body }) =>
        made(await space.allocate(caller, params.id, body)),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/prefixes/{id}/usage',
      area,
      permission: 'inventory:read',
      summary: 'Say how full a prefix is',
      params: OnePrefix,
      answers: { 200: UsageView },
      handle: async ({ caller, params }) => ok(usageView(await space.usage(caller, params.id))),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/prefixes/{id}/tree',
      area,
      permission: 'inventory:read',
      summary: 'Read what lies right below a prefix, and the free networks between',
      params: OnePrefix,
      query: TreeQuery,
      answers: { 200: TreeView },
      handle: async ({ caller, params, query }) => {
        const list = `inventory:tree:${params.id}`;
        const key = decodeRecordKey(list, query.cursor, RESOURCES.prefixes, 'cidr');
        const after = key && { id: key.id, value: String(key.value) };
        if (after) blockOf({ id: '', version: 0, cidr: after.value });
        const { prefix, usage, children, free, exact, next } = await space.tree(caller, params.id, {
          after,
          limit: query.limit,
        });
        return ok({
          prefix,
          usage: usageView(usage),
          children: children.map(childView),
          free,
          exact,
          nextCursor: encodeRecordKey(list, next),
        });
      },
    }),
  ];
}

const childView = ({ cidr, id, row, usage }: TreeChild) => ({
  cidr,
  id,
  status: row ? String(row.status) : null,
  usage: usageView(usage),
});

const bulkView = ({ results }: BulkReport) => {
  const counts = { created: 0, updated: 0, deleted: 0, invalid: 0, conflict: 0 };
  for (const { outcome } of results) counts[outcome]++;
  return { counts, results };
};

async function validate(writes: InventoryWrites, caller: Caller, body: unknown): Promise<Answer> {
  const { mutations, several } = readMutations(body, '');
  const { status, body: answer } = validationView(
    caller.actorId,
    (await writes.rehearse(caller, mutations)).planned,
    several,
  );
  return { status, headers: {}, body: answer };
}
