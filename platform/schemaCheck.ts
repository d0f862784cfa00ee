import { createHash } from 'node:crypto';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import { REFERENCE_KEYWORD } from '../domain/jobs/payloadReferences.ts';
import { SECRET_KEYWORD } from '../domain/jobs/secretFields.ts';
import type { FieldError } from '../domain/shared/errors.ts';

export type SchemaError = Omit<FieldError, 'in'>;

/** Checks a value, sets defaults in place, and returns all errors; none if it is valid. */
export type SchemaCheck = (value: unknown) => SchemaError[];

/** Maximum number of errors that are reported. */
const MAX_ERRORS = 50;

/** Maximum number of allowed values that a message lists. */
const MAX_LISTED = 30;

/** Schema keyword with a description of `pattern` for error messages. */
const RULE_KEYWORD = 'x-rule';

/** Schema keywords that describe values and check nothing; see `api/http/references.ts`. */
const ANNOTATIONS = ['x-reference', 'x-person', 'x-subject', 'x-field-change', 'x-any-id'];

/** Schema keyword: a query parameter can have several values, separated by commas. */
export const COMMA_SEPARATED = 'x-comma-separated';

const createAjv = () => {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    useDefaults: true,
    allowUnionTypes: true,
    verbose: true,
    // It takes half the time of compiling; what it removes, the engine removes too.
    code: { optimize: false },
  });
  ajv.addKeyword({ keyword: RULE_KEYWORD, schemaType: 'string' });
  for (const keyword of [...ANNOTATIONS, REFERENCE_KEYWORD]) ajv.addKeyword({ keyword });
  for (const keyword of [COMMA_SEPARATED, SECRET_KEYWORD])
    ajv.addKeyword({ keyword, schemaType: 'boolean' });
  // The plugin's types describe its CommonJS shape.
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  return ajv;
};

const ajv = createAjv();

/** Escapes a name as a token of a JSON Pointer (RFC 6901, 3). */
export const escapePointer = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1');

const count = (limit: number, one: string, many: string): string =>
  `${limit} ${limit === 1 ? one : many}`;

/** Text that is in a format, by the name of the format. */
export const FORMAT_RULES: Readonly<Record<string, string>> = {
  'date-time': 'must be a time in RFC 3339, such as 2026-11-21T09:30:00Z',
  email: 'must be an e-mail address',
  uri: 'must be a URI',
};

/** A rule that no other text describes. */
const UNKNOWN_RULE = 'does not have the required form';

type Params = Record<string, unknown>;

/** What a value must be, by the keyword of the schema that it violates. */
export const KEYWORD_RULES: Readonly<Record<string, (params: Params, schema: Params) => string>> = {
  type: ({ type }) => `must be ${[type].flat().join(' or ')}`,
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  enum: ({ allowedValues }) => {
    const values = allowedValues as unknown[];
    return values.length > MAX_LISTED
      ? `must be one of the ${values.length} values listed in the API reference`
      : `must be one of ${values.join(', ')}`;
  },
  required: () => 'is required',
  additionalProperties: () => 'is not a known field',
  propertyNames: () => 'has an invalid name',
  pattern: (_, { [RULE_KEYWORD]: rule }) => (typeof rule === 'string' ? rule : UNKNOWN_RULE),
  format: ({ format }) => FORMAT_RULES[String(format)] ?? UNKNOWN_RULE,
  minLength: ({ limit }) =>
    limit === 1
      ? 'must not be empty'
      : `must have at least ${count(Number(limit), 'character', 'characters')}`,
  maxLength: ({ limit }) => `must have at most ${count(Number(limit), 'character', 'characters')}`,
  minItems: ({ limit }) => `must have at least ${count(Number(limit), 'item', 'items')}`,
  maxItems: ({ limit }) => `must have at most ${count(Number(limit), 'item', 'items')}`,
  uniqueItems: () => 'must not repeat an item',
  minProperties: ({ limit }) => `must have at least ${count(Number(limit), 'field', 'fields')}`,
  maxProperties: ({ limit }) => `must have at most ${count(Number(limit), 'field', 'fields')}`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${String(limit)}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${String(limit)}`,
};

/** Keywords whose rules a reader cannot see from the type and the choices of a value. */
const UNSEEN = [
  'pattern',
  'format',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'minItems',
  'maxItems',
  'uniqueItems',
] as const;

/** What a value of a schema, or each of its items, must be: the messages of errors. */
export function rulesOf(schema: TSchema): string[] {
  const { items, ...keywords } = schema as Params & { items?: TSchema };
  const own = UNSEEN.filter((keyword) => keyword in keywords).map((keyword) => {
    const limit = keywords[keyword];
    return KEYWORD_RULES[keyword]?.({ limit, format: limit }, keywords) ?? UNKNOWN_RULE;
  });
  return [...own, ...(items ? rulesOf(items).map((rule) => `each item ${rule}`) : [])];
}

/** Error codes that are not the keyword of the schema. */
const CODES: Readonly<Record<string, string>> = { additionalProperties: 'unknown_field' };

function toSchemaError({
  instancePath,
  keyword,
  params,
  parentSchema,
  propertyName,
}: ErrorObject): SchemaError {
  const details = params as Params;
  const { missingProperty, additionalProperty } = details;
  const property = [missingProperty, additionalProperty, details.propertyName, propertyName].find(
    (name) => typeof name === 'string',
  );
  return {
    pointer:
      typeof property === 'string' ? `${instancePath}/${escapePointer(property)}` : instancePath,
    code: CODES[keyword] ?? keyword,
    message: KEYWORD_RULES[keyword]?.(details, parentSchema ?? {}) ?? UNKNOWN_RULE,
  };
}

/**
 * Replaces the errors of all alternatives of a union by those of the alternative that the value is
 * meant to be, or else by one error that lists what the value can be.
 */
function simplifyUnions(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const union = errors.find(({ keyword }) => keyword === 'anyOf');
  if (!union) return errors;
  const { schemaPath, instancePath } = union;
  const isInside = (error: ErrorObject) =>
    error.schemaPath.startsWith(`${schemaPath}/`) &&
    (error.instancePath === instancePath || error.instancePath.startsWith(`${instancePath}/`));
  const branches = Map.groupBy(errors.filter(isInside), (error) =>
    Number.parseInt(error.schemaPath.slice(schemaPath.length + 1), 10),
  );
  const isOther = (error: ErrorObject) =>
    error.instancePath === instancePath && ['type', 'const'].includes(error.keyword);
  const [meant] = [...branches.values()]
    .filter((branch) => !branch.some(isOther))
    .sort((a, b) => a.length - b.length);
  const alternatives = [...branches.values()].flat().filter(isOther);
  const listed: ErrorObject = {
    ...union,
    keyword: 'type',
    params: {
      type: alternatives.flatMap(({ keyword, params }) =>
        keyword === 'type'
          ? (params as { type: string }).type
          : JSON.stringify((params as { allowedValue: unknown }).allowedValue),
      ),
    },
  };
  const others = errors.filter((error) => error !== union && !isInside(error));
  return simplifyUnions([...others, ...(meant ?? [listed])]);
}

/** Equal schemas, such as the parameters of paths and pages, have one function, whose code is in a process once. */
const compiledByContent = new Map<string, ValidateFunction>();

function compile(schema: TSchema): ValidateFunction {
  const content = createHash('sha256').update(JSON.stringify(schema)).digest('base64');
  const known = compiledByContent.get(content) ?? ajv.compile(schema);
  compiledByContent.set(content, known);
  return known;
}

/**
 * Compiles a check of JSON values at its first use: a process that starts would wait for checks that it
 * may never make.
 */
export function compileCheck(schema: TSchema): SchemaCheck {
  let compiled: ValidateFunction | undefined;
  return (value) => ((compiled ??= compile(schema))(value) ? [] : errorsOf(compiled));
}

/** The errors of the last value that a compiled check has refused. */
export const errorsOf = ({ errors }: ValidateFunction): SchemaError[] =>
  simplifyUnions(errors ?? [])
    .slice(0, MAX_ERRORS)
    .map(toSchemaError);
