/** A JSON Schema that someone wrote, of any form. */
export type Schema = Record<string, unknown>;

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Keywords with a schema, or a list of schemas, for the same value. */
const SAME_VALUE = ['allOf', 'anyOf', 'oneOf', 'if', 'then', 'else', 'not'];

const schemasIn = (value: unknown): Schema[] => [value].flat().filter(isObject);

/** The schema that a JSON Pointer in `$ref` names, if it is inside of `root`. */
function resolveReference(root: Schema, reference: unknown): Schema[] {
  if (typeof reference !== 'string' || !reference.startsWith('#')) return [];
  const path = reference === '#' ? [] : reference.slice(2).split('/');
  let found: unknown = root;
  for (const token of path) {
    const name = decodePercent(token).replaceAll('~1', '/').replaceAll('~0', '~');
    found = (found as Record<string, unknown> | undefined)?.[name];
    if (typeof found !== 'object' || found === null) return [];
  }
  return schemasIn(found);
}

function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

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
      ...resolveReference(root, schema.$ref),
    ];
    for (const each of further) all.add(each);
  }
  return all;
}

function matches(pattern: string, name: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(name);
  } catch {
    return true;
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
