import { _, Ajv2020, type CodeKeywordDefinition, type ValidateFunction } from 'ajv/dist/2020.js';
import type { RegExpEngine, RegExpLike } from 'ajv/dist/types/index.js';
import addFormats from 'ajv-formats';
import { linearPattern } from '../domain/shared/linearPattern.ts';
import { sizeOf, type Size } from './checkEffort.ts';
import {
  errorsOf,
  useLinearUniqueItems,
  type SchemaCheck,
  type SchemaError as Refusal,
} from './schemaCheck.ts';

/** A schema that someone else wrote cannot be used. The message says why. */
export class SchemaError extends Error {}

/**
 * Maximum work of a check: the parts of the value times those of the schema, and the characters of the value times the
 * patterns of the schema. It takes about a second.
 */
const MAX_WORK = 50_000_000;

/** Maximum work of a check that goes on after the first error: each part can have an error for each part of the schema. */
const MAX_LISTED_WORK = 200_000;

/** Maximum number of references that a check follows: each can lead to several others. */
const MAX_FOLLOWED = 1_000_000;

/** Keywords that read the characters of a text or a name. */
const READING = ['pattern', 'patternProperties', 'format'];

const TOO_COMPLEX: Refusal = {
  pointer: '',
  code: 'too_complex',
  message:
    'takes too long to be checked by its schema; send less in one value, or simplify the schema',
};

class TooMuchWork extends Error {}

/** Ajv distinguishes patterns by their text. */
const linearRegExp: RegExpEngine = Object.assign(
  (pattern: string): RegExpLike =>
    Object.assign(linearPattern(pattern), { toString: () => pattern }),
  { code: 'linearRegExp' },
);

/** @param follow called for each reference that a check follows. */
function createAjv(allErrors: boolean, follow: () => void): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
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
  for (const keyword of ['$ref', '$dynamicRef']) {
    const { code } = ajv.getKeyword(keyword) as CodeKeywordDefinition;
    ajv.removeKeyword(keyword).addKeyword({
      keyword,
      schemaType: 'string',
      code(context) {
        const { gen } = context;
        gen.code(_`${gen.scopeValue('func', { ref: follow })}()`);
        code(context);
      },
    });
  }
  useLinearUniqueItems(ajv);
  return ajv;
}

/** The parts of a schema, and how many of them read characters. */
function sizeOfSchema(schema: object): { parts: number; patterns: number } {
  const text = JSON.stringify(schema);
  const patterns = READING.map((keyword) => text.split(`"${keyword}":`).length - 1);
  return { parts: sizeOf(schema).parts, patterns: patterns.reduce((sum, each) => sum + each, 0) };
}

/**
 * Compiles a check by a JSON Schema (2020-12) of someone else, such as the payload of a job type that a
 * runner has announced. Keywords that are not known are ignored; references lead nowhere outside of the
 * schema. What one check does has a limit, whatever the schema is: a value beyond it has the error `too_complex`.
 * Error: `SchemaError`.
 */
export function compileForeignSchema(schema: object): SchemaCheck {
  let followed = 0;
  const follow = () => {
    followed += 1;
    if (followed > MAX_FOLLOWED) throw new TooMuchWork();
  };
  const compile = (allErrors: boolean): ValidateFunction => {
    followed = 0;
    try {
      return createAjv(allErrors, follow).compile(schema);
    } catch (error) {
      throw new SchemaError(error instanceof Error ? error.message : String(error));
    }
  };
  const all = compile(true);
  let first: ValidateFunction | undefined;
  const { parts, patterns } = sizeOfSchema(schema);
  const workOf = (size: Size) => size.parts * parts + size.characters * patterns;

  /** Undefined if there is too much to do. */
  function errorsWith(validate: ValidateFunction, value: unknown): Refusal[] | undefined {
    followed = 0;
    try {
      return validate(value) ? [] : errorsOf(validate);
    } catch (error) {
      if (error instanceof TooMuchWork) return undefined;
      throw error;
    }
  }

  return (value) => {
    const work = workOf(sizeOf(value));
    if (work > MAX_WORK) return [TOO_COMPLEX];
    const errors = work > MAX_LISTED_WORK ? undefined : errorsWith(all, value);
    return errors ?? errorsWith((first ??= compile(false)), value) ?? [TOO_COMPLEX];
  };
}
