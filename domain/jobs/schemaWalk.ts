import { linearPattern, type LinearPattern } from '../shared/linearPattern.ts';
import { isJsonObject } from '../shared/jsonObject.ts';
import type { Schema } from './anySchema.ts';
import { schemasReferredBy } from './schemaReferences.ts';

/** Keywords with a schema, or a list of schemas, for the same value. */
const SAME_VALUE = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not'];

const schemasIn = (value: unknown): Schema[] => [value].flat().filter(isJsonObject);

/**
 * The schemas of one value. They remember those of its items and properties: a list can have half a million items, all
 * with the same schemas.
 */
export type ValueSchemas = {
  /** All schemas that say something about the value. */
  all: ReadonlySet<Schema>;
  ofItem(index: number): ValueSchemas;
  ofProperty(name: string): ValueSchemas;
};

/** Most properties of a value whose schemas are remembered: names are chosen by who sends the value. */
const MAX_REMEMBERED = 1_000;

/** The schemas of a value that has the schema `root`. */
export const schemasOf = (root: Schema): ValueSchemas => valueSchemas(root, [root]);

function valueSchemas(root: Schema, schemas: readonly Schema[]): ValueSchemas {
  const all = schemasOfValue(root, schemas);
  const properties = new Map<string, ValueSchemas>();
  const prefix = Math.max(0, ...[...all].map(prefixLength));
  const items = new Map<number, ValueSchemas>();
  const child = (schemasOfChild: (schema: Schema) => Schema[]) =>
    valueSchemas(root, [...all].flatMap(schemasOfChild));
  return {
    all,
    ofItem(index) {
      const at = Math.min(index, prefix);
      const known = items.get(at) ?? child((schema) => schemasOfItem(schema, at));
      items.set(at, known);
      return known;
    },
    ofProperty(name) {
      const known = properties.get(name) ?? child((schema) => schemasOfProperty(schema, name));
      if (properties.size < MAX_REMEMBERED) properties.set(name, known);
      return known;
    },
  };
}

const prefixLength = ({ prefixItems }: Schema): number =>
  Array.isArray(prefixItems) ? prefixItems.length : 0;

/**
 * All schemas that say something about one value, whatever the value is: alternatives count, too,
 * because a value that violates the schema must not show its secrets.
 */
function schemasOfValue(root: Schema, schemas: readonly Schema[]): ReadonlySet<Schema> {
  const all = new Set(schemas);
  for (const schema of all) {
    const further = [
      ...SAME_VALUE.flatMap((keyword) => schemasIn(schema[keyword])),
      ...(isJsonObject(schema.dependentSchemas)
        ? Object.values(schema.dependentSchemas).flatMap(schemasIn)
        : []),
      ...schemasReferredBy(root, schema),
    ];
    for (const each of further) all.add(each);
  }
  return all;
}

const patterns = new Map<string, LinearPattern | undefined>();
const MAX_PATTERNS = 1_000;

/** Whether a name matches a pattern of a schema. A pattern that cannot be compiled matches everything. */
function matches(pattern: string, name: string): boolean {
  if (patterns.size >= MAX_PATTERNS) patterns.clear();
  if (!patterns.has(pattern)) patterns.set(pattern, compiled(pattern));
  return patterns.get(pattern)?.test(name) ?? true;
}

function compiled(pattern: string): LinearPattern | undefined {
  try {
    return linearPattern(pattern);
  } catch {
    return undefined;
  }
}

/** The schemas of a property, by a schema of its object. */
const schemasOfProperty = (schema: Schema, name: string): Schema[] => {
  const { properties, patternProperties } = schema;
  return [
    ...(isJsonObject(properties) && Object.hasOwn(properties, name)
      ? schemasIn(properties[name])
      : []),
    ...(isJsonObject(patternProperties)
      ? Object.entries(patternProperties).flatMap(([pattern, each]) =>
          matches(pattern, name) ? schemasIn(each) : [],
        )
      : []),
    ...schemasIn(schema.additionalProperties),
    ...schemasIn(schema.unevaluatedProperties),
  ];
};

/** The schemas of an item, by a schema of its list. */
const schemasOfItem = (
  { prefixItems, items, contains, unevaluatedItems }: Schema,
  index: number,
): Schema[] => [
  ...(Array.isArray(prefixItems) ? schemasIn(prefixItems[index]) : []),
  ...schemasIn(items),
  ...schemasIn(contains),
  ...schemasIn(unevaluatedItems),
];
