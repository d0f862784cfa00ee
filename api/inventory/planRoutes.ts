import { Type } from 'typebox';
import type { Caller } from '../../domain/shared/caller.ts';
import { recordSchema, type Row } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { columnKindOf } from '../../domain/inventory/lists.ts';
import {
  MAX_CONTENTS,
  MAX_FREE,
  MAX_MAPPED,
  type AddressSpace,
  type TreeChild,
} from '../../services/inventory/addressSpace.ts';
import type { BatchReport, InventoryBatches } from '../../services/inventory/batches.ts';
import type { InventoryRecords } from '../../services/inventory/records.ts';
import type { InventoryQuestions } from '../../services/inventory/questions.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { created, ok, type HttpResponse } from '../http/response.ts';
import { pageQuery } from '../http/pagination.ts';
import { decodeKey, encodeKey } from '../http/listCursor.ts';
import { RECORD_ID } from './lists.ts';
import { readMutations } from './mutations.ts';
import { route, type Route } from '../http/route.ts';
import { usageView } from './presenter.ts';
import { validationAnswer } from './validationAnswer.ts';
import { closed, Nullable, Reference } from '../http/schemas.ts';
import {
  AllocateRequest,
  BulkRequest,
  BulkResult,
  UsageView,
  ValidationRequest,
  ValidationResult,
  ValidationResults,
} from './schemas.ts';

const tag = 'Inventory';
const PrefixParams = Type.Object({ id: Type.String({ minLength: 1, maxLength: 100 }) }, closed);
const BY_NETWORK = { ...columnKindOf(RESOURCES.prefixes, 'cidr'), descending: false };
const MapQuery = Type.Object(
  {
    within: Type.Optional(
      Type.String({
        maxLength: 50,
        description: 'A network of the prefix: the map of this part. Default: the whole prefix.',
      }),
    ),
  },
  closed,
);
const network = (description: string) => Type.Optional(Type.String({ maxLength: 50, description }));
const TreeQuery = Type.Object(
  {
    ...pageQuery,
    from: network('A network in the prefix: the page starts there. Not together with `cursor`.'),
    before: network(
      'A network in the prefix: the last children before it, still in order. Not together with `cursor`. A page with ' +
        'fewer than `limit` starts with the first child.',
    ),
  },
  closed,
);
const ContentsQuery = Type.Object(
  { within: network('A network of the prefix: what is in this part. Default: the whole prefix.') },
  closed,
);

const Prefix = recordSchema(RESOURCES.prefixes);
const AllocatedRecord = Type.Union([Prefix, recordSchema(RESOURCES['ip-addresses'])], {
  title: 'AllocatedRecord',
});
const TreeView = Type.Object(
  {
    prefix: Prefix,
    usage: UsageView,
    children: Type.Array(
      Type.Object(
        {
          cidr: Type.String(),
          id: Nullable(Type.String({ description: 'null when you may not read the prefix.' })),
          status: Nullable(Type.String()),
          usage: UsageView,
        },
        { title: 'PrefixTreeNode', ...closed },
      ),
    ),
    free: Type.Array(Type.String(), {
      description: 'The free networks on this page, as few as possible.',
    }),
    exact: Type.Boolean({
      description:
        'False when the page has more than 4,096 addresses or ranges: free may then include some of them.',
    }),
    complete: Type.Boolean({
      description: `False when the page has more than ${MAX_FREE.toLocaleString('en')} free networks: the first are listed.`,
    }),
    nextCursor: Nullable(Type.String()),
  },
  { title: 'PrefixTree', ...closed },
);

const MapView = Type.Object(
  {
    network: Type.String({ description: 'The network that the map shows.' }),
    prefixes: Type.Array(
      Type.Object(
        {
          cidr: Type.String(),
          id: Nullable(Type.String({ description: 'null when you may not read the prefix.' })),
          status: Nullable(Type.String()),
        },
        { title: 'MappedPrefix', ...closed },
      ),
      {
        maxItems: MAX_MAPPED,
        description: 'Prefixes of all levels: the largest first, equally large ones by network.',
      },
    ),
    complete: Type.Boolean({
      description: `False when the network has more than ${MAX_MAPPED.toLocaleString('en')} prefixes: then the smallest are missing. A smaller \`within\` has them.`,
    }),
  },
  { title: 'PrefixMap', ...closed },
);

const ContentsView = Type.Object(
  {
    network: Type.String({ description: 'The network whose contents these are.' }),
    addresses: Type.Array(
      Type.Object(
        {
          address: Type.String(),
          id: Nullable(
            Type.String({
              description: 'null when you may not read it; then the fields below are null, too.',
            }),
          ),
          status: Nullable(Type.String()),
          dnsName: Nullable(Type.String()),
          interfaceId: Nullable(Reference('interfaces')),
          deviceId: Nullable(Reference('devices')),
        },
        { title: 'AddressInPrefix', ...closed },
      ),
      { maxItems: MAX_CONTENTS },
    ),
    ranges: Type.Array(
      Type.Object(
        {
          start: Type.String(),
          end: Type.String(),
          id: Nullable(Type.String({ description: 'null when you may not read it.' })),
          status: Nullable(Type.String()),
        },
        { title: 'RangeInPrefix', ...closed },
      ),
      { maxItems: MAX_CONTENTS, description: 'Also those that begin before or end after it.' },
    ),
    complete: Type.Boolean({
      description: `False when there are more than ${MAX_CONTENTS.toLocaleString('en')} of a kind: a smaller \`within\` has them.`,
    }),
  },
  { title: 'PrefixContents', ...closed },
);

const ValidationAnswer = Type.Union([ValidationResult, ValidationResults], {
  title: 'ValidationAnswer',
});

const VALIDATION_EXAMPLE = {
  resource: 'prefixes',
  operation: 'create',
  record: { cidr: '10.1.0.0/16', status: 'active' },
};

type Deps = {
  questions: InventoryQuestions;
  batches: InventoryBatches;
  addressSpace: AddressSpace;
  records: InventoryRecords;
};

/** Validation, batches, and the address space of prefixes. */
export function inventoryPlanRoutes({ questions, batches, addressSpace, records }: Deps): Route[] {
  const createdResponse = ({ resource, row }: { resource: string; row: Row }): HttpResponse =>
    created(`/api/inventory/${resource}/${row.id}`, row);
  const kindOf = (id: string) => (id.startsWith('pfx_') ? 'prefixes' : 'ip-addresses');

  return [
    route({
      method: 'POST',
      path: '/api/validation/inventory',
      tag,
      operationId: 'validateInventoryMutation',
      permission: ['inventory:read', 'inventory:write'],
      allowsReadOnly: true,
      summary: 'Validate one mutation, or several in order, without storing anything',
      body: ValidationRequest,
      example: VALIDATION_EXAMPLE,
      bodyCheckedInHandler: true,
      expensiveRead: { hasOwnSlots: true },
      responses: {
        200: ValidationAnswer,
        400: ValidationAnswer,
        409: ValidationAnswer,
      },
      handle: async ({ caller, body, signal }) => validate(questions, caller, body, signal),
    }),
    route({
      method: 'POST',
      path: '/api/inventory/bulk',
      tag,
      operationId: 'applyInventoryMutations',
      permission: 'inventory:write',
      summary: 'Apply many mutations in one transaction: all, or the valid ones',
      body: BulkRequest,
      example: { mode: 'all', mutations: [VALIDATION_EXAMPLE] },
      responses: { 200: BulkResult },
      replayResponse: async (caller, id) => ok(batchView(await batches.recover(caller, id))),
      handle: async ({ caller, body, signal }) =>
        ok(batchView(await batches.apply(caller, body.mutations, body.mode, signal))),
    }),
    route({
      method: 'POST',
      path: '/api/inventory/prefixes/{id}/allocate',
      tag,
      operationId: 'allocateFromPrefix',
      permission: 'inventory:write',
      summary: 'Create the lowest free address or child prefix',
      params: PrefixParams,
      body: AllocateRequest,
      example: { kind: 'address', record: { dnsName: 'leaf1.example.net' } },
      responses: { 201: AllocatedRecord },
      replayResponse: async (caller, id) =>
        createdResponse({
          resource: kindOf(id),
          row: await records.read(caller, kindOf(id), id, 'inventory:write'),
        }),
      handle: async ({ caller, params, body, signal }) =>
        createdResponse(await addressSpace.allocate(caller, params.id, body, signal)),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/prefixes/{id}/usage',
      tag,
      operationId: 'getPrefixUsage',
      permission: 'inventory:read',
      summary: 'Get the usage of a prefix',
      params: PrefixParams,
      responses: { 200: UsageView },
      handle: async ({ caller, params }) =>
        ok(usageView(await addressSpace.usage(caller, params.id))),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/prefixes/{id}/tree',
      tag,
      operationId: 'getPrefixTree',
      permission: 'inventory:read',
      summary: 'Get the children of a prefix and the free networks between them',
      params: PrefixParams,
      query: TreeQuery,
      expensiveRead: {},
      responses: { 200: TreeView },
      handle: async ({ caller, params, query, signal }) => {
        const list = [`inventory:tree:${params.id}`];
        const { cursor, limit, from, before } = query;
        if ([cursor, from, before].filter((each) => each !== undefined).length > 1)
          throw invalidField('query', '', 'exclusive', 'has only one of cursor, from and before');
        const key = decodeKey(list, cursor, RECORD_ID, BY_NETWORK);
        const { prefix, usage, children, free, exact, complete, next } = await addressSpace.tree(
          caller,
          params.id,
          {
            limit,
            after: key && { id: key.id, value: String(key.value) },
            ...(from !== undefined && { from }),
            ...(before !== undefined && { before }),
          },
          signal,
        );
        return ok({
          prefix,
          usage: usageView(usage),
          children: children.map(childView),
          free,
          exact,
          complete,
          nextCursor: next && encodeKey(list, next),
        });
      },
    }),
    route({
      method: 'GET',
      path: '/api/inventory/prefixes/{id}/map',
      tag,
      operationId: 'getPrefixMap',
      permission: 'inventory:read',
      summary: 'Get the prefixes of all levels in a prefix',
      params: PrefixParams,
      query: MapQuery,
      expensiveRead: {},
      responses: { 200: MapView },
      handle: async ({ caller, params, query }) =>
        ok(await addressSpace.map(caller, params.id, query.within)),
    }),
    route({
      method: 'GET',
      path: '/api/inventory/prefixes/{id}/contents',
      tag,
      operationId: 'getPrefixContents',
      permission: 'inventory:read',
      summary: 'Get the addresses and ranges in a prefix',
      params: PrefixParams,
      query: ContentsQuery,
      expensiveRead: {},
      responses: { 200: ContentsView },
      handle: async ({ caller, params, query }) =>
        ok(await addressSpace.contents(caller, params.id, query.within)),
    }),
  ];
}

const childView = ({ cidr, id, row, usage }: TreeChild) => ({
  cidr,
  id,
  status: row ? String(row.status) : null,
  usage: usageView(usage),
});

const batchView = ({ results }: BatchReport) => {
  const counts = { created: 0, updated: 0, unchanged: 0, deleted: 0, invalid: 0, conflict: 0 };
  for (const { outcome } of results) counts[outcome]++;
  return { counts, results };
};

async function validate(
  questions: InventoryQuestions,
  caller: Caller,
  body: unknown,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { mutations, isBatch } = readMutations(body, '');
  const { planned } = await questions.validate(caller, mutations, signal);
  return validationAnswer(caller.actorId, planned, { isBatch, signal });
}
