import { Type, type TSchema } from 'typebox';
import { TENANT_ID } from '../../domain/access/tenantId.ts';
import { MAX_CUSTOM_TEXT, SLUG } from '../../domain/inventory/fields.ts';
import { isSorted, kindOf } from '../../domain/inventory/lists.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import { recordSchema, titleOf, type Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { invalidField } from '../../domain/shared/errors.ts';
import { TRIMMED_LINE } from '../../domain/shared/oneLine.ts';
import { Name } from '../http/schemas.ts';
import {
  choiceSchema,
  MAX_VALUES,
  severalOf,
  timeField,
  type FieldDeclaration,
} from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';

type Field = Resource['fields'][string];

/** The ids of records of any resource. */
export const RECORD_ID = /^[\x21-\x7e]{1,100}$/;

/** The id of a record of a resource, or one of `words`. */
export function idFilter(resource: Resource, words: readonly string[]): TSchema {
  const { idPrefix } = resource;
  const slug = resource.name === 'tenants' ? TENANT_ID : SLUG;
  const id = idPrefix === null ? slug.slice(1, -1) : `${idPrefix}_[0-9a-z]{26}`;
  const example =
    idPrefix === null ? 'an id' : `an id such as ${idPrefix}_01jd0cmxk5e5v8kyzwq0q8s3rt`;
  return Type.String({
    title: `${titleOf(resource)}${words.length > 0 ? 'Filter' : 'Id'}`,
    pattern: `^(?:${[...words, id].join('|')})$`,
    'x-rule': `must be ${[example, ...words].join(', or ')}`,
  });
}

/** The words that mean no value of a field. Every record has a tenant. */
function noneOf({ reference, nullable, schema }: Field): string[] {
  if (reference === 'tenants') return [];
  if (reference !== undefined) return reference === 'vrfs' ? ['none', 'global'] : ['none'];
  const { enum: values } = schema as { enum?: string[] };
  return nullable && values?.includes('none') !== true ? ['none'] : [];
}

/** The schema of one value. A field with a canonical form checks its value itself. */
function valueSchema(field: Field): TSchema {
  const { type, schema, reference, canonical } = field;
  if (reference !== undefined) return idFilter(RESOURCES[reference], noneOf(field));
  const {
    enum: values,
    pattern,
    title,
  } = schema as { enum?: string[]; pattern?: string; title?: string };
  if (values) return choiceSchema(values, noneOf(field), title);
  if (type === 'integer' || type === 'number' || type === 'boolean') return schema;
  // A record may have a name that is older than the rule.
  if (pattern === TRIMMED_LINE.pattern) return Name();
  return pattern !== undefined && !canonical
    ? schema
    : Type.String({ minLength: 1, maxLength: 255 });
}

function read({ canonical }: Field): FieldDeclaration['read'] {
  if (!canonical) return undefined;
  return (text, parameter) => {
    const form = canonical(text);
    if (typeof form !== 'string')
      throw invalidField('query', `/${parameter}`, form.code, form.message);
    return form;
  };
}

function declarationOf(resource: Resource, name: string, field: Field): FieldDeclaration[] {
  const kind = kindOf(field);
  if (kind === undefined || name === 'description') return [];
  const { enum: choices } = field.schema as { enum?: string[] };
  const reader = read(field);
  const none = noneOf(field);
  return [
    {
      kind,
      schema: valueSchema(field),
      nullable: field.nullable,
      none,
      ...(choices && { choices }),
      ...(field.reference !== undefined &&
        none.length > 0 && { description: 'An id, or `none` for records without a reference.' }),
      filter: true,
      sort: isSorted(resource, name) && field.reference === undefined,
      facet: choices !== undefined || field.reference !== undefined || kind === 'boolean',
      commas: kind !== 'text' || choices !== undefined || field.reference !== undefined,
      ...(reader && { read: reader }),
    },
  ];
}

function fieldsOf(resource: Resource): Record<string, FieldDeclaration> {
  const declared = Object.entries(resource.fields).flatMap(([name, field]) =>
    declarationOf(resource, name, field).map((declaration) => [name, declaration] as const),
  );
  return {
    id: {
      kind: 'text',
      schema: idFilter(resource, []),
      nullable: false,
      none: [],
      filter: true,
      sort: false,
      facet: false,
      commas: true,
    },
    ...Object.fromEntries(declared),
    createdAt: timeField({ sort: true }),
    updatedAt: timeField({ sort: true }),
  };
}

const ADDRESS_SPACE_RESOURCES: ReadonlySet<string> = new Set([
  'prefixes',
  'ip-ranges',
  'ip-addresses',
]);

/** References that lists filter by the label of their record, such as `siteId.name`. */
export const labelledReferences = ({ fields }: Resource): { field: string; by: string }[] =>
  Object.entries(fields).flatMap(([field, { reference }]) => {
    if (reference === undefined) return [];
    const { labelField, lookupFields } = RESOURCES[reference];
    return lookupFields.includes(labelField) ? [{ field, by: labelField }] : [];
  });

const network = (description: string) => Type.Optional(Type.String({ maxLength: 50, description }));

const CustomFields = Type.Optional(
  Type.Record(
    Type.String({ pattern: '^[a-z][a-z0-9_]{0,49}(?:\\.not)?$' }),
    Type.Array(Type.String({ minLength: 1, maxLength: MAX_CUSTOM_TEXT }), { maxItems: 10 }),
    {
      maxProperties: 5,
      additionalProperties: false,
      description:
        'Values of custom fields by name, as `customFields.owner=netops`; `none`: without a value. With ' +
        '`.not`, what they must not have: `customFields.owner.not=netops`.',
    },
  ),
);

const tags = (description: string) => severalOf(idFilter(RESOURCES.tags, []), description);

/** The filters that are more than a comparison with a field. */
function ownFilters(resource: Resource): Record<string, TSchema> {
  const references = labelledReferences(resource).map(({ field, by }) => [
    `${field}.${by}`,
    Type.Optional(Type.Array(Name(), { maxItems: MAX_VALUES })),
  ]);
  return {
    q: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: 100,
        description: `Text in ${resource.searchFields.join(', ')}.`,
      }),
    ),
    tag: tags('With one of these tags.'),
    'tag.all': tags('With all of these tags.'),
    'tag.not': tags('With none of these tags.'),
    customFields: CustomFields,
    ...((resource.sharable || resource.isPlatformPublic) && {
      shared: Type.Optional(
        Type.Boolean({
          description: resource.sharable
            ? 'true: records that other tenants share with yours, instead of your own.'
            : 'true: records of the platform, which hold for all tenants, instead of your own.',
        }),
      ),
    }),
    ...(ADDRESS_SPACE_RESOURCES.has(resource.name) && {
      within: network('A network: records inside it.'),
    }),
    ...(resource.name === 'prefixes' && {
      contains: network('An address or a network: prefixes that contain it.'),
    }),
    ...(resource.name === 'cables' && {
      deviceId: severalOf(
        idFilter(RESOURCES.devices, []),
        'Cables that end at an interface of one of these devices.',
      ),
    }),
    ...(Object.fromEntries(references) as Record<string, TSchema>),
  };
}

const define = (resource: Resource) =>
  defineList({
    name: `inventory:${resource.name}`,
    id: RECORD_ID,
    item: recordSchema(resource),
    title: `${titleOf(resource)}List`,
    fields: fieldsOf(resource),
    own: ownFilters(resource),
    idsByTime: resource.idPrefix !== null,
  });

const LISTS = new Map<ResourceName, ReturnType<typeof define>>();

/** The list of a resource, made at the first use. */
export function listOf(resource: Resource): ReturnType<typeof define> {
  const list = LISTS.get(resource.name) ?? define(resource);
  LISTS.set(resource.name, list);
  return list;
}
