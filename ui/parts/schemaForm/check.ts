import { errorMessage } from '../../../domain/shared/errorMessage.ts';
import { isJsonObject } from '../../../domain/shared/jsonObject.ts';
import { isMultipleOf } from '../../../domain/shared/multiples.ts';
import { isExactNumber, parseStrictJson, problemText } from '../../../platform/strictJson.ts';
import { formatCount, formatNumber, formatNumberOf } from '../format.ts';
import type { FieldError } from '../problems.ts';
import { childPointer } from './pointer.ts';
import type { NumberShape, Property, Shape, TextShape } from './shape.ts';

const REQUIRED = 'is required';

/** Patterns are ECMAScript's with the flag `u`, as the service checks them; others check nothing. */
function matches(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text);
  } catch {
    return true;
  }
}

/** Characters, as JSON Schema counts them: code points. */
const lengthOf = (text: string): number => Array.from(text).length;

function textError(shape: TextShape, text: string): string | undefined {
  const { minLength = 0, maxLength, pattern, rule, input } = shape;
  const length = lengthOf(text);
  if (length < minLength)
    return minLength === 1 ? 'must not be empty' : `must have at least ${minLength} characters`;
  if (maxLength !== undefined && length > maxLength)
    return `must have at most ${formatCount(maxLength)} characters; it has ${formatCount(length)}`;
  if (pattern !== undefined && !matches(pattern, text)) return rule ?? `must match ${pattern}`;
  if (input === 'time' && Number.isNaN(Date.parse(text))) return 'must be a time';
  return undefined;
}

function numberError(shape: NumberShape, value: number): string | undefined {
  const { isInteger, minimum, maximum, above, below, step } = shape;
  if (isInteger && !Number.isInteger(value)) return 'must be a whole number';
  const { from, to } = { from: minimum ?? above, to: maximum ?? below };
  const isLow =
    (minimum !== undefined && value < minimum) || (above !== undefined && value <= above);
  const isHigh =
    (maximum !== undefined && value > maximum) || (below !== undefined && value >= below);
  if (isLow || isHigh) {
    if (minimum !== undefined && maximum !== undefined)
      return `must be from ${formatNumber(minimum)} to ${formatNumber(maximum)}`;
    return isLow
      ? `must be ${above === undefined ? 'at least' : 'more than'} ${formatNumber(from ?? 0)}`
      : `must be ${below === undefined ? 'at most' : 'less than'} ${formatNumber(to ?? 0)}`;
  }
  if (step !== undefined && !isMultipleOf(value, step)) return `must be a multiple of ${step}`;
  return undefined;
}

function sizeError(count: number, min: number, max: number | undefined): string | undefined {
  const entries = (number: number) => formatNumberOf(number, 'entry');
  if (count < min) return `must have at least ${entries(min)}`;
  return max !== undefined && count > max ? `must have at most ${entries(max)}` : undefined;
}

const isSameJson = (one: unknown, other: unknown) => JSON.stringify(one) === JSON.stringify(other);

function listErrors(
  shape: Extract<Shape, { kind: 'list' | 'choices' }>,
  value: readonly unknown[],
  pointer: string,
): FieldError[] {
  const size = sizeError(value.length, shape.min, shape.max);
  const own = size === undefined ? [] : [{ pointer, detail: size }];
  if (shape.kind === 'choices') return own;
  const repeated = shape.isUnique
    ? value.flatMap((each, at) =>
        value.slice(0, at).some((before) => isSameJson(before, each))
          ? [{ pointer: childPointer(pointer, at), detail: 'must not be repeated' }]
          : [],
      )
    : [];
  const inside = value.flatMap((each, at) =>
    checkValue(shape.item, each, childPointer(pointer, at)),
  );
  return [...own, ...repeated, ...inside];
}

function propertyErrors(property: Property, value: unknown, pointer: string): FieldError[] {
  const { isRequired, isReadOnly, shape } = property;
  if (isReadOnly) return [];
  if (value === undefined)
    return isRequired && shape.kind !== 'constant' ? [{ pointer, detail: REQUIRED }] : [];
  return checkValue(shape, value, pointer);
}

function objectErrors(
  properties: readonly Property[],
  value: Readonly<Record<string, unknown>>,
  pointer: string,
): FieldError[] {
  return properties.flatMap((property) =>
    propertyErrors(property, value[property.name], childPointer(pointer, property.name)),
  );
}

function mapErrors(
  shape: Extract<Shape, { kind: 'map' }>,
  value: Readonly<Record<string, unknown>>,
  pointer: string,
): FieldError[] {
  const { keyPattern, keyRule, max } = shape;
  const keys = Object.keys(value);
  const size = sizeError(keys.length, 0, max);
  return [
    ...(size === undefined ? [] : [{ pointer, detail: size }]),
    ...keys.flatMap((key) => {
      const at = childPointer(pointer, key);
      if (keyPattern !== undefined && !matches(keyPattern, key))
        return [{ pointer: at, detail: `the name ${keyRule ?? `must match ${keyPattern}`}` }];
      return checkValue(shape.value, value[key], at);
    }),
  ];
}

/**
 * What is wrong with a value that is entered, as far as a form knows it: the rules of single fields. The
 * service checks everything again, and what it finds is shown at the same fields.
 */
export function checkValue(shape: Shape, value: unknown, pointer = ''): FieldError[] {
  if (value === null) return shape.nullable ? [] : [{ pointer, detail: REQUIRED }];
  const one = (detail: string | undefined) => (detail === undefined ? [] : [{ pointer, detail }]);
  switch (shape.kind) {
    case 'text':
      return one(typeof value === 'string' ? textError(shape, value) : 'must be a text');
    case 'reference':
      return one(typeof value === 'string' ? undefined : 'must be the id of a record');
    case 'number':
      return one(typeof value === 'number' ? numberError(shape, value) : 'must be a number');
    case 'list':
    case 'choices':
      return Array.isArray(value) ? listErrors(shape, value, pointer) : one('must be a list');
    case 'map':
      return isJsonObject(value) ? mapErrors(shape, value, pointer) : one('must be an object');
    case 'object':
      return isJsonObject(value)
        ? objectErrors(shape.properties, value, pointer)
        : one('must be an object');
    case 'variants': {
      const tagged = isJsonObject(value) ? value : {};
      const variant = shape.variants.find((each) => each.value === tagged[shape.tag]);
      if (!variant) return one(REQUIRED);
      return checkValue(variant.shape, value, pointer);
    }
    case 'json':
      return one(shape.isObject && !isJsonObject(value) ? 'must be a JSON object' : undefined);
    case 'flag':
      return one(typeof value === 'boolean' ? undefined : 'must be true or false');
    case 'choice':
    case 'constant':
      return [];
  }
}

/** Whether a field of this kind can show a value. Others were stored under an earlier schema. */
export function canShow(shape: Shape, value: unknown): boolean {
  if (isMissing(value)) return true;
  switch (shape.kind) {
    case 'text':
    case 'reference':
      return typeof value === 'string';
    case 'number':
      return typeof value === 'number';
    case 'flag':
      return typeof value === 'boolean';
    case 'list':
    case 'choices':
      return Array.isArray(value);
    case 'map':
    case 'object':
    case 'variants':
      return isJsonObject(value);
    case 'json':
    case 'choice':
    case 'constant':
      return true;
  }
}

const isMissing = (value: unknown): boolean => value === undefined || value === null;

/** The pointers of the fields that a form shows for a value: where errors can be shown. */
export function fieldPointers(shape: Shape, value: unknown, pointer = ''): string[] {
  const own = [pointer];
  switch (shape.kind) {
    case 'object':
      if (isMissing(value) && pointer !== '') return own;
      return own.concat(
        shape.properties.flatMap(({ name, shape: inner }) =>
          fieldPointers(
            inner,
            isJsonObject(value) ? value[name] : undefined,
            childPointer(pointer, name),
          ),
        ),
      );
    case 'variants': {
      const tag = isJsonObject(value) ? value[shape.tag] : undefined;
      const variant = shape.variants.find((each) => each.value === tag);
      const inside = variant ? fieldPointers(variant.shape, value, pointer).slice(1) : [];
      return own.concat(childPointer(pointer, shape.tag), inside);
    }
    case 'list':
      return own.concat(
        (Array.isArray(value) ? value : []).flatMap((each, at) =>
          fieldPointers(shape.item, each, childPointer(pointer, at)),
        ),
      );
    case 'map':
      return own.concat(
        Object.entries(isJsonObject(value) ? value : {}).flatMap(([key, each]) =>
          fieldPointers(shape.value, each, childPointer(pointer, key)),
        ),
      );
    case 'choice':
    case 'choices':
    case 'constant':
    case 'flag':
    case 'json':
    case 'number':
    case 'reference':
    case 'text':
      return own;
  }
}

/** The value with which a new entry starts: what is fixed, and nothing else. */
export function initialValue(shape: Shape): unknown {
  switch (shape.kind) {
    case 'constant':
      return shape.value;
    case 'object':
      return Object.fromEntries(
        shape.properties.flatMap(({ name, isRequired, shape: own }): [string, unknown][] => {
          if (!isRequired && own.kind !== 'constant') return [];
          const value = initialValue(own);
          return value === undefined ? [] : [[name, value]];
        }),
      );
    case 'variants': {
      const [first] = shape.variants;
      return first && { ...(initialValue(first.shape) as object), [shape.tag]: first.value };
    }
    case 'list':
    case 'choices':
      return [];
    case 'map':
      return {};
    case 'flag':
      return typeof shape.default === 'boolean' ? shape.default : false;
    case 'json':
      return shape.isObject ? {} : undefined;
    case 'text':
    case 'reference':
    case 'number':
    case 'choice':
      return undefined;
  }
}

/**
 * Reads JSON that is typed; the error says where it is wrong, or what a value would lose: the service
 * never sees the text. Empty text is no value.
 */
export function parseJson(text: string): { value: unknown } | { error: string } {
  if (text.trim() === '') return { value: undefined };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return { error: `is not JSON: ${describeJsonError(text, error)}` };
  }
  // What texts may contain is a matter of the field, which the service knows.
  const { errors } = parseStrictJson(text, () => true);
  const loss = errors.find(({ code }) => code !== 'characters');
  return loss ? { error: problemText(loss) } : { value };
}

/** Reads the JSON of a whole form, which is an object: other values, and no text, are errors. */
export function parseJsonObject(text: string): { value: unknown } | { error: string } {
  const outcome = parseJson(text);
  return 'error' in outcome || isJsonObject(outcome.value)
    ? outcome
    : { error: 'must be a JSON object' };
}

/** The digits of a number in decimal or exponential form, without zeros before them. */
const digitsOf = (number: string): string =>
  number.replace(/e.*/, '').replaceAll(/\D/g, '').replace(/^0+/, '');

/** Reads a decimal number that is typed. One of which a double would lose digits is an error. */
export function parseNumber(text: string): { value: number } | { error: string } {
  const typed = text.trim();
  // As small and large numbers are shown: 1e-7.
  if (String(Number(typed)) === typed && Number.isFinite(Number(typed)))
    return { value: Number(typed) };
  if (!/^-?(?:\d+\.?\d*|\.\d+)$/.test(typed)) return { error: 'must be a decimal number' };
  const value = Number(typed);
  const shortest = typed.replace(/\.(\d*[1-9])?0*$/, '.$1').replace(/\.$/, '');
  const keepsDigits = shortest.includes('.')
    ? digitsOf(shortest) === digitsOf(String(value))
    : isExactNumber(shortest);
  return keepsDigits ? { value } : { error: 'has more digits than a number can keep' };
}

/** Engines say where an error is in different ways; all that name a position get a line. */
function describeJsonError(text: string, error: unknown): string {
  const message = errorMessage(error);
  const position = /position (\d+)/.exec(message)?.[1];
  const words = message
    .replace(/^JSON\.parse: /, '')
    .replace(/ (?:in JSON )?at position \d+.*$/s, '')
    .replace(/, (?:\.\.\.)?"[\s\S]*$/, '');
  if (position === undefined) return words;
  const before = text.slice(0, Number(position)).split('\n');
  return `${words} in line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
}
