import type { TSchema } from 'typebox';
import { parseDecimal } from '../../domain/shared/decimals.ts';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';

/** A value of a parameter; null for one without `=`, such as `?follow`. */
type Written = string | null;
type Values = Readonly<Record<string, Written | readonly Written[]>>;
/** What the conversion reads of a schema. */
type Declared = TSchema & {
  type?: string;
  items?: Declared;
  anyOf?: Declared[];
  patternProperties?: Readonly<Record<string, Declared>>;
};
type DeclaredProperties = Readonly<Record<string, Declared>>;

/** What people write by hand, `status!=retired`, and the name of the parameter that it is. */
const OPERATORS: Readonly<Record<string, string>> = { '!': '.not', '>': '.gte', '<': '.lte' };

/** A property of a parameter that is an object: `customFields.owner` or `customFields[owner]`. */
const PROPERTY = /^(\w+)(?:\.([^.[\]]+(?:\.not)?)|\[([^[\]]+)\])$/;

/** The parameter that is an object, and its property, that `name` means. */
function propertyOf(
  name: string,
  declared: DeclaredProperties,
): { parameter: string; property: string } | undefined {
  const [, parameter = '', dotted, bracketed] = PROPERTY.exec(name) ?? [];
  const property = dotted ?? bracketed;
  const isObject = Object.hasOwn(declared, parameter) && declared[parameter]?.type === 'object';
  return isObject && property !== undefined ? { parameter, property } : undefined;
}

/** The name of a declared parameter that `name` is another spelling of, or `name`. */
function declaredName(name: string, declared: DeclaredProperties): string {
  const operator = OPERATORS[name.slice(-1)];
  const spelled = operator === undefined ? name : name.slice(0, -1) + operator;
  return Object.hasOwn(declared, spelled) || propertyOf(spelled, declared) ? spelled : name;
}

/**
 * The value that a text has by its schema. A text that is no value of the type stays as it is: the
 * check refuses it.
 */
export function typedValue({ type, anyOf = [] }: Declared, text: string): unknown {
  if (type === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  if (type === 'integer' || type === 'number') return parseDecimal(text, type) ?? text;
  return anyOf.map((each) => typedValue(each, text)).find((value) => value !== text) ?? text;
}

function valuesOf(schema: Declared | undefined, given: readonly Written[]): unknown {
  // `?follow` is true. `?enabled=` is not: a form or a script has no value for it.
  const texts = given.map((text) => text ?? (schema?.type === 'boolean' ? 'true' : ''));
  if (schema?.type === 'array') {
    const { items = {} } = schema;
    const parts = COMMA_SEPARATED in schema ? texts.flatMap((text) => text.split(',')) : texts;
    return parts.map((text) => typedValue(items, text));
  }
  const values = texts.map((text) => (schema ? typedValue(schema, text) : text));
  return values.length === 1 ? values[0] : values;
}

/**
 * The parameters of a query by their declared names, with values of the declared types, in lists where
 * the declaration has them.
 */
export function declaredParameters(
  query: Values,
  declared: DeclaredProperties,
): Record<string, unknown> {
  const values = new Map<string, Written[]>();
  const objects = new Map<string, Map<string, Written[]>>();
  const add = (into: Map<string, Written[]>, name: string, given: readonly Written[]) =>
    into.set(name, [...(into.get(name) ?? []), ...given]);
  for (const [written, value] of Object.entries(query)) {
    const given = [value].flat();
    const name = declaredName(written, declared);
    const found = Object.hasOwn(declared, name) ? undefined : propertyOf(name, declared);
    if (found) {
      const object = objects.get(found.parameter) ?? new Map<string, Written[]>();
      objects.set(found.parameter, object);
      add(object, found.property, given);
    } else add(values, name, given);
  }
  const typed = (
    entries: Iterable<[string, Written[]]>,
    schemaOf: (name: string) => Declared | undefined,
  ) => Object.fromEntries([...entries].map(([name, all]) => [name, valuesOf(schemaOf(name), all)]));
  const schemaOf = (name: string) => (Object.hasOwn(declared, name) ? declared[name] : undefined);
  const ofObjects = [...objects].map(([name, object]) => {
    const [schema] = Object.values(schemaOf(name)?.patternProperties ?? {});
    return [name, typed(object, () => schema)] as const;
  });
  return { ...typed(values, schemaOf), ...Object.fromEntries(ofObjects) };
}
