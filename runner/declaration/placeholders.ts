import { isJsonObject } from '../../domain/shared/jsonObject.ts';
/** `{target.name}`, `{payload.host}`: other braces have no meaning. */
const PLACEHOLDER = /\{(target|payload)\.([^{}]*)\}/g;

const TARGET_FIELDS = ['id', 'name'] as const;
type TargetField = (typeof TARGET_FIELDS)[number];

/** A part of an argument: text as it is, or a value of the job. */
export type ArgumentPart =
  string | { of: 'target'; field: TargetField } | { of: 'payload'; field: string };

/** The parts of an argument. Error: a phrase, if a placeholder names nothing that could be known. */
export function parseArgument(argument: string): { parts: ArgumentPart[]; problem?: string } {
  const parts: ArgumentPart[] = [];
  let end = 0;
  for (const match of argument.matchAll(PLACEHOLDER)) {
    const [whole, of, field = ''] = match;
    if (match.index > end) parts.push(argument.slice(end, match.index));
    end = match.index + whole.length;
    const targetField = TARGET_FIELDS.find((each) => each === field);
    if (of === 'payload') parts.push({ of, field });
    else if (targetField) parts.push({ of: 'target', field: targetField });
    else return { parts, problem: `${whole} is not known: a target has an id and a name` };
  }
  if (end < argument.length) parts.push(argument.slice(end));
  return { parts };
}

type Schema = Record<string, unknown>;

const SCALARS = ['string', 'integer', 'number', 'boolean'];

/** True for a schema whose values are all texts, numbers or booleans. */
function isScalar(schema: unknown): boolean {
  if (!isJsonObject(schema)) return false;
  const { type, enum: values } = schema;
  if (type !== undefined)
    return [type].flat().every((each) => SCALARS.some((name) => name === each));
  const listed = 'const' in schema ? [schema.const] : values;
  return Array.isArray(listed) && listed.every((each) => SCALARS.includes(typeof each));
}

/** Why a field of the payload cannot be a part of an argument; undefined if it can. */
export function problemOfField(payload: Schema, field: string): string | undefined {
  const { properties, required } = payload;
  const schema =
    isJsonObject(properties) && Object.hasOwn(properties, field) ? properties[field] : null;
  if (schema === null) return `{payload.${field}} is not a property of the payload`;
  if (!isScalar(schema))
    return `{payload.${field}} must be a text, a number or a boolean to be part of an argument`;
  const isRequired = Array.isArray(required) && required.includes(field);
  if (!isRequired && !(isJsonObject(schema) && 'default' in schema))
    return `{payload.${field}} must be required or have a default to be part of an argument`;
  return undefined;
}
