import { linearPattern, type LinearPattern } from '../shared/linearPattern.ts';
import { isObject, type Schema } from './anySchema.ts';
import { schemasReferredBy } from './schemaReferences.ts';

/** Keywords with a schema, or a list of schemas, for the same value. */
const SAME_VALUE = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not'];

const schemasIn = (value: unknown): Schema[] => [value].flat().filter(isObject);

/**
 * All schemas that say something about one value, whatever the value is: alternatives count, too,
 * because a value that violates the schema must not show its secrets.
 */
export function schemasOfValue(root: Schema, schemas: readonly Schema[]): Set<Schema> {
  const all = new Set(schemas);
  for (const schema of all) {
    const further = [
      ...SAME_VALUE.flatMap((keyword) => schemasIn(schema[keyword])),
      ...(isObject(schema.dependentSchemas)
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
export const schemasOfProperty = (schema: Schema, name: string): Schema[] => {
  const { properties, patternProperties } = schema;
  return [
    ...(isObject(properties) && Object.hasOwn(properties, name) ? schemasIn(properties[name]) : []),
    ...(isObject(patternProperties)
      ? Object.entries(patternProperties).flatMap(([pattern, each]) =>
          matches(pattern, name) ? schemasIn(each) : [],
        )
      : []),
    ...schemasIn(schema.additionalProperties),
    ...schemasIn(schema.unevaluatedProperties),
  ];
};

/** The schemas of an item, by a schema of its list. */
export const schemasOfItem = ({ prefixItems, ...schema }: Schema, index: number): Schema[] => [
  ...(Array.isArray(prefixItems) ? schemasIn(prefixItems[index]) : []),
  ...schemasIn(schema.items),
  ...schemasIn(schema.contains),
  ...schemasIn(schema.unevaluatedItems),
];
