import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
import type { FieldError } from '../domain/shared/errors.ts';

export type SchemaError = Omit<FieldError, 'in'>;

/** Checks a value in place and returns every error, or an empty array. */
export type Check = (value: unknown) => SchemaError[];

/** Past this many a caller has seen enough. */
const MAX_ERRORS = 50;

/** More allowed values than these are not listed in a message. */
const MAX_LISTED = 30;

/** Keyword of a schema that says in words what its `pattern` wants. */
const RULE = 'x-rule';

const build = (coerceTypes: boolean | 'array') => {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    coerceTypes,
    useDefaults: true,
    allowUnionTypes: true,
    verbose: true,
  });
  ajv.addKeyword({ keyword: RULE, schemaType: 'string' });
  // The plugin's types describe its CommonJS shape.
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  return ajv;
};

const strictAjv = build(false);
const coercingAjv = build('array');

/** A name as a step of a JSON Pointer (RFC 6901, 3). */
export const pointerStep = (name: string): string =>
  name.replaceAll('~', '~0').replaceAll('/', '~1');

function toSchemaError({
  instancePath,
  keyword,
  params,
  message,
  parentSchema,
}: ErrorObject): SchemaError {
  if (keyword === 'required') {
    return {
      pointer: `${instancePath}/${pointerStep(params.missingProperty)}`,
      code: 'required',
      message: 'is required',
    };
  }
  if (keyword === 'additionalProperties') {
    const name: string = params.additionalProperty;
    return {
      pointer: `${instancePath}/${pointerStep(name)}`,
      code: 'unknown_field',
      message: 'is not a known field',
    };
  }
  if (keyword === 'enum') {
    const allowed = params.allowedValues as unknown[];
    const listed =
      allowed.length > MAX_LISTED
        ? `the ${allowed.length} values that are listed in the API reference`
        : allowed.join(', ');
    return { pointer: instancePath, code: 'enum', message: `must be one of ${listed}` };
  }
  if (keyword === 'pattern' && typeof parentSchema?.[RULE] === 'string')
    return { pointer: instancePath, code: 'pattern', message: parentSchema[RULE] };
  return { pointer: instancePath, code: keyword, message: message ?? 'is not valid' };
}

function compile(ajv: Ajv2020, schema: TSchema): Check {
  const validate = ajv.compile(schema);
  return (value) =>
    validate(value) ? [] : (validate.errors ?? []).slice(0, MAX_ERRORS).map(toSchemaError);
}

/** A check of JSON values as they are. Fills in the schema's defaults. */
export const compileCheck = (schema: TSchema): Check => compile(strictAjv, schema);

/** A check of strings from a query, turned into the schema's types in place. */
export const compileCoercingCheck = (schema: TSchema): Check => compile(coercingAjv, schema);
