import { Type, type TSchema } from 'typebox';
import type { FieldKind, FilterValue } from '../../domain/shared/lists.ts';
import { COMMA_SEPARATED } from '../../platform/schemaCheck.ts';
import { Name, Timestamp } from './schemas.ts';

/** Most values of one filter. */
export const MAX_VALUES = 50;

/** A field of the records of a list, and what the list can be asked about it. */
export type FieldDeclaration = {
  kind: FieldKind;
  /** The schema of one value in a query. */
  schema: TSchema;
  nullable: boolean;
  /** Words in a query that mean no value. */
  none: readonly string[];
  /** All values that the field can have, if these are few. */
  choices?: readonly string[];
  description?: string;
  filter: boolean;
  sort: boolean;
  facet: boolean;
  /** Values never contain a comma, so that one parameter can have several. */
  commas: boolean;
  /** Converts a value to the form in which it is stored. Error: `invalid_request`. */
  read?: (text: string, parameter: string) => string;
};

type Options = Partial<
  Pick<FieldDeclaration, 'nullable' | 'none' | 'description' | 'filter' | 'sort' | 'facet' | 'read'>
>;

/** A field of any kind. */
export const declareField = (
  kind: FieldKind,
  schema: TSchema,
  more: Partial<FieldDeclaration>,
): FieldDeclaration => ({
  kind,
  schema,
  nullable: false,
  none: more.nullable && !more.choices?.includes('none') && kind !== 'boolean' ? ['none'] : [],
  filter: true,
  sort: false,
  facet: false,
  commas: false,
  ...more,
});

/** Text in which a value must be equal. */
export const textField = (options: Options & { schema?: TSchema } = {}): FieldDeclaration =>
  declareField('text', options.schema ?? Name(), options);

/** One of few values, by `title` in the API description. A schema with further words has another. */
export function choiceSchema(
  values: readonly string[],
  none: readonly string[],
  title: string | undefined,
): TSchema {
  const name = title !== undefined && none.length > 0 ? `${title}Filter` : title;
  return Type.Enum([...values, ...none], name === undefined ? {} : { title: name });
}

/** One of few values, by `title` in the API description. It has a facet. */
export const choiceField = (
  values: readonly string[],
  { title, ...options }: Options & { title: string },
): FieldDeclaration =>
  declareField('text', choiceSchema(values, options.none ?? [], title), {
    choices: values,
    facet: true,
    commas: true,
    ...options,
  });

/** The id of another record, which never contains a comma. */
export const idField = (id: TSchema, options: Options = {}): FieldDeclaration =>
  declareField('text', id, { commas: true, facet: true, ...options });

export const flagField = (options: Options = {}): FieldDeclaration =>
  declareField('boolean', Type.Boolean(), { facet: true, ...options });

export const integerField = (
  [minimum, maximum]: readonly [number, number],
  options: Options = {},
): FieldDeclaration =>
  declareField('integer', Type.Integer({ minimum, maximum }), { commas: true, ...options });

/** A time, which is filtered by ranges. */
export const timeField = (options: Options = {}): FieldDeclaration =>
  declareField('time', Timestamp, options);

const RANGES: ReadonlySet<FieldKind> = new Set(['integer', 'bigint', 'number', 'time']);
export const RANGE_OPERATORS = ['gte', 'gt', 'lte', 'lt'] as const;

/** Whether a schema accepts a word that means no value. */
function accepts(schema: TSchema, word: string): boolean {
  const {
    type,
    enum: values,
    pattern,
  } = schema as {
    type?: string;
    enum?: readonly string[];
    pattern?: string;
  };
  if (values) return values.includes(word);
  return type === 'string' && (pattern === undefined || new RegExp(pattern, 'u').test(word));
}

/** The schema of one value to be equal to: a value of the field, or a word that means none. */
const orNone = ({ schema, none }: FieldDeclaration): TSchema => {
  const words = none.filter((word) => !accepts(schema, word));
  return words.length === 0
    ? schema
    : Type.Union([schema, ...words.map((word) => Type.Literal(word))]);
};

const several = (field: FieldDeclaration, more: object = {}): TSchema =>
  Type.Array(orNone(field), {
    maxItems: MAX_VALUES,
    ...(field.commas && { [COMMA_SEPARATED]: true }),
    ...more,
  });

/** A filter that only one list has, and that takes several values as those of fields do. */
export const severalOf = <T extends TSchema>(value: T, description: string) =>
  Type.Optional(Type.Array(value, { maxItems: MAX_VALUES, [COMMA_SEPARATED]: true, description }));

/** The query parameters that filter by a field. */
export function parametersOf(name: string, field: FieldDeclaration): Record<string, TSchema> {
  if (!field.filter) return {};
  const description = field.description !== undefined && { description: field.description };
  const equals: Record<string, TSchema> =
    field.kind === 'boolean'
      ? { [name]: Type.Optional({ ...field.schema, ...description }) }
      : field.kind === 'time'
        ? {}
        : {
            [name]: Type.Optional(several(field, description || {})),
            [`${name}.not`]: Type.Optional(several(field)),
          };
  if (!RANGES.has(field.kind)) return equals;
  const ranges = RANGE_OPERATORS.map((operator) => [
    `${name}.${operator}`,
    Type.Optional(field.schema),
  ]);
  return { ...equals, ...(Object.fromEntries(ranges) as Record<string, TSchema>) };
}

/** The value of a field that a parameter has. Error: `invalid_request`. */
export function valueOf(
  { none, kind, read }: FieldDeclaration,
  value: unknown,
  parameter: string,
): FilterValue {
  if (typeof value !== 'string') return value as number | boolean;
  if (none.includes(value)) return null;
  return kind === 'text' && !read ? value : (read?.(value, parameter) ?? value);
}
