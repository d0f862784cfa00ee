import { labelOfField } from '../format.ts';

/** The parts of JSON Schema that the service publishes for payloads and settings. */
export type JsonSchema = {
  type?: string | readonly string[];
  title?: string;
  description?: string;
  properties?: Readonly<Record<string, JsonSchema>>;
  required?: readonly string[];
  additionalProperties?: boolean | JsonSchema;
  patternProperties?: Readonly<Record<string, JsonSchema>>;
  propertyNames?: JsonSchema;
  items?: JsonSchema | boolean;
  enum?: readonly unknown[];
  const?: unknown;
  anyOf?: readonly JsonSchema[];
  oneOf?: readonly JsonSchema[];
  allOf?: readonly JsonSchema[];
  $ref?: string;
  $defs?: Readonly<Record<string, JsonSchema>>;
  format?: string;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  multipleOf?: number;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  default?: unknown;
  examples?: readonly unknown[];
  readOnly?: boolean;
  writeOnly?: boolean;
  'x-rule'?: string;
  'x-reference'?: string;
  'x-holdfast-ref'?: string;
  /** The ids say whom a record is shared with: also `*`, and ids that can only be typed. */
  'x-share'?: boolean;
};

export type Choice = { value: unknown; label: string };

/** A stored value that is no choice any more. */
export const noLongerOffered = (value: unknown): string =>
  `${typeof value === 'string' ? value : JSON.stringify(value)} (no longer offered)`;

export type TextInput = 'line' | 'lines' | 'secret' | 'url' | 'time' | 'address';

export type TextShape = {
  kind: 'text';
  input: TextInput;
  minLength?: number | undefined;
  maxLength?: number | undefined;
  pattern?: string | undefined;
  /** The pattern in words. */
  rule?: string | undefined;
  example?: string | undefined;
};

export type NumberShape = {
  kind: 'number';
  isInteger: boolean;
  minimum?: number | undefined;
  maximum?: number | undefined;
  /** The limits themselves are not allowed. */
  above?: number | undefined;
  below?: number | undefined;
  step?: number | undefined;
};

export type Property = {
  name: string;
  label: string;
  description?: string | undefined;
  isRequired: boolean;
  isReadOnly: boolean;
  shape: Shape;
};

/** How a value is entered. */
export type Shape = { nullable: boolean; default?: unknown } & (
  | TextShape
  | NumberShape
  /** The id of a record of a resource of the inventory. */
  | { kind: 'reference'; resource: string; isShare?: boolean }
  | { kind: 'flag' }
  | { kind: 'constant'; value: unknown }
  | { kind: 'choice'; choices: readonly Choice[] }
  | { kind: 'choices'; choices: readonly Choice[]; min: number; max?: number | undefined }
  | { kind: 'list'; item: Shape; min: number; max?: number | undefined; isUnique: boolean }
  | {
      kind: 'map';
      value: Shape;
      keyPattern?: string | undefined;
      keyRule?: string | undefined;
      max?: number | undefined;
    }
  | { kind: 'object'; properties: readonly Property[]; isOpen: boolean }
  | {
      kind: 'variants';
      /** The property whose constant says which variant it is. */
      tag: string;
      variants: readonly { value: unknown; label: string; shape: Shape }[];
    }
  | { kind: 'json'; isObject: boolean }
);

/** Deeper schemas are entered as JSON: a form of that depth is no help. */
const MAX_DEPTH = 6;
/** A text that may be longer can have several lines. */
const LINE_LENGTH = 512;

const isNull = ({ type, const: constant }: JsonSchema): boolean =>
  type === 'null' || constant === null;

const byPointer = (root: JsonSchema, ref: string): JsonSchema | undefined => {
  if (!ref.startsWith('#')) return undefined;
  let at: unknown = root;
  for (const key of ref.slice(1).split('/').slice(1))
    at = (at as Record<string, unknown> | undefined)?.[
      key.replaceAll('~1', '/').replaceAll('~0', '~')
    ];
  return at as JsonSchema | undefined;
};

/** The schema that is meant: references are followed, and null is taken out of unions and types. */
function resolve(
  schema: JsonSchema,
  root: JsonSchema,
  depth = 0,
): { schema: JsonSchema; nullable: boolean } {
  if (schema.$ref !== undefined && depth < MAX_DEPTH) {
    const target = byPointer(root, schema.$ref);
    const { $ref: _ref, ...own } = schema;
    return target
      ? resolve({ ...target, ...own }, root, depth + 1)
      : { schema: own, nullable: false };
  }
  const { type } = schema;
  if (typeof type === 'object') {
    const types = type.filter((each) => each !== 'null');
    const [only] = types;
    const rest = types.length === 1 && only !== undefined ? { ...schema, type: only } : schema;
    return { schema: rest, nullable: types.length < type.length };
  }
  const union = schema.anyOf ?? schema.oneOf;
  if (!union?.some(isNull)) return { schema, nullable: false };
  const { anyOf, oneOf, ...around } = schema;
  const others = union.filter((each) => !isNull(each));
  const [only] = others;
  if (others.length === 1 && only) {
    const inner = resolve(only, root, depth + 1);
    return { schema: { ...inner.schema, ...around }, nullable: true };
  }
  return { schema: { ...around, anyOf: others }, nullable: true };
}

const choiceLabel = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);

const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null;

/** The values of a schema that allows only some: an enum, or a union of constants. */
function choicesOf({ enum: values, anyOf, oneOf }: JsonSchema): Choice[] | undefined {
  if (values) {
    return values.every(isScalar)
      ? values.map((value) => ({ value, label: choiceLabel(value) }))
      : undefined;
  }
  const union = anyOf ?? oneOf;
  if (!union || union.length === 0) return undefined;
  if (!union.every((each) => 'const' in each && isScalar(each.const))) return undefined;
  return union.map(({ const: value, title }) => ({ value, label: title ?? choiceLabel(value) }));
}

const FORMAT_INPUTS: Readonly<Record<string, TextInput>> = {
  'date-time': 'time',
  uri: 'url',
  url: 'url',
  'uri-reference': 'url',
  ipv4: 'address',
  ipv6: 'address',
  ip: 'address',
  cidr: 'address',
  password: 'secret',
};

function textShape(schema: JsonSchema): TextShape {
  const { format, pattern, minLength, maxLength, writeOnly, examples } = schema;
  const known = FORMAT_INPUTS[format ?? ''];
  const isLong = (maxLength === undefined || maxLength > LINE_LENGTH) && format === undefined;
  // What one line of text must be has a pattern, nearly always.
  const own: TextInput = isLong && pattern === undefined ? 'lines' : 'line';
  const [example] = examples ?? [];
  return {
    kind: 'text',
    input: writeOnly === true ? 'secret' : (known ?? own),
    minLength,
    maxLength,
    pattern,
    rule: schema['x-rule'],
    example: typeof example === 'string' ? example : undefined,
  };
}

const numberShape = (schema: JsonSchema): NumberShape => ({
  kind: 'number',
  isInteger: schema.type === 'integer',
  minimum: schema.minimum,
  maximum: schema.maximum,
  above: schema.exclusiveMinimum,
  below: schema.exclusiveMaximum,
  step: schema.multipleOf,
});

type Bare = Shape extends infer Each
  ? Each extends Shape
    ? Omit<Each, 'nullable' | 'default'>
    : never
  : never;

const JSON_SHAPE = { kind: 'json', isObject: false } as const;

function listShape(schema: JsonSchema, root: JsonSchema, depth: number): Bare {
  const { items, minItems: min = 0, maxItems: max, uniqueItems } = schema;
  if (typeof items !== 'object') return JSON_SHAPE;
  const { 'x-holdfast-ref': resource } = schema;
  if (resource !== undefined) {
    const item = shapeOf({ ...items, 'x-holdfast-ref': resource }, root, depth + 1);
    return { kind: 'list', item, min, max, isUnique: uniqueItems === true };
  }
  const choices = choicesOf(resolve(items, root).schema);
  if (choices) return { kind: 'choices', choices, min, max };
  const item = shapeOf(items, root, depth + 1);
  return { kind: 'list', item, min, max, isUnique: uniqueItems === true };
}

/** An object whose keys are free, all with the same kind of value. */
function mapShape(schema: JsonSchema, root: JsonSchema, depth: number): Bare | undefined {
  const { patternProperties, additionalProperties, propertyNames, maxProperties: max } = schema;
  const patterns = Object.entries(patternProperties ?? {});
  const [only] = patterns;
  if (only && patterns.length === 1) {
    const [pattern, value] = only;
    const keyPattern = /^\^?\.\*\$?$/.test(pattern) ? undefined : pattern;
    return { kind: 'map', value: shapeOf(value, root, depth + 1), keyPattern, max };
  }
  if (typeof additionalProperties !== 'object' || Object.keys(additionalProperties).length === 0)
    return undefined;
  return {
    kind: 'map',
    value: shapeOf(additionalProperties, root, depth + 1),
    keyPattern: propertyNames?.pattern,
    keyRule: propertyNames?.['x-rule'],
    max,
  };
}

const propertyOf = (
  name: string,
  schema: JsonSchema,
  isRequired: boolean,
  root: JsonSchema,
  depth: number,
): Property => {
  const { schema: own } = resolve(schema, root);
  return {
    name,
    // Titles of schemas name types for clients, not fields for people.
    label: labelOfField(name),
    description: schema.description ?? own.description,
    isRequired,
    isReadOnly: schema.readOnly === true,
    shape: shapeOf(schema, root, depth + 1),
  };
};

function objectShape(schema: JsonSchema, root: JsonSchema, depth: number): Bare {
  const { properties = {}, required = [], additionalProperties } = schema;
  const names = Object.keys(properties);
  if (names.length === 0) {
    const map = mapShape(schema, root, depth);
    if (map) return map;
    const isOpen = additionalProperties !== false;
    return isOpen ? { kind: 'json', isObject: true } : { kind: 'object', properties: [], isOpen };
  }
  return {
    kind: 'object',
    properties: Object.entries(properties).map(([name, property]) =>
      propertyOf(name, property, required.includes(name), root, depth),
    ),
    isOpen: additionalProperties !== false,
  };
}

/** A union of objects that differ in the constant of one property. */
function variantsShape(
  union: readonly JsonSchema[],
  root: JsonSchema,
  depth: number,
): Bare | undefined {
  const schemas = union.map((each) => resolve(each, root).schema);
  const [first] = schemas;
  if (!first || schemas.some(({ properties }) => !properties)) return undefined;
  const constantOf = ({ properties }: JsonSchema, name: string): unknown => {
    const property = properties?.[name];
    return property?.const ?? (property?.enum?.length === 1 ? property.enum[0] : undefined);
  };
  const tag = Object.keys(first.properties ?? {}).find((name) => {
    const values = schemas.map((schema) => constantOf(schema, name));
    return values.every((value) => value !== undefined) && new Set(values).size === values.length;
  });
  if (tag === undefined) return undefined;
  return {
    kind: 'variants',
    tag,
    variants: schemas.map((schema) => {
      const value = constantOf(schema, tag);
      const { [tag]: _tag, ...properties } = schema.properties ?? {};
      const label = schema.title ?? choiceLabel(value);
      return { value, label, shape: shapeOf({ ...schema, properties }, root, depth + 1) };
    }),
  };
}

function bareShape(schema: JsonSchema, root: JsonSchema, depth: number): Bare {
  if (depth > MAX_DEPTH || schema.allOf) return JSON_SHAPE;
  if ('const' in schema) return { kind: 'constant', value: schema.const };
  const choices = choicesOf(schema);
  if (choices) return { kind: 'choice', choices };
  const union = schema.anyOf ?? schema.oneOf;
  if (union) return variantsShape(union, root, depth) ?? JSON_SHAPE;
  switch (schema.type) {
    case 'string': {
      const { 'x-holdfast-ref': resource } = schema;
      return resource === undefined
        ? textShape(schema)
        : { kind: 'reference', resource, ...(schema['x-share'] === true && { isShare: true }) };
    }
    case 'integer':
    case 'number':
      return numberShape(schema);
    case 'boolean':
      return { kind: 'flag' };
    case 'array':
      return listShape(schema, root, depth);
    case 'object':
      return objectShape(schema, root, depth);
    case undefined:
    default:
      return schema.properties ? objectShape(schema, root, depth) : JSON_SHAPE;
  }
}

/** How values of a schema are entered. What no field fits is entered as JSON. */
export function shapeOf(schema: JsonSchema, root: JsonSchema = schema, depth = 0): Shape {
  const { schema: own, nullable } = resolve(schema, root);
  const fallback = schema.default ?? own.default;
  return {
    ...bareShape(own, root, depth),
    nullable,
    ...(fallback !== undefined && { default: fallback }),
  };
}
