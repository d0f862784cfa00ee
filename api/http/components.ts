import { isDeepStrictEqual } from 'node:util';
import type { TSchema } from 'typebox';
import { isJsonObject } from '../../domain/shared/jsonObject.ts';

/** A JSON Schema in the OpenAPI document. */
type Schema = Readonly<Record<string, unknown>>;

/** Where a schema is used. Optional properties of requests may be null, those of responses not. */
export type SchemaUse = 'request' | 'response';

/** Keywords that may differ where a named schema is used. */
const ANNOTATIONS = [
  'description',
  'readOnly',
  'default',
  'examples',
  'x-reference',
  'x-person',
  'x-any-text',
] as const;

/** Annotations that move to the shared schema if they are the same everywhere. */
const HOISTED = ['description', 'default', 'examples'] as const;

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ONE = ['items', 'additionalProperties', 'propertyNames', 'not'];
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const MAPS = ['properties', 'patternProperties'];

const SCALARS = new Set(['string', 'integer', 'number', 'boolean']);

type Component = { title: string; declared: Schema; schema: Schema; references: Schema[] };

const without = (schema: Schema, keywords: readonly string[]): Schema =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => !keywords.includes(keyword)));

const only = (schema: Schema, keywords: readonly string[]): Schema =>
  Object.fromEntries(Object.entries(schema).filter(([keyword]) => keywords.includes(keyword)));

/**
 * The document with `string or null` in the short form, and with the description of other values that
 * may be null where generated clients look for it.
 */
export function withShortUnions<T>(node: T): T;
export function withShortUnions(node: unknown): unknown {
  if (Array.isArray(node)) return (node as unknown[]).map((each) => withShortUnions(each));
  if (!isJsonObject(node)) return node;
  const { anyOf, ...rest } = Object.fromEntries(
    Object.entries(node).map(([key, value]) => [key, withShortUnions(value)]),
  );
  const [first, second, ...others] = Array.isArray(anyOf) ? (anyOf as Schema[]) : [];
  if (!first || second?.type !== 'null' || others.length > 0)
    return anyOf === undefined ? rest : { anyOf, ...rest };
  const { type, ...keywords } = first;
  const isAny = !('const' in keywords || 'enum' in keywords);
  if (typeof type === 'string' && SCALARS.has(type) && isAny)
    return { type: [type, 'null'], ...keywords, ...rest };
  const { description, ...alternative } = first;
  return {
    anyOf: [alternative, second],
    ...(description !== undefined && { description }),
    ...rest,
  };
}

const MAX_INT32 = 2_147_483_647;

const typeOf = (value: unknown): string => {
  if (value === null) return 'null';
  return Number.isInteger(value) ? 'integer' : typeof value;
};

/**
 * A schema with what generators of clients need and a validator does not: the type of a choice, and which numbers need
 * more than 32 bits.
 */
function withTypes(schema: Schema): Schema {
  const { type, enum: choices, format, minimum = 0, maximum } = schema;
  if (Array.isArray(choices) && type === undefined) {
    const types = [...new Set(choices.map(typeOf))];
    return { type: types.length === 1 ? types[0] : types, ...schema };
  }
  const types: unknown[] = [type].flat();
  if (format !== undefined) return schema;
  if (types.includes('number')) return { ...schema, format: 'double' };
  const isShort =
    typeof maximum === 'number' && maximum <= MAX_INT32 && Number(minimum) >= -MAX_INT32;
  return types.includes('integer') && !isShort ? { ...schema, format: 'int64' } : schema;
}

/** The name of a schema: its title. */
export const nameOf = (schema: TSchema): string | undefined => {
  const { title } = schema as Schema;
  return typeof title === 'string' ? title : undefined;
};

/**
 * Collects the named schemas of a document. A schema with a title is written once, as the component
 * of that name; everything else refers to it. Schemas of responses must come before those of
 * requests: where both have one title and differ, the schema of requests gets the suffix `Input`.
 * `complete` adds to a schema what it has besides its declaration.
 */
export function createComponents(complete: (schema: TSchema) => TSchema) {
  const components = new Map<string, Component>();

  /** The component for a schema. Error: another schema has the title. */
  function componentOf(schema: Schema, title: string, use: SchemaUse): Component {
    const declared = without(schema, ['title', ...ANNOTATIONS]);
    const names = use === 'request' ? [title, `${title}Input`] : [title];
    for (const name of names) {
      const known = components.get(name);
      if (known && isDeepStrictEqual(known.declared, declared)) return known;
      if (known) continue;
      const component = { title: name, declared, schema: {}, references: [] };
      components.set(name, component);
      component.schema = expand(declared, use);
      return component;
    }
    throw new Error(`two schemas have the title ${title}`);
  }

  /** A schema whose parts are references to components. */
  function expand(schema: Schema, use: SchemaUse): Schema {
    const parts = Object.entries(schema).map(([keyword, value]): [string, unknown] => {
      if (ONE.includes(keyword) && isJsonObject(value)) return [keyword, refer(value, use)];
      if (LISTS.includes(keyword))
        return [keyword, (value as Schema[]).map((each) => refer(each, use))];
      if (!MAPS.includes(keyword)) return [keyword, value];
      const named = Object.entries(value as Record<string, Schema>);
      return [keyword, Object.fromEntries(named.map(([name, each]) => [name, refer(each, use)]))];
    });
    return withTypes(Object.fromEntries(parts));
  }

  /** The schema as it is written where it is used: a reference to a component if it has a title. */
  function refer(schema: TSchema, use: SchemaUse): Schema {
    const name = nameOf(schema);
    if (name === undefined) return expand(schema as Schema, use);
    const component = componentOf(schema as Schema, name, use);
    const reference = {
      $ref: `#/components/schemas/${component.title}`,
      ...only(schema as Schema, ANNOTATIONS),
    };
    component.references.push(reference);
    return reference;
  }

  /** Moves what all references to a component say into the component. */
  function hoist({ schema, references }: Component): Schema {
    const [first = {}] = references;
    const common = HOISTED.filter(
      (keyword) =>
        keyword in first &&
        references.every((each) => isDeepStrictEqual(each[keyword], first[keyword])),
    );
    const hoisted = only(first, common);
    for (const reference of references)
      for (const keyword of common) Reflect.deleteProperty(reference, keyword);
    return { ...schema, ...hoisted };
  }

  return {
    refer: (schema: TSchema, use: SchemaUse): Schema => refer(complete(schema), use),
    /** All components by name. Nothing may be referred to afterwards. */
    all(): Record<string, Schema> {
      const named = [...components].sort(([a], [b]) => (a < b ? -1 : 1));
      return Object.fromEntries(named.map(([name, component]) => [name, hoist(component)]));
    },
  };
}
export type Components = ReturnType<typeof createComponents>;
