import { Type, type TObject, type TSchema } from 'typebox';
import { CUSTOM, prose, reference, slug, TAGS, type Field } from './fields.ts';
import type { ResourceName } from './names.ts';

/** A record of any resource, as the API shows it. */
export type Row = {
  readonly id: string;
  readonly version: number;
  readonly [field: string]: unknown;
};

/**
 * Where its records stand, for rights: at a tenant; at a site too; they are a tenant, a site or a device; they are on
 * a device; or they belong to the platform and are for all who may read inventory.
 */
export type Standing =
  'tenant' | 'site' | 'isTenant' | 'isSite' | 'isDevice' | 'onDevice' | 'catalogue';

/** Fields whose values together are one record's only; rows in which one of them is null are free of it. */
export type Unique = readonly string[];

export type Resource = {
  name: ResourceName;
  /** The singular: in events, in the audit trail, in messages. */
  kind: string;
  /** Prefix of its ids; null where callers choose readable ones. */
  ids: string | null;
  standing: Standing;
  fields: Readonly<Record<string, Field>>;
  unique: readonly Unique[];
  /** The field that people call a record by. */
  label: string;
  /** Fields that a list sorts by, besides the time of creation. */
  sorts: readonly string[];
  /** Fields that `q` looks into. */
  search: readonly string[];
  /** Fields by which a reference may name a record, besides its id. */
  names: readonly string[];
  /** What goes when a record goes. */
  cascades: readonly { resource: ResourceName; field: string }[];
  /** References that are emptied when a record goes, with the fields that follow from them. */
  frees: readonly { resource: ResourceName; field: string; following?: readonly string[] }[];
  /** References that the rules of the resource see to when a record goes. */
  handsOn: readonly { resource: ResourceName; field: string }[];
};

type Spec = Pick<Resource, 'name' | 'kind' | 'ids' | 'fields'> & Partial<Resource>;

/** Declares a resource. Every record has a description, tags, custom fields and, outside catalogues, a tenant. */
export function resource(spec: Spec): Resource {
  const standing = spec.standing ?? 'tenant';
  const tenant =
    standing === 'catalogue' || standing === 'isTenant' || standing === 'onDevice'
      ? {}
      : { tenantId: reference('tenants') };
  return {
    unique: [],
    label: 'name',
    sorts: ['name'],
    search: ['name', 'description'],
    names: ['name'],
    cascades: [],
    frees: [],
    handsOn: [],
    ...spec,
    standing,
    fields: {
      ...tenant,
      ...spec.fields,
      description: prose(2_000),
      tags: TAGS,
      customFields: CUSTOM,
    },
  };
}

/** The path of a field's reference that a caller can set. */
export const writable = ({ fields }: Resource): [string, Field][] =>
  Object.entries(fields).filter(([, field]) => !field.derived);

const orNull = (schema: TSchema, { nullable }: Field): TSchema =>
  nullable ? Type.Union([schema, Type.Null()]) : schema;

const closed = (properties: Record<string, TSchema>, title: string): TObject =>
  Type.Object(properties, { additionalProperties: false, title });

export const titleOf = ({ kind }: Resource): string =>
  kind.replaceAll(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());

/** The body of a create: what is left out gets its default. */
export function createSchema(declared: Resource): TObject {
  const fields = writable(declared).map(([name, field]) => {
    const schema = orNull(field.schema, field);
    return [name, field.required ? schema : Type.Optional(schema)];
  });
  const id = declared.ids === null ? { id: slug() } : {};
  return closed(
    { ...id, ...Object.fromEntries(fields) } as Record<string, TSchema>,
    `${titleOf(declared)}Request`,
  );
}

/** The body of an update: any subset; what is left out stays. */
export function updateSchema(declared: Resource): TObject {
  const fields = writable(declared).map(([name, field]) => [
    name,
    Type.Optional(orNull(field.schema, field)),
  ]);
  return closed(
    Object.fromEntries(fields) as Record<string, TSchema>,
    `${titleOf(declared)}Change`,
  );
}

const answered = ({ type, schema, reference: to }: Field): TSchema => {
  if (to !== undefined) return Type.String({ description: `The id of one of ${to}.` });
  return type === 'network' || type === 'address' ? Type.String() : schema;
};

/** A record as it is answered. */
export function recordSchema(declared: Resource): TObject {
  const fields = Object.entries(declared.fields).map(([name, field]) => [
    name,
    orNull(answered(field), field),
  ]);
  const time = Type.String({ format: 'date-time' });
  return closed(
    {
      id: Type.String(),
      ...Object.fromEntries(fields),
      createdAt: time,
      updatedAt: time,
      version: Type.Integer(),
    } as Record<string, TSchema>,
    titleOf(declared),
  );
}
