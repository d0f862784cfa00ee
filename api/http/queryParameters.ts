import type { TSchema } from 'typebox';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';

type Values = Readonly<Record<string, string | string[] | undefined>>;
type Declared = Readonly<Record<string, TSchema & { type?: string }>>;

/** What people write by hand, `status!=retired`, and the name of the parameter that it is. */
const OPERATORS: Readonly<Record<string, string>> = { '!': '.not', '>': '.gte', '<': '.lte' };

/** A property of a parameter that is an object: `customFields.owner` or `customFields[owner]`. */
const PROPERTY = /^(\w+)(?:\.([^.[\]]+)|\[([^[\]]+)\])$/;

/** The name of a declared parameter that `name` is another spelling of, or `name`. */
function declaredName(name: string, declared: Declared): string {
  const operator = OPERATORS[name.slice(-1)];
  const spelled = operator === undefined ? name : name.slice(0, -1) + operator;
  return Object.hasOwn(declared, spelled) ? spelled : name;
}

/**
 * The parameters of a query by their declared names, with the values as lists where the declaration
 * separates them by commas. A flag without a value is true: `?follow`.
 */
export function declaredParameters(query: Values, declared: Declared): Record<string, unknown> {
  const values = new Map<string, unknown[]>();
  const objects = new Map<string, Map<string, unknown[]>>();
  const add = (into: Map<string, unknown[]>, name: string, given: unknown[]) =>
    into.set(name, [...(into.get(name) ?? []), ...given]);
  for (const [written, value = []] of Object.entries(query)) {
    const given = [value].flat();
    const name = declaredName(written, declared);
    const schema = Object.hasOwn(declared, name) ? declared[name] : undefined;
    const [, parameter = '', dotted, bracketed] = PROPERTY.exec(name) ?? [];
    const property = dotted ?? bracketed;
    if (!schema && property !== undefined && isObject(declared, parameter)) {
      const object = objects.get(parameter) ?? new Map<string, unknown[]>();
      objects.set(parameter, object);
      add(object, property, given);
    } else if (schema && COMMA_SEPARATED in schema)
      add(
        values,
        name,
        given.flatMap((text) => text.split(',')),
      );
    else if (schema?.type === 'boolean')
      add(
        values,
        name,
        given.map((text) => (text === '' ? 'true' : text)),
      );
    else add(values, name, given);
  }
  const single = (entries: Iterable<[string, unknown[]]>) =>
    Object.fromEntries([...entries].map(([name, all]) => [name, all.length === 1 ? all[0] : all]));
  return { ...single(values), ...Object.fromEntries([...objects].map(([n, o]) => [n, single(o)])) };
}

const isObject = (declared: Declared, name: string): boolean =>
  Object.hasOwn(declared, name) && declared[name]?.type === 'object';
