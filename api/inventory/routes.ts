import { Type } from 'typebox';
import { assertDefined } from '../../domain/shared/assert.ts';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';
import {
  addressBits,
  blockAt,
  formatBlock,
  isBlock,
  parseBlock,
  parseHost,
  type Block,
} from '../../domain/inventory/cidr.ts';
import { differences } from '../../domain/inventory/difference.ts';
import {
  createSchema,
  EVICT,
  recordSchema,
  titleOf,
  updateSchema,
  writableFields,
  type Resource,
  type Row,
} from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { nounOf, withArticle } from '../../domain/shared/nouns.ts';
import type { InventoryRecords, RecordFilterRequest } from '../../services/inventory/records.ts';
import type { InventoryWrites } from '../../services/inventory/writes.ts';
import { created, noContent, ok, type HttpResponse } from '../http/response.ts';
import { expectedVersion } from '../http/etag.ts';
import { paginate, pageQuery } from '../http/pagination.ts';
import { parseTime } from '../http/queryTime.ts';
import { CREATE_EXAMPLES } from './examples.ts';
import { extrasOf, type ExtraSources } from './extras.ts';
import { pluralIdOf } from './pluralIdOf.ts';
import { labelledReferences, listOf } from './lists.ts';
import { route, type Route } from '../http/route.ts';
import { ChangeList } from './schemas.ts';
import { closed, Timestamp } from '../http/schemas.ts';

const tag = 'Inventory';

const RecordParams = Type.Object(
  {
    id: Type.String({
      title: 'RecordId',
      minLength: 1,
      maxLength: 100,
      pattern: '^[\\x21-\\x7e]*$',
      'x-rule': 'must be an id',
    }),
  },
  closed,
);
const PointInTimeQuery = Type.Object({ at: Type.Optional(Timestamp) }, closed);
const NoQuery = Type.Object({}, closed);
const EvictQuery = Type.Object({ evict: Type.Optional(EVICT) }, closed);
const ChangesQuery = Type.Object(pageQuery, closed);

type Deps = {
  records: InventoryRecords;
  writes: InventoryWrites;
  requireIfMatch: boolean;
} & ExtraSources;
type Query = Record<string, unknown>;

/** The routes of every resource. All resources have the same operations. */
export const inventoryRoutes = (deps: Deps): Route[] =>
  Object.values(RESOURCES).flatMap((resource) => [
    ...readRoutes(resource, deps),
    ...createRoutes(resource, deps),
    ...changeRoutes(resource, deps),
    ...historyRoutes(resource, deps),
  ]);

const pathOf = ({ name }: Resource): string => `/api/inventory/${name}`;

const recordResponse = (row: Row): HttpResponse => ok(row);

const createdResponse = (resource: Resource, row: Row): HttpResponse =>
  created(`${pathOf(resource)}/${row.id}`, row);

/** The version that `If-Match` requires. Errors: `if_match_required`, `invalid_request`. */
function versionFrom(ifMatch: string | undefined, isRequired: boolean): number | undefined {
  if (isRequired && ifMatch === undefined)
    throw new AppError('if_match_required', 'Send If-Match with the ETag of the record.');
  return expectedVersion(ifMatch);
}

const withExtras = (resource: Resource, deps: Deps) => {
  const extras = extrasOf(resource, deps);
  return extras && { extras };
};

/** Lists records, and reads one. */
const readRoutes = (resource: Resource, deps: Deps): Route[] => [
  route({
    method: 'GET',
    path: pathOf(resource),
    tag,
    operationId: `list${pluralIdOf(resource)}`,
    permission: 'inventory:read',
    summary: `List ${nounOf(resource.kind, 2)}`,
    query: listOf(resource).query,
    ...withExtras(resource, deps),
    responses: { 200: listOf(resource).schema },
    handle: ({ caller, query }) =>
      listOf(resource).respond(
        query,
        (request, own) =>
          deps.records.list(caller, resource.name, filterFrom(resource, own), request),
        (row) => row,
      ),
  }),
  route({
    method: 'GET',
    path: `${pathOf(resource)}/{id}`,
    tag,
    operationId: `get${titleOf(resource)}`,
    permission: 'inventory:read',
    summary: `Get ${withArticle(nounOf(resource.kind))}, at present or at a past time`,
    description:
      'With `at`: 404 if it did not exist then, 410 `history_incomplete` if the audit log does not say ' +
      'what it was then, because its entries of that time are archived or were not restored.',
    params: RecordParams,
    query: PointInTimeQuery,
    problems: [410],
    ...withExtras(resource, deps),
    responses: { 200: recordSchema(resource) },
    handle: async ({ caller, params, query }) =>
      recordResponse(
        query.at === undefined
          ? await deps.records.read(caller, resource.name, params.id)
          : await deps.records.readAt(caller, resource.name, params.id, parseTime('at', query.at)),
      ),
  }),
];

/** Creates records. */
const createRoutes = (resource: Resource, { records, writes }: Deps): Route[] => [
  route({
    method: 'POST',
    path: pathOf(resource),
    tag,
    operationId: `create${titleOf(resource)}`,
    permission: 'inventory:write',
    summary: `Create ${withArticle(nounOf(resource.kind))}`,
    body: createSchema(resource),
    example: CREATE_EXAMPLES[resource.name],
    bodyCheckedInHandler: true,
    responses: { 201: recordSchema(resource) },
    replayResponse: async (caller, id) =>
      createdResponse(resource, await records.read(caller, resource.name, id, 'inventory:write')),
    handle: async ({ caller, body }) =>
      createdResponse(resource, await writes.create(caller, resource.name, objectOf(body))),
  }),
];

/** Updates and deletes records, in the version that `If-Match` names. */
const changeRoutes = (resource: Resource, { records, writes, requireIfMatch }: Deps): Route[] => [
  route({
    method: 'PUT',
    path: `${pathOf(resource)}/{id}`,
    tag,
    operationId: `update${titleOf(resource)}`,
    permission: 'inventory:write',
    summary: `Update fields of ${withArticle(nounOf(resource.kind))}`,
    params: RecordParams,
    body: updateSchema(resource),
    example: { description: 'Reviewed' },
    bodyCheckedInHandler: true,
    responses: { 200: recordSchema(resource) },
    headers: ['If-Match'],
    ifMatchConfigurable: true,
    current: ({ caller, params }) => records.readToChange(caller, resource.name, params.id),
    // The planner compares each field with the record.
    passUnchanged: writableFields(resource).map(([name]) => name),
    handle: async ({ caller, params, body, ifMatch }) =>
      recordResponse(
        await writes.update(
          caller,
          resource.name,
          params.id,
          objectOf(body),
          versionFrom(ifMatch, requireIfMatch),
        ),
      ),
  }),
  route({
    method: 'DELETE',
    path: `${pathOf(resource)}/{id}`,
    tag,
    operationId: `delete${titleOf(resource)}`,
    permission: 'inventory:write',
    summary: `Delete ${withArticle(nounOf(resource.kind))} that is not in use`,
    params: RecordParams,
    query: resource.sharable ? EvictQuery : NoQuery,
    responses: { 204: null },
    headers: ['If-Match'],
    ifMatchConfigurable: true,
    handle: async ({ caller, params, query, ifMatch }) => {
      const version = versionFrom(ifMatch, requireIfMatch);
      const { evict = false } = query as { evict?: boolean };
      await writes.remove(caller, resource.name, params.id, version, { evict });
      return noContent();
    },
  }),
];

/** Lists the changes of a record. */
const historyRoutes = (resource: Resource, { records }: Deps): Route[] => [
  route({
    method: 'GET',
    path: `${pathOf(resource)}/{id}/changes`,
    tag,
    operationId: `list${titleOf(resource)}Changes`,
    permission: 'inventory:read',
    summary: `List the changes of ${withArticle(nounOf(resource.kind))}, newest first`,
    params: RecordParams,
    query: ChangesQuery,
    responses: { 200: ChangeList },
    changesOf: recordSchema(resource),
    handle: async ({ caller, params, query }) => {
      const found: { archivedUntil?: Date | null } = {};
      const page = await paginate(
        `inventory:${resource.name}:${params.id}`,
        'aud',
        query,
        async (request) => {
          const changes = await records.changes(caller, resource.name, params.id, request);
          found.archivedUntil = changes.archivedUntil;
          return changes;
        },
        changeView,
      );
      return ok({ ...page, archivedUntil: found.archivedUntil?.toISOString() ?? null });
    },
  }),
];

/** A body that is an object. The planner validates its fields. */
function objectOf(body: unknown): Record<string, unknown> {
  if (!isJsonObject(body)) throw invalidField('body', '', 'type', 'must be an object');
  return body;
}

/** Converts the query of a list to what its fields alone do not say. Error: `invalid_request`. */
export function filterFrom(resource: Resource, query: Query): RecordFilterRequest {
  const within = networkFrom(query, 'within');
  const contains = networkFrom(query, 'contains');
  return {
    q: typeof query.q === 'string' ? searchTexts(resource, query.q) : undefined,
    tags: {
      any: query.tag as string[] | undefined,
      all: query['tag.all'] as string[] | undefined,
      not: query['tag.not'] as string[] | undefined,
    },
    shared: query.shared as boolean | undefined,
    within: within && formatBlock(within),
    contains:
      contains &&
      Array.from({ length: contains.length }, (_, i) =>
        formatBlock(blockAt(contains.family, contains.first, i + 1)),
      ),
    devices: resource.name === 'cables' ? (query.deviceId as string[] | undefined) : undefined,
    customFields: query.customFields as Record<string, string[]> | undefined,
    references: labelledReferences(resource).flatMap(({ field, by }) =>
      referenceFrom(resource, field, by, query[`${field}.${by}`] as string[] | undefined),
    ),
  };
}

/** A reference by a field of its record, in the form in which that is stored. */
function referenceFrom(
  { fields }: Resource,
  field: string,
  by: string,
  texts: readonly string[] = [],
): NonNullable<RecordFilterRequest['references']>[number][] {
  const target = fields[field]?.reference;
  const canonical = target && RESOURCES[target].fields[by]?.canonical;
  const values = texts.map((text) => {
    const form = canonical ? canonical(text) : text;
    if (typeof form === 'string') return form;
    throw invalidField('query', `/${field}.${by}`, form.code, form.message);
  });
  return values.length === 0 ? [] : [{ field, by, values }];
}

/** The text to search, and the form in which a searched field stores it, such as a MAC address. */
function searchTexts({ fields, searchFields }: Resource, text: string): string[] {
  const forms = searchFields.map((name) => fields[name]?.canonical?.(text));
  return [...new Set([text, ...forms.filter((form) => typeof form === 'string')])];
}

/** A network in the query; an address counts as a network of one address. */
function networkFrom(query: Query, name: 'within' | 'contains'): Block | undefined {
  const text = query[name];
  if (typeof text !== 'string') return undefined;
  const host = parseHost(text);
  const block = host
    ? blockAt(host.family, host.value, addressBits(host.family))
    : parseBlock(text);
  if (!isBlock(block)) throw invalidField('query', `/${name}`, block.code, block.message);
  return block;
}

type HistoryEntry = Awaited<ReturnType<InventoryRecords['changes']>>['items'][number];

function changeView({ id, at, action, actorId, requestId, before, after }: HistoryEntry): object {
  const previous = before as Row | null;
  const next = after as Row | null;
  return {
    id,
    at: at.toISOString(),
    action: previous ? (next ? 'update' : 'delete') : 'create',
    restored: action.endsWith('.restore'),
    actorId,
    requestId,
    version: assertDefined(next ?? previous, 'audited record').version,
    changes: differences(previous, next),
  };
}
