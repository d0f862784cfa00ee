import { _, Ajv2020, type CodeKeywordDefinition, type ValidateFunction } from 'ajv/dist/2020.js';
import type { RegExpEngine } from 'ajv/dist/types/index.js';
import { errorMessage } from '../domain/shared/errorMessage.ts';
import { linearPattern } from '../domain/shared/linearPattern.ts';
import { addFormats } from './ajvFormats.ts';
import { sizeOf } from './checkEffort.ts';
import {
  errorsOf,
  useDecimalMultiples,
  useLinearUniqueItems,
  type SchemaCheck,
  type SchemaError,
} from './schemaCheck.ts';

/** A schema that someone else wrote cannot be used. The message says why. */
export class SchemaNotAccepted extends Error {}

/**
 * Maximum work of a check, about half a second: the parts of the value times those of the schema, the characters that are
 * matched times the steps of their patterns, and `WORK_OF_REFERENCE` for each reference that is followed.
 */
const MAX_WORK = 20_000_000;
const WORK_OF_REFERENCE = 20;

/** Maximum work of a check that goes on after the first error: each part can have an error for each part of the schema. */
const MAX_LISTED_WORK = 200_000;

/** Limits of a schema, since compiling takes time, too: its objects, lists and values, and the steps of all its patterns. */
const MAX_PARTS = 20_000;
const MAX_PATTERN_STEPS = 20_000;
/** Ajv tests each name of an object by all patterns of names, and compiles them in more than linear time. */
const MAX_NAME_PATTERNS = 300;

const TOO_COMPLEX: SchemaError = {
  pointer: '',
  code: 'too_complex',
  message:
    'takes too long to be checked by its schema; send less in one value, or simplify the schema',
};

class TooMuchWork extends Error {}

/** @param spend called with the work of each test. */
function linearRegExp(spend: (work: number) => void): RegExpEngine {
  let steps = 0;
  const compile = (text: string) => {
    const pattern = linearPattern(text);
    steps += pattern.size;
    if (steps > MAX_PATTERN_STEPS) throw new SchemaNotAccepted('The patterns are too long');
    return {
      test(value: string): boolean {
        spend(value.length * pattern.size);
        return pattern.test(value);
      },
      // Ajv distinguishes patterns by their text.
      toString: () => text,
    };
  };
  return Object.assign(compile, { code: 'linearRegExp' });
}

/** @param spend called with the work of what a check repeats. */
function createAjv(allErrors: boolean, spend: (work: number) => void): Ajv2020 {
  const ajv = new Ajv2020({
    allErrors,
    strict: false,
    useDefaults: true,
    verbose: true,
    // It would print what others wrote.
    logger: false,
    code: { optimize: false, regExp: linearRegExp(spend) },
  });
  addFormats(ajv, { mode: 'fast' });
  const follow = () => spend(WORK_OF_REFERENCE);
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
  useDecimalMultiples(ajv);
  return ajv;
}

/** How many patterns of names there are in a schema, wherever they are. */
function namePatternsIn(schema: unknown): number {
  if (typeof schema !== 'object' || schema === null) return 0;
  const { patternProperties } = schema as { patternProperties?: unknown };
  const own =
    typeof patternProperties === 'object' ? Object.keys(patternProperties ?? {}).length : 0;
  return Object.values(schema).reduce<number>((sum, each) => sum + namePatternsIn(each), own);
}

/**
 * Compiles a check by a JSON Schema (2020-12) of someone else, such as the payload of a job type that a
 * runner has announced. Keywords that are not known are ignored; references lead nowhere outside of the
 * schema. What one check does has a limit, whatever the schema is: a value beyond it has the error `too_complex`.
 * Error: `SchemaNotAccepted`.
 */
export function compileForeignSchema(schema: object): SchemaCheck {
  const parts = sizeOf(schema);
  if (parts > MAX_PARTS) throw new SchemaNotAccepted(`The schema has more than ${MAX_PARTS} parts`);
  if (namePatternsIn(schema) > MAX_NAME_PATTERNS)
    throw new SchemaNotAccepted(`The schema has more than ${MAX_NAME_PATTERNS} patterns of names`);
  let left = Infinity;
  const spend = (work: number) => {
    left -= work;
    if (left < 0) throw new TooMuchWork();
  };
  const compile = (allErrors: boolean): ValidateFunction => {
    left = Infinity;
    try {
      return createAjv(allErrors, spend).compile(schema);
    } catch (error) {
      throw new SchemaNotAccepted(errorMessage(error));
    }
  };
  const all = compile(true);
  let first: ValidateFunction | undefined;

  /** Undefined if there is too much to do. */
  function errorsWith(validate: ValidateFunction, value: unknown, work: number) {
    left = MAX_WORK - work;
    try {
      return validate(value) ? [] : errorsOf(validate);
    } catch (error) {
      if (error instanceof TooMuchWork) return undefined;
      throw error;
    }
  }

  return (value) => {
    const work = sizeOf(value) * parts;
    if (work > MAX_WORK) return [TOO_COMPLEX];
    const errors = work > MAX_LISTED_WORK ? undefined : errorsWith(all, value, work);
    return errors ?? errorsWith((first ??= compile(false)), value, work) ?? [TOO_COMPLEX];
  };
}
