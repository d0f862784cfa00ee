import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { TSchema } from 'typebox';
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

const createAjv = (coerceTypes: boolean | 'array') => {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: true,
    coerceTypes,
    useDefaults: true,
    allowUnionTypes: true,
    verbose: true,
  });
  ajv.addKeyword({ keyword: RULE_KEYWORD, schemaType: 'string' });
  // The plugin's types describe its CommonJS shape.
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  return ajv;
};

const strictAjv = createAjv(false);
const coercingAjv = createAjv('array');

/** Escapes a name as a token of a JSON Pointer (RFC 6901, 3). */
export const escapePointer = (name: string): string =>
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
      pointer: `${instancePath}/${escapePointer(params.missingProperty)}`,
      code: 'required',
      message: 'is required',
    };
  }
  if (keyword === 'additionalProperties') {
    const name: string = params.additionalProperty;
    return {
      pointer: `${instancePath}/${escapePointer(name)}`,
      code: 'unknown_field',
      message: 'is not a known field',
    };
  }
  if (keyword === 'enum') {
    const allowed = params.allowedValues as unknown[];
    const listed =
      allowed.length > MAX_LISTED
        ? `the ${allowed.length} values listed in the API reference`
        : allowed.join(', ');
    return { pointer: instancePath, code: 'enum', message: `must be one of ${listed}` };
  }
  if (keyword === 'pattern' && typeof parentSchema?.[RULE_KEYWORD] === 'string')
    return { pointer: instancePath, code: 'pattern', message: parentSchema[RULE_KEYWORD] };
  return { pointer: instancePath, code: keyword, message: message ?? 'is not valid' };
}

function compile(ajv: Ajv2020, schema: TSchema): SchemaCheck {
  const validate = ajv.compile(schema);
  return (value) =>
    validate(value) ? [] : (validate.errors ?? []).slice(0, MAX_ERRORS).map(toSchemaError);
}

/** Compiles a check of JSON values. */
export const compileCheck = (schema: TSchema): SchemaCheck => compile(strictAjv, schema);

/** Compiles a check of query parameters, whose strings it converts to the types of the schema. */
export const compileCoercingCheck = (schema: TSchema): SchemaCheck => compile(coercingAjv, schema);
