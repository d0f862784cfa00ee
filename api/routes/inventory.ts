import { Type } from 'typebox';
import { AppError, invalidField } from '../../domain/shared/errors.ts';
import {
  bitsOf,
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
  recordSchema,
  titleOf,
  updateSchema,
  type Resource,
  type Row,
} from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { InventoryRecords, RecordFilter } from '../../services/inventory/records.ts';
import type { InventoryWrites } from '../../services/inventory/writes.ts';
import { created, noContent, ok, type Answer } from '../kit/answer.ts';
import { etagOf, expectedVersion } from '../kit/etag.ts';
import { listAnswer, listOf, pageQuery } from '../http/pagination.ts';
import { dateOf } from '../kit/queryTime.ts';
import { decodeRecordKey, encodeRecordKey } from '../inventory/recordCursor.ts';
import { route, type Route } from '../kit/route.ts';
import { ChangeView, filtersOf, listQuery } from '../inventory/schemas.ts';
import { Timestamp } from '../http/schemas.ts';

const area = 'Inventory';
const closed = { additionalProperties: false };

const OneRecord = Type.Object(
  { id: Type.String({ minLength: 1, maxLength: 100, pattern: '^[\\x21-\\x7e]+$' }) },
  closed,
);
const AtQuery = Type.Object({ at: Type.Optional(Timestamp) }, closed);
const ChangesQuery = Type.Object(pageQuery, closed);

type Deps = { records: InventoryRecords; writes: InventoryWrites; requireIfMatch: boolean };
type Query = Record<string, unknown>;

/** Every resource of the inventory, each with the same operations. */
export const inventoryRoutes = (deps: Deps): Route[] =>
  Object.values(RESOURCES).flatMap((resource) => routesOf(resource, deps));

const one = (row: Row): Answer => ok(row, { etag: etagOf(row.version) });

function routesOf(resource: Resource, { records, writes, requireIfMatch }: Deps): Route[] {
  const { name, kind } = resource;
  const path = `/api/inventory/${name}`;
  const many = name.replaceAll('-', ' ');
  const record = recordSchema(resource);
  const made = (row: Row): Answer =>
    created(`${path}/${row.id}`, row, { etag: etagOf(row.version) });
  const versionOf = (ifMatch: string | undefined): number | undefined => {
    if (requireIfMatch && ifMatch === undefined)
      throw new AppError(
        'version_required',
        'Send If-Match with the ETag of the record that you have read.',
      );
    return expectedVersion(ifMatch);
  };

  return [
    route({
      method: 'GET',
      path,
      area,
      permission: 'inventory:read',
      summary: `List ${many}`,
      query: listQuery(resource),
      answers: { 200: listOf(record, `${titleOf(resource)}List`) },
      handle: async ({ caller, query }) => {
        const {
          limit,
          cursor,
          sort: by,
          ...rest
        } = query as Query & { limit: number; cursor?: string; sort: string };
        const sort =
          by === '-createdAt'
            ? undefined
            : { field: by.replace(/^-/, ''), descending: by.startsWith('-') };
        const list = `inventory:${name}:${by}`;
        const after = decodeRecordKey(list, cursor, resource, sort?.field);
        const { items, next } = await records.list(caller, name, filterFrom(resource, rest), {
          sort,
          after,
          limit,
        });
        return ok({ items, nextCursor: encodeRecordKey(list, next) });
      },
    }),
    route({
      method: 'POST',
      path,
      area,
      permission: 'inventory:write',
      summary: `Create a ${kind}`,
      body: createSchema(resource),
      bodyCheckedLater: true,
      answers: { 201: record },
      recover: async (caller, id) => made(await records.read(caller, name, id)),
      handle: async ({ caller, body }) => made(await writes.create(caller, name, objectOf(body))),
    }),
    route({
      method: 'GET',
      path: `${path}/{id}`,
      area,
      permission: 'inventory:read',
      summary: `Read a ${kind}, as it is or as it was`,
      params: OneRecord,
      query: AtQuery,
      answers: { 200: record },
      handle: async ({ caller, params, query }) =>
        one(
          query.at === undefined
            ? await records.read(caller, name, params.id)
            : await records.readAt(caller, name, params.id, dateOf('at', query.at)),
        ),
    }),
    route({
      method: 'PUT',
      path: `${path}/{id}`,
      area,
      permission: 'inventory:write',
      summary: `Change fields of a ${kind}`,
      params: OneRecord,
      body: updateSchema(resource),
      bodyCheckedLater: true,
      answers: { 200: record },
      headers: ['If-Match'],
      matchable: true,
      handle: async ({ caller, params, body, ifMatch }) =>
        one(await writes.update(caller, name, params.id, fieldsOf(body), versionOf(ifMatch))),
    }),
    route({
      method: 'DELETE',
      path: `${path}/{id}`,
      area,
      permission: 'inventory:write',
      summary: `Delete a ${kind} that is not in use`,
      params: OneRecord,
      answers: { 204: null },
      headers: ['If-Match'],
      matchable: true,
      handle: async ({ caller, params, ifMatch }) => {
        await writes.remove(caller, name, params.id, versionOf(ifMatch));
        return noContent();
      },
    }),
    route({
      method: 'GET',
      path: `${path}/{id}/changes`,
      area,
      permission: 'inventory:read',
      summary: `List the changes of a ${kind}, newest first`,
      params: OneRecord,
      query: ChangesQuery,
      answers: { 200: listOf(ChangeView, 'RecordChangeList') },
      handle: ({ caller, params, query }) =>
        listAnswer(
          `inventory:${name}:${params.id}`,
          'aud',
          query,
          (page) => records.changes(caller, name, params.id, page),
          changeView,
        ),
    }),
  ];
}

/** A body that is an object; what is in it is for the planner to say. */
function objectOf(body: unknown): Record<string, unknown> {
  if (typeof body !== 'object' || body === null || Array.isArray(body))
    throw invalidField('body', '', 'type', 'must be object');
  return body as Record<string, unknown>;
}

/** The fields of a change; which record it is about says the path, and its version If-Match. */
function fieldsOf(body: unknown): Record<string, unknown> {
  const fields = objectOf(body);
  for (const name of ['id', 'version'])
    if (Object.hasOwn(fields, name))
      throw invalidField('body', `/${name}`, 'unknown_field', 'is not a known field');
  return fields;
}

export function filterFrom(resource: Resource, query: Query): RecordFilter {
  const fields = Object.fromEntries(
    filtersOf(resource)
      .filter((field) => query[field] !== undefined)
      .map((field) => [field, valueFrom(resource, field, query[field])]),
  );
  const within = networkFrom(query, 'within');
  const contains = networkFrom(query, 'contains');
  return {
    fields,
    q: query.q as string | undefined,
    tag: query.tag as string | undefined,
    within: within && formatBlock(within),
    contains:
      contains &&
      Array.from({ length: contains.length }, (_, i) =>
        formatBlock(blockAt(contains.family, contains.first, i + 1)),
      ),
  };
}

/** A network of the query; an address is one of its own. */
function networkFrom(query: Query, name: 'within' | 'contains'): Block | undefined {
  const text = query[name];
  if (typeof text !== 'string') return undefined;
  const host = parseHost(text);
  const block = host ? blockAt(host.family, host.value, bitsOf(host.family)) : parseBlock(text);
  if (!isBlock(block)) throw invalidField('query', `/${name}`, block.code, block.message);
  return block;
}

function valueFrom(
  { fields }: Resource,
  name: string,
  value: unknown,
): string | number | boolean | null {
  const field = fields[name];
  if (
    field?.reference !== undefined &&
    (value === 'none' || (field.reference === 'vrfs' && value === 'global'))
  )
    return null;
  if (!field?.canonical || typeof value !== 'string') return value as string | number | boolean;
  const form = field.canonical(value);
  if (typeof form !== 'string') throw invalidField('query', `/${name}`, form.code, form.message);
  return form;
}

type Entry = Awaited<ReturnType<InventoryRecords['changes']>>['items'][number];

function changeView({ id, at, action, actorId, requestId, before, after }: Entry): object {
  const [was, is] = [before as Row | null, after as Row | null];
  return {
    id,
    at: at.toISOString(),
    action: action.slice(action.lastIndexOf('.') + 1),
    actorId,
    requestId,
    version: (is ?? was)?.version ?? 0,
    changes: differences(was, is),
  };
}
