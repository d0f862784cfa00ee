import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { RegExpEngine, RegExpLike } from 'ajv/dist/types/index.js';
import addFormats from 'ajv-formats';
import { RE2JS } from 're2js';
import { errorsOf, type SchemaCheck } from './schemaCheck.ts';

/** A schema that someone else wrote cannot be used. The message says why. */
export class SchemaError extends Error {}

/** Ajv distinguishes patterns by their text. */
class LinearPattern implements RegExpLike {
  readonly #text: string;
  readonly #compiled: RE2JS;

  constructor(text: string, compiled: RE2JS) {
    this.#text = text;
    this.#compiled = compiled;
  }

  test(text: string): boolean {
    return this.#compiled.matcher(text).find();
  }

  toString(): string {
    return this.#text;
  }
}

/**
 * Regular expressions of schemas that we did not write: RE2 takes time in proportion to the text, where
 * others can take for ever. Error: a syntax that it does not have, such as back references.
 */
const linearRegExp: RegExpEngine = Object.assign(
  (pattern: string): RegExpLike => {
    const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
    return new LinearPattern(pattern, compiled);
  },
  { code: 'linearRegExp' },
);

/**
 * Compiles a check by a JSON Schema (2020-12) of someone else, such as the payload of a job type that a
 * runner has announced. Keywords that are not known are ignored; references lead nowhere outside of the
 * schema. Error: `SchemaError`.
 */
export function compileForeignSchema(schema: object): SchemaCheck {
  const ajv = new Ajv2020({
    allErrors: true,
    strict: false,
    useDefaults: true,
    verbose: true,
    // It would print what others wrote.
    logger: false,
    code: { optimize: false, regExp: linearRegExp },
  });
  (addFormats as unknown as (ajv: Ajv2020, options: { mode: 'fast' }) => void)(ajv, {
    mode: 'fast',
  });
  let validate: ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    throw new SchemaError(error instanceof Error ? error.message : String(error));
  }
  return (value) => (validate(value) ? [] : errorsOf(validate));
}
