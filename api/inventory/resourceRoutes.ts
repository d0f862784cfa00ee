import { Type, type Static, type TSchema } from 'typebox';
import type { Field } from '../../domain/inventory/fields.ts';
import { RESOURCE_NAMES } from '../../domain/inventory/names.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { CUSTOM_TYPES } from '../../domain/inventory/resources/catalogues.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { nounOf } from '../../domain/shared/nouns.ts';
import { rulesOf } from '../../platform/schemaCheck.ts';
import {
  customFieldsInForce,
  type CustomField,
} from '../../services/inventory/customFieldsInForce.ts';
import type { InventoryRecords } from '../../services/inventory/records.ts';
import { etagOfText } from '../http/etag.ts';
import { listSchema } from '../http/pagination.ts';
import { route, type Route } from '../http/route.ts';
import { closed, Nullable, Reference } from '../http/schemas.ts';
import { listOf } from './lists.ts';

const ResourceName = Type.Enum([...RESOURCE_NAMES], { title: 'ResourceName' });
const Rules = Type.Array(Type.String(), {
  description: 'What a value must be, in words, as errors say it.',
});

const FieldView = Type.Object(
  {
    name: Type.String(),
    type: Type.Enum(
      [
        'text',
        'integer',
        'number',
        'boolean',
        'reference',
        'network',
        'address',
        'texts',
        'object',
      ],
      { title: 'FieldType' },
    ),
    description: Nullable(Type.String()),
    reference: Type.Union([ResourceName, Type.Null()], {
      description: 'The resource that the field refers to.',
    }),
    choices: Nullable(Type.Array(Type.String(), { description: 'The allowed values.' })),
    required: Type.Boolean({ description: 'Needed to create a record.' }),
    nullable: Type.Boolean(),
    default: Type.Unknown({ description: 'The value of a new record for which none is given.' }),
    derived: Type.Boolean({ description: 'Computed from other records; cannot be set.' }),
    immutable: Type.Boolean({ description: 'Set when a record is created, and never changed.' }),
    rules: Rules,
  },
  { title: 'ResourceField', ...closed },
);

const CustomFieldView = Type.Object(
  {
    id: Type.String({ description: 'The id of its definition, one of custom-fields.' }),
    tenantId: Reference('tenants'),
    name: Type.String(),
    type: Type.Enum([...CUSTOM_TYPES], { title: 'CustomFieldType' }),
    description: Type.String(),
    required: Type.Boolean(),
    choices: Type.Array(Type.String()),
    minimum: Nullable(Type.Number()),
    maximum: Nullable(Type.Number()),
  },
  { title: 'CustomFieldInForce', ...closed },
);

const ResourceView = Type.Object(
  {
    name: ResourceName,
    kind: Type.String({ description: 'The name of one record in events and in the audit log.' }),
    singular: Type.String({ description: 'One record, in words.' }),
    plural: Type.String({ description: 'Several records, in words.' }),
    idPrefix: Nullable(Type.String({ description: 'null where callers choose the ids.' })),
    label: Type.String({ description: 'The field with the display name.' }),
    lookup: Type.Array(Type.String(), {
      description: 'The fields by which a reference can name a record instead of its id.',
    }),
    search: Type.Array(Type.String(), { description: 'The fields that `q` searches.' }),
    sorts: Type.Array(Type.String(), { description: 'The values of `sort` in lists.' }),
    facets: Type.Array(Type.String(), { description: 'The values of `facets` in lists.' }),
    filters: Type.Array(Type.String(), {
      description: 'The query parameters that filter lists; this document has their schemas.',
    }),
    sharable: Type.Boolean({ description: 'Records can be shared with tenants.' }),
    fields: Type.Array(FieldView),
    customFields: Type.Array(CustomFieldView, {
      description: 'Those of your tenant and of the platform that you may read, by name.',
    }),
  },
  { title: 'Resource', ...closed },
);

/** The values of a query parameter with a choice, or with a list of choices. */
const valuesOf = (parameter: TSchema | undefined): string[] => {
  const { enum: values, items } = (parameter ?? {}) as { enum?: string[]; items?: TSchema };
  return items ? valuesOf(items) : [...(values ?? [])];
};

const fieldView = ([name, field]: [string, Field]): Static<typeof FieldView> => {
  const { description = null, enum: choices = null } = field.schema as {
    description?: string;
    enum?: string[];
  };
  const { type, reference = null, required, nullable, derived, immutable } = field;
  return {
    name,
    type,
    description,
    reference,
    choices,
    required,
    nullable,
    default: field.default,
    derived,
    immutable,
    // A reference is an id or a lookup, which the type says.
    rules: reference === null ? rulesOf(field.schema) : [],
  };
};

function customFieldView(field: CustomField): Static<typeof CustomFieldView> {
  const { id, tenantId, name, type, description, required, choices, minimum, maximum } = field;
  const view = { id, tenantId, name, type, description, required, choices, minimum, maximum };
  // Columns of a record, which have these types.
  return view as Static<typeof CustomFieldView>;
}

function resourceView(
  resource: Resource,
  customFields: readonly CustomField[],
): Static<typeof ResourceView> {
  const { name, kind, idPrefix, labelField, lookupFields, searchFields, sharable } = resource;
  const { query, filters } = listOf(resource);
  const parameters: Record<string, TSchema> = query.properties;
  return {
    name,
    kind,
    singular: nounOf(kind),
    plural: nounOf(kind, 2),
    idPrefix,
    label: labelField,
    lookup: [...lookupFields],
    search: [...searchFields],
    sorts: valuesOf(parameters.sort),
    facets: valuesOf(parameters.facets),
    filters: Object.keys(filters),
    sharable,
    fields: Object.entries(resource.fields).map(fieldView),
    customFields: customFields.filter((each) => each.resource === name).map(customFieldView),
  };
}

/** Describes the resources of the inventory, from the definitions that requests are checked with. */
export const resourceRoutes = ({ records }: { records: InventoryRecords }): Route[] => [
  route({
    method: 'GET',
    path: '/api/inventory/resources',
    tag: 'Inventory',
    operationId: 'listResources',
    permission: 'inventory:read',
    summary: 'Describe the resources of the inventory: fields, choices, filters, custom fields',
    description:
      'What forms, columns and filters are made of. All resources are on one page. The `ETag` changes with a ' +
      'new version of Holdfast and with custom fields.',
    headers: ['If-None-Match'],
    responses: { 200: listSchema(ResourceView, 'ResourceList') },
    handle: async ({ caller }) => {
      const customFields = await customFieldsInForce(records, caller);
      const items = Object.values(RESOURCES).map((each) => resourceView(each, customFields));
      const json = JSON.stringify({ items, nextCursor: null });
      return { status: 200, headers: { etag: etagOfText(json) }, json };
    },
  }),
];
