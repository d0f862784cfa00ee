import type { TSchema } from 'typebox';
import { isJsonObject } from '../domain/shared/jsonObject.ts';

/** The keywords of a schema that say where null may be. */
type Node = {
  title?: string;
  readOnly?: boolean;
  type?: string | readonly string[];
  enum?: readonly unknown[];
  anyOf?: readonly Node[];
  const?: unknown;
  default?: unknown;
  properties?: Record<string, Node>;
  required?: readonly string[];
  items?: Node;
};

const allowsNull = ({ type, enum: values, anyOf, ...rest }: Node): boolean => {
  if (anyOf) return anyOf.some(allowsNull);
  if (values) return values.includes(null);
  if ('const' in rest) return rest.const === null;
  return type === undefined || type === 'null' || (Array.isArray(type) && type.includes('null'));
};

/** True for a property that a request may omit. */
const isOptional = ({ required = [] }: Node, name: string, property: Node): boolean =>
  !required.includes(name) || 'default' in property;

type Drop = (value: unknown) => void;

/**
 * Returns a function that removes null from the optional properties of a value whose schema does
 * not allow null: null there means that the property is not given. Values that the schema does not
 * describe, such as payloads, are not changed. Undefined if the schema has no such property.
 */
export function compileNullDrop(schema: TSchema): Drop | undefined {
  return dropOf(schema);
}

function dropOf({ anyOf, items, ...node }: Node): Drop | undefined {
  if (anyOf) {
    const others = anyOf.filter(({ type }) => type !== 'null');
    return others.length === 1 && others[0] ? dropOf(others[0]) : undefined;
  }
  const dropInItem = items && dropOf(items);
  if (dropInItem)
    return (value) => {
      if (Array.isArray(value)) value.forEach(dropInItem);
    };
  const properties = Object.entries(node.properties ?? {});
  const droppable = properties
    .filter(([name, property]) => isOptional(node, name, property) && !allowsNull(property))
    .map(([name]) => name);
  const inner = properties.flatMap(([name, property]) => {
    const drop = dropOf(property);
    return drop ? [[name, drop] as const] : [];
  });
  if (droppable.length === 0 && inner.length === 0) return undefined;
  return (value) => {
    if (!isJsonObject(value)) return;
    for (const name of droppable) if (value[name] === null) Reflect.deleteProperty(value, name);
    for (const [name, drop] of inner) if (Object.hasOwn(value, name)) drop(value[name]);
  };
}

/** The schema with null allowed where `compileNullDrop` removes it, as the API reference shows it. */
export const withNulls = (schema: TSchema): TSchema => documented(schema);

function documented(node: Node): Node {
  if (node.anyOf) return { ...node, anyOf: node.anyOf.map(documented) };
  if (node.items) return { ...node, items: documented(node.items) };
  if (!node.properties) return node;
  const properties = Object.entries(node.properties).map(([name, property]) => {
    // What a client sends back is as it was in a response.
    if (property.readOnly) return [name, property] as const;
    const inner = documented(property);
    return [name, isOptional(node, name, property) ? orNull(inner) : inner] as const;
  });
  const required = (node.required ?? []).filter(
    (name) => !isOptional(node, name, node.properties?.[name] ?? {}),
  );
  const { required: _, ...rest } = node;
  return {
    ...rest,
    ...(required.length > 0 && { required }),
    properties: Object.fromEntries(properties),
  };
}

function orNull(node: Node): Node {
  if (allowsNull(node)) return node;
  // A named schema stays what it is.
  if (node.title !== undefined) return { anyOf: [node, { type: 'null' }] };
  if (node.anyOf) return { ...node, anyOf: [...node.anyOf, { type: 'null' }] };
  if ('const' in node) return { anyOf: [node, { type: 'null' }] };
  return {
    ...node,
    ...(node.type !== undefined && { type: [node.type, 'null'].flat() }),
    ...(node.enum && { enum: [...node.enum, null] }),
  };
}
