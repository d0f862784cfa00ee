import { MASK } from '../shared/mask.ts';
import { isJsonObject } from '../shared/jsonObject.ts';
import type { Schema } from './anySchema.ts';
import { schemasOf, type ValueSchemas } from './schemaWalk.ts';

/** Schema keyword: only the author of a payload sees the value. */
export const SECRET_KEYWORD = 'x-holdfast-secret';

/** Called with the value of each field that the schema marks; its result replaces the value. */
type Replace = (secret: unknown) => unknown;

function replaceIn(value: unknown, schemas: ValueSchemas, replace: Replace): unknown {
  if (schemas.all.size === 0) return value;
  if ([...schemas.all].some((schema) => schema[SECRET_KEYWORD] === true)) return replace(value);
  if (Array.isArray(value))
    return value.map((item, i) => replaceIn(item, schemas.ofItem(i), replace));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, child]) => [
      name,
      replaceIn(child, schemas.ofProperty(name), replace),
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
    ? (replaceIn(payload, schemasOf(schema as Schema), (value) =>
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
    replaceIn(payload, schemasOf(schema as Schema), (value) => {
      collect(value);
      return value;
    });
  return [...found].sort((a, b) => b.length - a.length);
}
