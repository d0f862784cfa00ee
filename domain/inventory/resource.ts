import { Type, type TObject, type TSchema } from 'typebox';
import {
  CUSTOM_FIELDS,
  prose,
  reference,
  SHARED_WITH,
  newSlug,
  TAGS,
  type Field,
} from './fields.ts';
import type { ResourceName } from './names.ts';
import { capitalized, nounOf, withArticle } from '../shared/nouns.ts';

/** A site, and a device there if any, that a record belongs to through another record. */
export type InheritedScope = { readonly siteId: string | null; readonly deviceId: string | null };

/**
 * The key of the inherited scopes of a record. They are no field of it: they change with other
 * records, without a new version.
 */
export const INHERITED: unique symbol = Symbol('inherited scopes');

/** A record of any resource in the form of API responses. */
export type Row = {
  readonly id: string;
  readonly version: number;
  readonly [INHERITED]?: readonly InheritedScope[];
  readonly [field: string]: unknown;
};

/**
 * How the records of a resource get their resource scope. They belong to a tenant; to a tenant and
 * a site; they are a tenant, a site or a device themselves; they belong to a device; or they are a
 * catalogue of the platform, which every caller with access to the inventory may read.
 */
export type ScopeKind =
  'tenant' | 'site' | 'isTenant' | 'isSite' | 'isDevice' | 'onDevice' | 'catalogue';

/** Fields whose values together are unique. Records in which one of them is null are exempt. */
export type UniqueKey = readonly string[];

export type Resource = {
  name: ResourceName;
  /** The name of one record in events, in the audit log and in messages. */
  kind: string;
  /** The prefix of ids; null when callers choose readable ids. */
  idPrefix: string | null;
  scopeKind: ScopeKind;
  /** True when records can be shared with tenants, for references from their records. */
  sharable: boolean;
  /** True when every reader of the inventory may read the platform's records: they hold for all tenants. */
  isPlatformPublic: boolean;
  fields: Readonly<Record<string, Field>>;
  uniqueKeys: readonly UniqueKey[];
  /** The field with the display name of a record. */
  labelField: string;
  /** The fields that lists sort by, besides the time of creation. */
  sortFields: readonly string[];
  /** The fields that the query parameter `q` searches. */
  searchFields: readonly string[];
  /** The fields by which a reference can name a record, besides its id. */
  lookupFields: readonly string[];
  /** References whose records are deleted together with a record. */
  cascades: readonly { resource: ResourceName; field: string }[];
  /** References that are set to null when a record is deleted, with dependent fields. */
  setNullOn: readonly { resource: ResourceName; field: string; alsoClears?: readonly string[] }[];
  /** References that the rules of the resource change when a record is deleted. */
  reparents: readonly { resource: ResourceName; field: string }[];
};

type ResourceSpec = Pick<Resource, 'name' | 'kind' | 'idPrefix' | 'fields'> & Partial<Resource>;

/**
 * Defines a resource. Every record has a description, tags and custom fields. Records outside
 * catalogues also have a tenant.
 */
export function defineResource({ fields, ...spec }: ResourceSpec): Resource {
  const scopeKind = spec.scopeKind ?? 'tenant';
  const tenant: Record<string, Field> =
    scopeKind === 'catalogue' || scopeKind === 'isTenant' || scopeKind === 'onDevice'
      ? {}
      : { tenantId: reference('tenants') };
  return {
    uniqueKeys: [],
    labelField: 'name',
    sortFields: ['name'],
    searchFields: ['name', 'description'],
    lookupFields: ['name'],
    cascades: [],
    setNullOn: [],
    reparents: [],
    sharable: false,
    isPlatformPublic: false,
    ...spec,
    scopeKind,
    fields: {
      ...tenant,
      ...withNamedChoices(spec, fields),
      ...(spec.sharable && { sharedWith: SHARED_WITH }),
      description: prose(2_000),
      tags: TAGS,
      customFields: CUSTOM_FIELDS,
    },
  };
}

/** The fields; the values of a choice are a named schema, such as `DeviceStatus`. */
const withNamedChoices = (
  resource: Pick<Resource, 'kind'>,
  fields: Resource['fields'],
): Record<string, Field> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      'enum' in field.schema
        ? {
            ...field,
            schema: { ...field.schema, title: `${titleOf(resource)}${capitalized(name)}` },
          }
        : field,
    ]),
  );

/** The fields that callers can set. */
export const writableFields = ({ fields }: Resource): [string, Field][] =>
  Object.entries(fields).filter(([, field]) => !field.derived);

const orNull = (schema: TSchema, { nullable }: Field): TSchema =>
  nullable ? Type.Union([schema, Type.Null()]) : schema;

const strictObject = (
  properties: Record<string, TSchema>,
  title: string,
  options: { description?: string } = {},
): TObject => Type.Object(properties, { additionalProperties: false, title, ...options });

/** The name of the schema of a record. */
export const titleOf = ({ kind }: Pick<Resource, 'kind'>): string =>
  kind.split('-').map(capitalized).join('');

/** Makes a schema once for each resource: each of its users compiles it once. */
function oncePerResource(make: (resource: Resource) => TObject): (resource: Resource) => TObject {
  const made = new WeakMap<Resource, TObject>();
  return (resource) => {
    const schema = made.get(resource) ?? make(resource);
    made.set(resource, schema);
    return schema;
  };
}

/** The schema of a create request. Missing fields get their defaults. */
export const createSchema = oncePerResource((declared) => {
  const fields = writableFields(declared).map(([name, field]) => {
    const schema = orNull(field.schema, field);
    return [name, field.required ? schema : Type.Optional(schema)];
  });
  const id = declared.idPrefix === null ? { id: newSlug() } : {};
  return strictObject(
    { ...id, ...Object.fromEntries(fields) } as Record<string, TSchema>,
    `${titleOf(declared)}Request`,
  );
});

/** What an update does with the fields of a request. */
const UPDATE_RULE =
  'Fields that are not in the request keep their values. A field in the request replaces the value, ' +
  'lists such as `tags` as a whole. Null clears a field that may be null; for others it means that ' +
  'they are not in the request: `""` clears a text, `[]` a list. Only `customFields` is merged: ' +
  'its keys replace those of the record, null removes one, the others stay.';

/** Not a field of the record. */
export const EVICT = Type.Boolean({
  description:
    'true: detaches everything that other tenants have on the record. References to it are cleared; ' +
    'what cannot exist without it is deleted.',
});

/** The schema of an update request: any subset of the fields. Missing fields keep their values. */
export const updateSchema = oncePerResource((declared) => {
  const fields = writableFields(declared).map(([name, field]) => [
    name,
    Type.Optional(orNull(field.schema, field)),
  ]);
  const evict = declared.sharable && { evict: Type.Optional(EVICT) };
  return strictObject(
    { ...Object.fromEntries(fields), ...evict } as Record<string, TSchema>,
    `${titleOf(declared)}Change`,
    { description: UPDATE_RULE },
  );
});

const responseSchema = ({ type, schema, responseSchema: own, reference: to }: Field): TSchema => {
  if (own !== undefined) return own;
  if (to !== undefined)
    return Type.String({ description: `The id of ${withArticle(nounOf(to))}.`, 'x-reference': to });
  return type === 'network' || type === 'address' ? Type.String() : schema;
};

/** The schema of a record in a response. */
export const recordSchema = oncePerResource((declared) => {
  const fields = Object.entries(declared.fields).map(([name, field]) => [
    name,
    orNull(responseSchema(field), field),
  ]);
  const time = Type.String({ format: 'date-time' });
  return strictObject(
    {
      id: Type.String(),
      ...Object.fromEntries(fields),
      createdAt: time,
      updatedAt: time,
      version: Type.Integer(),
    } as Record<string, TSchema>,
    titleOf(declared),
  );
});
