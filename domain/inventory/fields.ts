import { Type, type TSchema } from 'typebox';
import { TRIMMED_LINE } from '../shared/oneLine.ts';
import { NOT_RESERVED, NOT_RESERVED_RULE } from '../shared/reservedIds.ts';
import {
  formatBlock,
  formatHost,
  isBlock,
  parseBlock,
  parseHost,
  parseInterfaceAddress,
  type ParseError,
} from './cidr.ts';
import type { ResourceName } from './names.ts';
import { capitalized, nounOf, withArticle } from '../shared/nouns.ts';

/** The kind of value of a field. It decides how lists filter and sort by the field. */
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

/** The definition of a field of a resource. */
export type Field = {
  type: FieldType;
  /** The schema of a value in a request, without null. */
  schema: TSchema;
  /** That of a value in a response, if it is another one. */
  responseSchema?: TSchema;
  required: boolean;
  nullable: boolean;
  default: unknown;
  /** Set when the record is created and never changed. */
  immutable: boolean;
  /** Computed from other records: present in responses, never in requests. */
  derived: boolean;
  reference?: ResourceName;
  /** Converts a value to its canonical form, or explains why it has none. */
  canonical?: (value: string) => string | ParseError;
};

type Options = {
  required?: true;
  default?: unknown;
  immutable?: true;
  derived?: true;
  description?: string;
};

/** Defines a field. A field that is not required and has no default may be null. */
function field(
  type: FieldType,
  schema: TSchema,
  options: Options,
  extra: Partial<Field> = {},
): Field {
  const { required = false, immutable = false, derived = false, description } = options;
  const fallback = options.default ?? null;
  return {
    type,
    schema: description === undefined ? schema : { ...schema, description },
    required,
    immutable,
    derived,
    default: fallback,
    nullable: !required && fallback === null,
    ...extra,
  };
}

const STORABLE = {
  pattern: '^[^\\u0000\\ud800-\\udfff]*$',
  'x-rule': 'must not contain the character U+0000 or half of a surrogate pair',
};

/** One line of text, without control characters and without a blank at either end. */
export const line = (max: number) =>
  Type.String({ minLength: 1, maxLength: max, ...TRIMMED_LINE, title: `Line${max}` });

export const text = ({ max = 100, ...options }: Options & { max?: number } = {}): Field =>
  field('text', line(max), options, {
    // What is stored may be older than the rule.
    responseSchema: Type.String(
      options.description === undefined ? {} : { description: options.description },
    ),
  });

/** Text of several lines; empty by default. */
export const prose = (max: number): Field =>
  field('text', Type.String({ maxLength: max, ...STORABLE, title: `Text${max}` }), { default: '' });

/** A readable id that callers have chosen. */
export const SLUG = '^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$';
const SLUG_RULE =
  'must be 1 to 64 of a-z, 0-9, dot, hyphen and underscore, with a letter or digit at either end';
const slug = (): TSchema => Type.String({ title: 'Slug', pattern: SLUG, 'x-rule': SLUG_RULE });

/** The id of a new record, which must not be a path of its own. Older records may have such an id. */
export const newSlug = (): TSchema =>
  Type.String({
    title: 'NewSlug',
    pattern: `^${NOT_RESERVED}${SLUG.slice(1)}`,
    'x-rule': `${SLUG_RULE}, and ${NOT_RESERVED_RULE}`,
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
 * A reference to another record: its id, or an object with one of its lookup fields, such as
 * `{ "name": "ams1" }`.
 */
export const reference = (to: ResourceName, options: Options = {}): Field =>
  field(
    'reference',
    Type.Union(
      [
        Type.String({ minLength: 1, maxLength: 100, ...STORABLE }),
        Type.Object(
          {},
          {
            additionalProperties: Type.String({ minLength: 1, maxLength: 255, ...STORABLE }),
            minProperties: 1,
            maxProperties: 1,
            title: 'RecordLookup',
            description: 'A field and its value, which exactly one record has.',
          },
        ),
      ],
      {
        title: 'RecordReference',
        description: `${capitalized(withArticle(nounOf(to)))}: its id or a lookup.`,
      },
    ),
    options,
    { reference: to },
  );

/** Twelve hexadecimal digits, bare or in groups of two, four or six with one separator. */
const MAC_ADDRESS =
  '^(?:[0-9A-Fa-f]{2}([:. -]?)(?:[0-9A-Fa-f]{2}\\1){4}[0-9A-Fa-f]{2}' +
  '|[0-9A-Fa-f]{4}([:. -])[0-9A-Fa-f]{4}\\2[0-9A-Fa-f]{4}' +
  '|[0-9A-Fa-f]{6}[:. -][0-9A-Fa-f]{6})$';

const MAC_PATTERN = new RegExp(MAC_ADDRESS);

/** Whether a text is a MAC address in any usual notation. */
export const isMacAddress = (text: string): boolean => MAC_PATTERN.test(text);

/** A MAC address in any usual notation; its canonical form is `00:1b:2c:3d:4e:5f`. */
export const macAddress = (options: Options = {}): Field =>
  matchingForm(
    MAC_ADDRESS,
    'must be a MAC address such as 00:1b:2c:3d:4e:5f, 00-1B-2C-3D-4E-5F, 001b.2c3d.4e5f, 001b2c-3d4e5f or 001b2c3d4e5f',
    (value) =>
      value
        .toLowerCase()
        .replaceAll(/[^0-9a-f]/g, '')
        .replaceAll(/(?<=^(?:..)+)(?=.)/g, ':'),
    options,
  );

/** A colour with or without `#`; its canonical form is `#00a1ff`. */
export const color = (options: Options = {}): Field =>
  matchingForm(
    '^#?[0-9A-Fa-f]{6}$',
    'must be a colour such as #00a1ff or 00a1ff',
    (value) => `#${value.replace('#', '').toLowerCase()}`,
    options,
  );

/** Text in several notations. Its canonical form is stored and matches the pattern as well. */
function matchingForm(
  pattern: string,
  rule: string,
  formOf: (value: string) => string,
  options: Options,
): Field {
  const accepted = new RegExp(pattern);
  return {
    ...matching(pattern, rule, options),
    canonical: (value) =>
      accepted.test(value) ? formOf(value) : { code: 'pattern', message: rule },
  };
}

/** A network in CIDR notation. */
export const network = (options: Options = {}): Field =>
  field('network', Type.String({ maxLength: 50, examples: ['10.0.0.0/24'] }), options, {
    canonical: (value) => {
      const block = parseBlock(value);
      return isBlock(block) ? formatBlock(block) : block;
    },
  });

/** A single address. `withLength` also allows the prefix length of its network after it. */
export const address = ({
  withLength = false,
  ...options
}: Options & { withLength?: boolean } = {}): Field =>
  field('address', Type.String({ maxLength: 50, examples: ['10.0.0.5'] }), options, {
    canonical: (value) => canonicalAddress(value, withLength),
  });

function canonicalAddress(value: string, withLength: boolean): string | ParseError {
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
  Type.Array(
    { ...slug(), 'x-reference': 'tags' },
    {
      title: 'TagIds',
      maxItems: 50,
      uniqueItems: true,
      description: 'Ids of tags.',
    },
  ),
  { default: [] },
);

/** Tenants that may read a record and refer to it from their own records. */
export const SHARED_WITH: Field = field(
  'texts',
  Type.Array(
    Type.String({
      minLength: 1,
      maxLength: 100,
      pattern: '^[\\x21-\\x7e]*$',
      'x-rule': 'must be the id of a tenant, or * for every tenant',
      'x-reference': 'tenants',
    }),
    {
      title: 'SharedWith',
      maxItems: 200,
      uniqueItems: true,
      description:
        'Ids of tenants that may read this record and refer to it from records of their own; `*` is every tenant. ' +
        'Readers in other tenants see only their own ids.',
    },
  ),
  { default: [] },
);

/** Most characters of a text in a custom field. */
export const MAX_CUSTOM_TEXT = 2_000;

/** The size of the custom fields of a record, as JSON. */
export const MAX_CUSTOM_FIELDS_BYTES = 65_536;

/** Values of custom fields by name. Records of the resource `custom-fields` define them. */
export const CUSTOM_FIELDS: Field = field(
  'object',
  Type.Object(
    {},
    {
      title: 'CustomFieldChange',
      additionalProperties: true,
      maxProperties: 100,
      description:
        'Values of custom fields, by their names. An update changes the names that it has; null removes a value. ' +
        'It changes up to 100: values that stay as they are do not count. ' +
        `Those of a record have up to ${MAX_CUSTOM_FIELDS_BYTES} bytes as JSON.`,
    },
  ),
  { default: {} },
  {
    responseSchema: Type.Object(
      {},
      {
        title: 'CustomFieldValues',
        additionalProperties: true,
        description: 'Values of custom fields, by their names.',
      },
    ),
  },
);

/** The values that a custom field of the type choice or choices allows. */
export const choices = (): Field =>
  field('texts', Type.Array(line(100), { maxItems: 200, uniqueItems: true }), { default: [] });
