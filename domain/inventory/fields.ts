import { Type, type TSchema } from 'typebox';
import {
  formatBlock,
  formatHost,
  isBlock,
  parseBlock,
  parseHost,
  parseInterfaceAddress,
  type Unparsable,
} from './cidr.ts';
import type { ResourceName } from './names.ts';

/** What a field holds; it decides how a list filters and sorts by it. */
export type FieldType =
  | 'text'
  | 'integer'
  | 'number'
  | 'boolean'
  | 'reference'
  | 'network'
  | 'address'
  | 'texts'
  | 'object';

/** A field of a record, in every respect. */
export type Field = {
  type: FieldType;
  /** Of a value as it comes in, without null. */
  schema: TSchema;
  required: boolean;
  nullable: boolean;
  default: unknown;
  /** Set when the record is made, and never again. */
  fixed: boolean;
  /** Worked out from other records: answered, never taken. */
  derived: boolean;
  reference?: ResourceName;
  /** Brings a value into its one form, or says why it has none. */
  canonical?: (value: string) => string | Unparsable;
};

type Options = {
  required?: true;
  default?: unknown;
  fixed?: true;
  derived?: true;
  description?: string;
};

/** A field without a default that is not required may be null. */
function field(
  type: FieldType,
  schema: TSchema,
  options: Options,
  more: Partial<Field> = {},
): Field {
  const { required = false, fixed = false, derived = false, description } = options;
  const fallback = options.default ?? null;
  return {
    type,
    schema: description === undefined ? schema : { ...schema, description },
    required,
    fixed,
    derived,
    default: fallback,
    nullable: !required && fallback === null,
    ...more,
  };
}

const NEVER = '\\u0000-\\u001f\\u007f\\ud800-\\udfff';
const NO_NUL = '^[^\\u0000\\ud800-\\udfff]*$';

/** One line: no control characters, no blank at an end. */
export const line = (max: number) =>
  Type.String({
    minLength: 1,
    maxLength: max,
    pattern: `^[^${NEVER} ](?:[^${NEVER}]*[^${NEVER} ])?$`,
    'x-rule': 'must be one line of text without a blank at either end',
  });

export const text = ({ max = 100, ...options }: Options & { max?: number } = {}): Field =>
  field('text', line(max), options);

/** Several lines; empty unless given. */
export const prose = (max: number): Field =>
  field('text', Type.String({ maxLength: max, pattern: NO_NUL }), { default: '' });

/** A readable id that the caller chooses. */
export const SLUG = '^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$';
export const slug = (): TSchema =>
  Type.String({
    pattern: SLUG,
    'x-rule':
      'must be 1 to 64 of a-z, 0-9, dot, hyphen and underscore, with a letter or digit at either end',
  });

export const matching = (pattern: string, rule: string, options: Options = {}): Field =>
  field('text', Type.String({ maxLength: 255, pattern, 'x-rule': rule }), options);

export const choice = (values: readonly string[], options: Options = {}): Field =>
  field('text', Type.Enum([...values]), options);

export const integer = (minimum: number, maximum: number, options: Options = {}): Field =>
  field('integer', Type.Integer({ minimum, maximum }), options);

export const number = (minimum: number, maximum: number, options: Options = {}): Field =>
  field('number', Type.Number({ minimum, maximum }), options);

export const flag = (fallback: boolean, options: Options = {}): Field =>
  field('boolean', Type.Boolean(), { ...options, default: fallback });

/**
 * Another record: its id, or an object that names it by one of its own fields, `{ "name": "ams1" }`, as people and
 * files do.
 */
export const reference = (to: ResourceName, options: Options = {}): Field =>
  field(
    'reference',
    Type.Union(
      [
        Type.String({ minLength: 1, maxLength: 100, pattern: NO_NUL }),
        Type.Object(
          {},
          {
            additionalProperties: Type.String({ minLength: 1, maxLength: 255, pattern: NO_NUL }),
            minProperties: 1,
            maxProperties: 1,
          },
        ),
      ],
      { description: `The id of one of ${to}, or { "field": "value" } that names exactly one.` },
    ),
    options,
    { reference: to },
  );

/** A network in CIDR notation. */
export const network = (options: Options = {}): Field =>
  field('network', Type.String({ maxLength: 50, examples: ['10.0.0.0/24'] }), options, {
    canonical: (value) => {
      const block = parseBlock(value);
      return isBlock(block) ? formatBlock(block) : block;
    },
  });

/** A single address; `withLength` allows the length of its network behind it. */
export const address = ({
  withLength = false,
  ...options
}: Options & { withLength?: boolean } = {}): Field =>
  field('address', Type.String({ maxLength: 50, examples: ['10.0.0.5'] }), options, {
    canonical: (value) => canonicalAddress(value, withLength),
  });

function canonicalAddress(value: string, withLength: boolean): string | Unparsable {
  const host = parseHost(value);
  if (host) return formatHost(host.family, host.value);
  const parsed = withLength ? parseInterfaceAddress(value) : undefined;
  if (!parsed)
    return {
      code: 'address',
      message: withLength
        ? 'is not an address such as 10.0.0.5 or 10.0.0.5/24'
        : 'is not an address such as 10.0.0.5',
    };
  if (parsed.length === 0) return { code: 'zero_length', message: 'must not have the length 0' };
  const bare = formatHost(parsed.family, parsed.value);
  return parsed.length === (parsed.family === 4 ? 32 : 128) ? bare : `${bare}/${parsed.length}`;
}

/** Ids of tags. */
export const TAGS: Field = field(
  'texts',
  Type.Array(slug(), { maxItems: 50, uniqueItems: true, description: 'Ids of tags.' }),
  { default: [] },
);

/** Values of custom fields by name; which there are is a matter of records. */
export const CUSTOM: Field = field(
  'object',
  Type.Object(
    {},
    {
      additionalProperties: true,
      maxProperties: 100,
      description: 'Values of custom fields, by their names.',
    },
  ),
  { default: {} },
);

/** Texts that a definition lists. */
export const choices = (): Field =>
  field('texts', Type.Array(line(100), { maxItems: 200, uniqueItems: true }), { default: [] });
