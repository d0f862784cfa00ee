import { unescapePointer } from '../shared/jsonPointer.ts';
import { decodePercent } from '../shared/percent.ts';
import { isJsonObject } from '../shared/jsonObject.ts';
import type { Schema } from './anySchema.ts';

/** Where schemas without an `$id` of their own are. Nothing is read from there. */
const BASE = 'https://schema.invalid/';

type SchemaIndex = {
  /** The URI that references of a schema are relative to. */
  bases: WeakMap<Schema, string>;
  /** Schemas by URI: those with an `$id` by it, those with an anchor by the URI with the anchor. */
  byUri: Map<string, Schema>;
  /** Schemas by their dynamic anchor, wherever they are. */
  byDynamicAnchor: Map<string, Schema[]>;
  /** What has been found so far. */
  found: WeakMap<Schema, readonly Schema[]>;
};

/** Undefined if it is no URI reference. */
function absolute(reference: string, base: string): string | undefined {
  return URL.canParse(reference, base) ? new URL(reference, base).href : undefined;
}

const withoutFragment = (uri: string): string => uri.replace(/#.*$/s, '');

/** Finds the URI of each schema inside of `root`. Objects that are no schemas count as schemas, too. */
function indexOf(root: Schema): SchemaIndex {
  const index: SchemaIndex = {
    bases: new WeakMap(),
    byUri: new Map(),
    byDynamicAnchor: new Map(),
    found: new WeakMap(),
  };
  const rest: { node: unknown; base: string }[] = [{ node: root, base: BASE }];
  index.byUri.set(BASE, root);
  for (let next = rest.pop(); next; next = rest.pop()) {
    const { node } = next;
    let { base } = next;
    if (isJsonObject(node)) {
      const { $id, $anchor, $dynamicAnchor } = node;
      if (typeof $id === 'string') base = withoutFragment(absolute($id, base) ?? base);
      if (typeof $id === 'string' || node === root) index.byUri.set(base, node);
      index.bases.set(node, base);
      for (const anchor of [$anchor, $dynamicAnchor])
        if (typeof anchor === 'string') index.byUri.set(`${base}#${anchor}`, node);
      if (typeof $dynamicAnchor === 'string')
        index.byDynamicAnchor.set($dynamicAnchor, [
          ...(index.byDynamicAnchor.get($dynamicAnchor) ?? []),
          node,
        ]);
    }
    if (typeof node === 'object' && node !== null)
      for (const child of Object.values(node)) rest.push({ node: child, base });
  }
  return index;
}

const indexByRoot = new WeakMap<Schema, SchemaIndex>();

function knownIndex(root: Schema): SchemaIndex {
  const known = indexByRoot.get(root) ?? indexOf(root);
  indexByRoot.set(root, known);
  return known;
}

/** What a JSON Pointer, without its first slash, leads to. */
function follow(start: Schema, pointer: string): unknown {
  let found: unknown = start;
  for (const token of pointer.split('/')) {
    const name = unescapePointer(decodePercent(token));
    found = (found as Record<string, unknown>)[name];
    if (typeof found !== 'object' || found === null) return undefined;
  }
  return found;
}

function referred({ bases, byUri }: SchemaIndex, schema: Schema, reference: string): unknown {
  const uri = absolute(reference, bases.get(schema) ?? BASE);
  if (uri === undefined) return undefined;
  const document = byUri.get(withoutFragment(uri));
  const fragment = uri.slice(withoutFragment(uri).length + 1);
  if (fragment === '') return document;
  if (fragment.startsWith('/')) return document && follow(document, fragment.slice(1));
  return byUri.get(`${withoutFragment(uri)}#${decodePercent(fragment)}`);
}

/**
 * The schemas that `$ref` and `$dynamicRef` of a schema inside of `root` lead to: by JSON Pointer, by anchor or by the
 * `$id` of another schema in it. A dynamic reference counts for every schema with its anchor, since the way of the
 * check to it decides which one it is.
 */
export function schemasReferredBy(root: Schema, schema: Schema): readonly Schema[] {
  const { $ref, $dynamicRef } = schema;
  if (typeof $ref !== 'string' && typeof $dynamicRef !== 'string') return [];
  const index = knownIndex(root);
  // A list has as many values as a client sends, with one schema.
  const targets = index.found.get(schema) ?? find(index, schema);
  index.found.set(schema, targets);
  return targets;
}

function find(index: SchemaIndex, schema: Schema): readonly Schema[] {
  const { $ref, $dynamicRef } = schema;
  const targets = [$ref, $dynamicRef].flatMap((reference) =>
    typeof reference === 'string' ? [referred(index, schema, reference)] : [],
  );
  const anchor = typeof $dynamicRef === 'string' ? $dynamicRef.replace(/^.*#/s, '') : '';
  return [...targets, ...(index.byDynamicAnchor.get(anchor) ?? [])].filter(isJsonObject);
}
