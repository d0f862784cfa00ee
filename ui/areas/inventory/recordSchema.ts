import { labelOfField } from '../../parts/format.ts';
import type { JsonSchema } from '../../parts/schemaForm/shape.ts';
import type { InventoryRecord, Resource, ResourceField } from './inventoryQueries.ts';
import { CUSTOM } from './recordChanges.ts';
import { referenceOf } from './resources.ts';

/** What is typed for a record: values by the names of fields, those of custom fields in `customFields`. */
export type RecordValues = Record<string, unknown>;

type CustomField = Resource['customFields'][number];

/**
 * Descriptions and custom texts have several lines, all other texts one; the description of a resource
 * does not say so.
 */
const LONG_TEXT: JsonSchema = { type: 'string', maxLength: 2_000 };
const LINE: JsonSchema = {
  type: 'string',
  pattern: '^[^\\r\\n]*$',
  'x-rule': 'must be one line of text',
};

/** The choices of the API, with the words that lists show. */
const choiceSchema = (choices: readonly string[]): JsonSchema => ({
  anyOf: choices.map((value) => ({ const: value, title: labelOfField(value) })),
});

function valueSchema(field: ResourceField): JsonSchema {
  const { name, type, choices } = field;
  const reference = referenceOf(field);
  if (reference !== undefined)
    return type === 'texts'
      ? {
          type: 'array',
          items: { type: 'string', ...(name === 'sharedWith' && { 'x-share': true }) },
          uniqueItems: true,
          'x-holdfast-ref': reference,
        }
      : { type: 'string', 'x-holdfast-ref': reference };
  if (choices && type !== 'texts') return choiceSchema(choices);
  switch (type) {
    case 'integer':
    case 'number':
    case 'boolean':
      return { type };
    case 'texts':
      return { type: 'array', items: choices ? choiceSchema(choices) : LINE };
    case 'network':
    case 'address':
      return { type: 'string', format: 'cidr' };
    case 'text':
    case 'reference':
      return name === 'description' ? LONG_TEXT : LINE;
    case 'object':
      return {};
    // A type that this console does not know is entered as JSON.
    default:
      return {};
  }
}

const orNull = (schema: JsonSchema): JsonSchema => ({ anyOf: [schema, { type: 'null' }] });

/** What to know before one types. What is wrong with a text is said when it is typed. */
function hintOf({ type, reference, description, rules }: ResourceField): string {
  // The API accepts ids and lookups; the form searches by name.
  const text = reference !== null && description?.startsWith('One of ') ? '' : (description ?? '');
  const limits = type === 'integer' || type === 'number' ? rules.join(', ') : '';
  return [text, limits].filter((each) => each !== '').join(' ');
}

function fieldSchema(field: ResourceField, isNew: boolean): JsonSchema {
  const description = hintOf(field);
  return {
    ...(field.nullable ? orNull(valueSchema(field)) : valueSchema(field)),
    ...(description !== '' && { description }),
    ...(field.default !== null && { default: field.default }),
    ...(!isNew && field.immutable && { readOnly: true }),
  };
}

const isShown = ({ name, derived }: ResourceField, isNew: boolean): boolean =>
  // A new record belongs to the tenant that the form has.
  !derived && name !== CUSTOM && !(isNew && name === 'tenantId');

const ID: JsonSchema = { ...LINE, description: 'You choose it. It never changes.' };

/** The form of a record, made from the description of its resource. */
export function recordSchema({ fields, idPrefix }: Resource, isNew: boolean): JsonSchema {
  const shown = fields.filter((field) => isShown(field, isNew));
  const hasOwnId = isNew && idPrefix === null;
  return {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...(hasOwnId && { id: ID }),
      ...Object.fromEntries(shown.map((field) => [field.name, fieldSchema(field, isNew)])),
    },
    required: [
      ...(hasOwnId ? ['id'] : []),
      ...shown.filter(({ required }) => required).map(({ name }) => name),
    ],
  };
}

/** The fields that several records can be given together: not those that distinguish them. */
export const sharedFields = ({ fields, label }: Resource): readonly ResourceField[] =>
  fields.filter(
    (field) =>
      isShown(field, false) &&
      !field.immutable &&
      field.name !== label &&
      field.name !== 'tenantId',
  );

/** The form of some fields of a record, none of which is required. */
export const partialSchema = (resource: Resource, names: readonly string[]): JsonSchema => ({
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(
    sharedFields(resource)
      .filter(({ name }) => names.includes(name))
      .map((field) => [field.name, fieldSchema(field, false)]),
  ),
});

function customSchema({ type, choices, minimum, maximum, description }: CustomField): JsonSchema {
  const words = description === '' ? {} : { description };
  const limits = {
    ...(minimum !== null && { minimum }),
    ...(maximum !== null && { maximum }),
  };
  switch (type) {
    case 'integer':
    case 'number':
      return { ...orNull({ type, ...limits }), ...words };
    case 'boolean':
      return { ...orNull({ type }), ...words };
    case 'choice':
      return { ...orNull({ enum: choices }), ...words };
    case 'choices':
      return { ...orNull({ type: 'array', items: { enum: choices } }), ...words };
    case 'url':
      return { ...orNull({ type: 'string', format: 'uri' }), ...words };
    case 'date':
      return { ...orNull(LINE), description: `${description} As 2026-01-31.`.trim() };
    case 'text':
      return { ...orNull(LONG_TEXT), ...words };
    default:
      return words;
  }
}

/** The form of the custom fields that are in force; undefined if there are none. */
export function customFieldsSchema({ customFields }: Resource): JsonSchema | undefined {
  if (customFields.length === 0) return undefined;
  return {
    type: 'object',
    properties: Object.fromEntries(customFields.map((each) => [each.name, customSchema(each)])),
    required: customFields.filter(({ required }) => required).map(({ name }) => name),
  };
}

/** The fields of a record that a form edits. */
export const valuesOf = (resource: Resource, record: InventoryRecord): RecordValues =>
  Object.fromEntries(
    resource.fields
      .filter((field) => isShown(field, false) || field.name === CUSTOM)
      .map(({ name }) => [name, record[name]]),
  );

/** True if a new record has all that it needs. */
export const isComplete = (resource: Resource, values: RecordValues): boolean =>
  (recordSchema(resource, true).required ?? []).every(
    (name) => values[name] !== undefined && values[name] !== null && values[name] !== '',
  );
