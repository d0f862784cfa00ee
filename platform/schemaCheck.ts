import { createHash } from 'node:crypto';
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import type { TSchema } from 'typebox';
import { REFERENCE_KEYWORD } from '../domain/jobs/payloadReferences.ts';
import { SECRET_KEYWORD } from '../domain/jobs/secretFields.ts';
import { MAX_FIELD_ERRORS, type FieldError } from '../domain/shared/errors.ts';
import { cutPointer, pointerTo } from '../domain/shared/jsonPointer.ts';
import { isMultipleOf } from '../domain/shared/multiples.ts';
import { addFormats } from './ajvFormats.ts';
import { areUnique, sizeOf } from './checkEffort.ts';
import { counted } from '../domain/shared/counted.ts';

export type SchemaError = Omit<FieldError, 'in'>;

/** Checks a value, sets defaults in place, and returns all errors; none if it is valid. */
export type SchemaCheck = (value: unknown) => SchemaError[];

/** Maximum number of errors that are read to report them: a union has errors of each of its alternatives. */
const MAX_READ_ERRORS = 5_000;

/**
 * Maximum number of values in what is checked to the end. A check of more values ends at the first error: each value can
 * have several, and a client chooses how many values it sends.
 */
const MAX_LISTED_PARTS = 50_000;

/** Maximum number of allowed values that a message lists. */
const MAX_LISTED = 30;

/** Schema keyword with a description of `pattern` for error messages. */
const RULE_KEYWORD = 'x-rule';

/** Schema keywords that check nothing; see `api/http/references.ts`, and `ACCEPTS_ANY_TEXT` in `api/http/schemas.ts`. */
const ANNOTATIONS = [
  'x-reference',
  'x-person',
  'x-subject',
  'x-field-change',
  'x-any-id',
  'x-any-text',
];

/** Schema keyword: a query parameter can have several values, separated by commas. */
export const COMMA_SEPARATED = 'x-comma-separated';

/**
 * Replaces the keyword `uniqueItems`, which compares each item of a list with each other one if they can be lists or
 * objects: minutes for a list of a megabyte.
 */
export function useLinearUniqueItems(ajv: Ajv2020): void {
  ajv.removeKeyword('uniqueItems').addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    validate: (isWanted: boolean, items: readonly unknown[]) => !isWanted || areUnique(items),
  });
}

/** Replaces the keyword `multipleOf`, which divides doubles: 0.07 was no multiple of 0.01. */
export function useDecimalMultiples(ajv: Ajv2020): void {
  ajv.removeKeyword('multipleOf').addKeyword({
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    errors: false,
    validate: (step: number, value: number) => isMultipleOf(value, step),
  });
}

/** @param allErrors whether a check goes on after the first error. */
const createAjv = (allErrors: boolean) => {
  const ajv = new Ajv2020({
    allErrors,
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
  addFormats(ajv);
  useLinearUniqueItems(ajv);
  useDecimalMultiples(ajv);
  return ajv;
};

const ENGINES = { all: createAjv(true), first: createAjv(false) } as const;

/** Text that is in a format, by the name of the format. */
export const FORMAT_RULES: Readonly<Record<string, string>> = {
  'date-time': 'must be a time in RFC 3339, such as 2026-11-21T09:30:00Z',
  email: 'must be an e-mail address',
  uri: 'must be a URI',
};

/** A value of a JSON type, by the name of the type. */
const TYPE_NOUNS: ReadonlyMap<string, string> = new Map([
  ['array', 'an array'],
  ['boolean', 'true or false'],
  ['integer', 'an integer'],
  ['number', 'a number'],
  ['object', 'an object'],
  ['string', 'a string'],
]);

/** Says of which JSON types a value must be, each once. */
export const typeRule = (types: readonly string[]): string =>
  `must be ${[...new Set(types)].map((type) => TYPE_NOUNS.get(type) ?? type).join(' or ')}`;

/** A rule that no other text describes. */
const UNKNOWN_RULE = 'does not have the required form';

type Params = Record<string, unknown>;

/** What a value must be, by the keyword of the schema that it violates. */
export const KEYWORD_RULES: Readonly<Record<string, (params: Params, schema: Params) => string>> = {
  type: ({ type }) => typeRule([type].flat().map(String)),
  const: ({ allowedValue }) => `must be ${JSON.stringify(allowedValue)}`,
  enum: ({ allowedValues }) => {
    const values = allowedValues as unknown[];
    return values.length > MAX_LISTED
      ? `must be one of the ${counted(values.length, 'value')} listed in the API reference`
      : `must be one of ${values.join(', ')}`;
  },
  required: () => 'is required',
  additionalProperties: () => 'is not a known field',
  anyOf: () => 'has none of the allowed forms',
  propertyNames: () => 'has an invalid name',
  pattern: (_, { [RULE_KEYWORD]: rule }) => (typeof rule === 'string' ? rule : UNKNOWN_RULE),
  format: ({ format }) => FORMAT_RULES[String(format)] ?? UNKNOWN_RULE,
  minLength: ({ limit }) =>
    limit === 1 ? 'must not be empty' : `must have at least ${counted(Number(limit), 'character')}`,
  maxLength: ({ limit }) => `must have at most ${counted(Number(limit), 'character')}`,
  minItems: ({ limit }) => `must have at least ${counted(Number(limit), 'item')}`,
  maxItems: ({ limit }) => `must have at most ${counted(Number(limit), 'item')}`,
  uniqueItems: () => 'must not repeat an item',
  minProperties: ({ limit }) => `must have at least ${counted(Number(limit), 'field')}`,
  maxProperties: ({ limit }) => `must have at most ${counted(Number(limit), 'field')}`,
  minimum: ({ limit }) => `must be at least ${String(limit)}`,
  maximum: ({ limit }) => `must be at most ${String(limit)}`,
  exclusiveMinimum: ({ limit }) => `must be more than ${String(limit)}`,
  exclusiveMaximum: ({ limit }) => `must be less than ${String(limit)}`,
  multipleOf: (_, { multipleOf }) => `must be a multiple of ${String(multipleOf)}`,
};

/** Keywords whose rules a reader cannot see from the type and the choices of a value. */
const UNSEEN = [
  'pattern',
  'format',
  'minLength',
  'maxLength',
  'minimum',
  'maximum',
  'multipleOf',
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
  const path = cutPointer(instancePath);
  return {
    pointer: typeof property === 'string' ? cutPointer(path + pointerTo([property])) : path,
    code: CODES[keyword] ?? keyword,
    message: KEYWORD_RULES[keyword]?.(details, parentSchema ?? {}) ?? UNKNOWN_RULE,
  };
}

/** Whether an error is one of an alternative of a union, which itself is an error. */
const isInside = (union: ErrorObject, { schemaPath, instancePath }: ErrorObject): boolean =>
  schemaPath.startsWith(`${union.schemaPath}/`) &&
  (instancePath === union.instancePath || instancePath.startsWith(`${union.instancePath}/`));

/**
 * The errors of the alternative that the value of a union is meant to be, or else one error that lists what
 * the value can be.
 */
function meantErrors(union: ErrorObject, inside: readonly ErrorObject[]): readonly ErrorObject[] {
  const branches = Map.groupBy(inside, ({ schemaPath }) =>
    Number.parseInt(schemaPath.slice(union.schemaPath.length + 1), 10),
  );
  const isOther = (error: ErrorObject) =>
    error.instancePath === union.instancePath && ['type', 'const'].includes(error.keyword);
  const [meant] = [...branches.values()]
    .filter((branch) => !branch.some(isOther))
    .sort((a, b) => a.length - b.length);
  if (meant) return meant;
  const type = inside
    .filter(isOther)
    .flatMap(({ keyword, params }) =>
      keyword === 'type'
        ? (params as { type: string }).type
        : JSON.stringify((params as { allowedValue: unknown }).allowedValue),
    );
  // The errors behind references do not say which alternative they are of.
  return [type.length === 0 ? union : { ...union, keyword: 'type', params: { type } }];
}

/** Replaces the errors of all alternatives of unions by those that are meant. The error of a union follows theirs. */
function simplifyUnions(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const kept: ErrorObject[] = [];
  for (const error of errors) {
    if (error.keyword !== 'anyOf') {
      kept.push(error);
      continue;
    }
    // Those of the value of the union are the last ones.
    const start =
      1 + kept.findLastIndex((each) => !each.instancePath.startsWith(error.instancePath));
    const ofValue = kept.splice(start);
    const inside = ofValue.filter((each) => isInside(error, each));
    const others = ofValue.filter((each) => !isInside(error, each));
    kept.push(...others, ...meantErrors(error, inside));
  }
  return kept;
}

/** What a check goes on to: the end, or the first error. */
type Extent = keyof typeof ENGINES;

/** Equal schemas, such as the parameters of paths and pages, have one function, whose code is in a process once. */
const compiledByContent = new Map<string, ValidateFunction>();

function compile(schema: TSchema, extent: Extent): ValidateFunction {
  const content = createHash('sha256').update(extent).update(JSON.stringify(schema));
  const key = content.digest('base64');
  const known = compiledByContent.get(key) ?? ENGINES[extent].compile(schema);
  compiledByContent.set(key, known);
  return known;
}

/**
 * Compiles a check of JSON values at its first use: a process that starts would wait for checks that it
 * may never make.
 */
export function compileCheck(schema: TSchema): SchemaCheck {
  const compiled: Partial<Record<Extent, ValidateFunction>> = {};
  return (value) => {
    const extent = sizeOf(value) > MAX_LISTED_PARTS ? 'first' : 'all';
    const validate = (compiled[extent] ??= compile(schema, extent));
    return validate(value) ? [] : errorsOf(validate);
  };
}

/** Whether a value may have further errors than those that a check has returned. */
export const mayHaveMore = (value: unknown, errors: readonly SchemaError[]): boolean =>
  errors.length === MAX_FIELD_ERRORS || (errors.length > 0 && sizeOf(value) > MAX_LISTED_PARTS);

/** The errors of the last value that a compiled check has refused. The check forgets them. */
export function errorsOf(validate: ValidateFunction): SchemaError[] {
  const errors = (validate.errors ?? []).slice(0, MAX_READ_ERRORS);
  validate.errors = null;
  const different = new Map<string, SchemaError>();
  for (const each of simplifyUnions(errors)) {
    const error = toSchemaError(each);
    different.set(JSON.stringify(error), error);
    if (different.size === MAX_FIELD_ERRORS) break;
  }
  return [...different.values()];
}
