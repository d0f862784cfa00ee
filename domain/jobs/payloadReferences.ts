import { isResourceName } from '../inventory/names.ts';
import { escapePointer } from '../shared/jsonPointer.ts';
import { isJsonObject } from '../shared/jsonObject.ts';
import type { Schema } from './anySchema.ts';
import { schemasOf, type ValueSchemas } from './schemaWalk.ts';

/**
 * Schema keyword: the value is the id of a record of this inventory resource, such as `devices`, or a
 * list of such ids.
 */
export const REFERENCE_KEYWORD = 'x-holdfast-ref';

/** Most references in one payload. */
export const MAX_REFERENCES = 500;

/** An id in a payload, and the resources of which one has to have a record with it. */
export type PayloadReference = { pointer: string; id: string; resources: readonly string[] };

const resourcesOf = ({ all }: ValueSchemas): string[] =>
  [...all].flatMap(({ [REFERENCE_KEYWORD]: resource }) =>
    typeof resource === 'string' ? [resource] : [],
  );

/**
 * `inherited`: the resources that the keyword of a list names for its items. Alternatives of a schema
 * count together: the id must be that of a record of one of their resources.
 */
function* referencesAt(
  value: unknown,
  schemas: ValueSchemas,
  pointer: string,
  inherited: readonly string[] = [],
): Generator<PayloadReference> {
  const resources = [...new Set([...inherited, ...resourcesOf(schemas)])];
  if (typeof value === 'string' && resources.length > 0) yield { pointer, id: value, resources };
  else if (Array.isArray(value))
    for (const [i, item] of value.entries()) {
      const ofItem = schemas.ofItem(i);
      if (ofItem.all.size > 0 || resources.length > 0)
        yield* referencesAt(item, ofItem, `${pointer}/${i}`, resources);
    }
  else if (isJsonObject(value))
    for (const [name, child] of Object.entries(value)) {
      const ofChild = schemas.ofProperty(name);
      if (ofChild.all.size > 0)
        yield* referencesAt(child, ofChild, `${pointer}/${escapePointer(name)}`);
    }
}

/** What the keyword has in a schema, wherever it is. */
function keywordsIn(node: unknown): unknown[] {
  if (Array.isArray(node)) return node.flatMap(keywordsIn);
  if (!isJsonObject(node)) return [];
  return Object.entries(node).flatMap(([name, child]) =>
    name === REFERENCE_KEYWORD && !isJsonObject(child) ? [child] : keywordsIn(child),
  );
}

const keywordsBySchema = new WeakMap<object, readonly unknown[]>();

/** Schemas without references cost nothing more. */
function knownKeywords(schema: object): readonly unknown[] {
  const known = keywordsBySchema.get(schema) ?? keywordsIn(schema);
  keywordsBySchema.set(schema, known);
  return known;
}

/** What the keyword has in a schema that is no resource of the inventory, as text. */
export const unknownReferencesIn = (schema: object): string[] =>
  knownKeywords(schema)
    .filter((name) => !isResourceName(name))
    .map((name) => JSON.stringify(name));

/**
 * The references in a payload, as its schema marks them, with pointers into the payload; at most one
 * more than `MAX_REFERENCES`.
 */
export function referencesIn(schema: object, payload: unknown): PayloadReference[] {
  if (knownKeywords(schema).length === 0) return [];
  const found: PayloadReference[] = [];
  for (const reference of referencesAt(payload, schemasOf(schema as Schema), '')) {
    found.push(reference);
    if (found.length > MAX_REFERENCES) break;
  }
  return found;
}
