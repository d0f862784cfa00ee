import { MASK } from '../shared/mask.ts';

/** Schema keyword: only the author of a payload sees the value. */
export const SECRET_KEYWORD = 'x-holdfast-secret';

type Schema = Record<string, unknown>;

const isObject = (value: unknown): value is Record<string, unknown> =>
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
function schemasOfValue(root: Schema, schemas: readonly Schema[]): Set<Schema> {
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

const schemasOfProperty = (schema: Schema, name: string): Schema[] => {
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

const schemasOfItem = ({ prefixItems, ...schema }: Schema, index: number): Schema[] => [
  ...(Array.isArray(prefixItems) ? schemasIn(prefixItems[index]) : []),
  ...schemasIn(schema.items),
  ...schemasIn(schema.contains),
  ...schemasIn(schema.unevaluatedItems),
];

/** Called with the value of each field that the schema marks; its result replaces the value. */
type Replace = (secret: unknown) => unknown;

function replaceIn(
  root: Schema,
  value: unknown,
  schemas: readonly Schema[],
  replace: Replace,
): unknown {
  const applicable = [...schemasOfValue(root, schemas)];
  if (applicable.length === 0) return value;
  if (applicable.some((schema) => schema[SECRET_KEYWORD] === true)) return replace(value);
  const inner = (child: unknown, schemasOf: (schema: Schema) => Schema[]) =>
    replaceIn(root, child, applicable.flatMap(schemasOf), replace);
  if (Array.isArray(value))
    return value.map((item, i) => inner(item, (schema) => schemasOfItem(schema, i)));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, child]) => [
      name,
      inner(child, (schema) => schemasOfProperty(schema, name)),
    ]),
  );
}

const hasSecretsBySchema = new WeakMap<object, boolean>();

/** True when the schema marks a field. Schemas without one cost nothing more. */
function hasSecrets(schema: object): boolean {
  const known = hasSecretsBySchema.get(schema);
  if (known !== undefined) return known;
  const found = JSON.stringify(schema).includes(`"${SECRET_KEYWORD}":true`);
  hasSecretsBySchema.set(schema, found);
  return found;
}

/** A copy of a payload in which the values that its schema marks as secret are masked as a whole. */
export const maskSecretFields = <T>(schema: object, payload: T): T =>
  hasSecrets(schema)
    ? (replaceIn(schema as Schema, payload, [schema as Schema], (value) =>
        value === null || value === '' ? value : MASK,
      ) as T)
    : payload;

/** The texts and numbers in the values that the schema marks as secret, the longest first. */
export function secretValuesIn(schema: object, payload: unknown): string[] {
  const found = new Set<string>();
  const collect = (value: unknown): void => {
    if (typeof value === 'string' || typeof value === 'number') found.add(String(value));
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(collect);
  };
  if (hasSecrets(schema))
    replaceIn(schema as Schema, payload, [schema as Schema], (value) => {
      collect(value);
      return value;
    });
  return [...found].sort((a, b) => b.length - a.length);
}
