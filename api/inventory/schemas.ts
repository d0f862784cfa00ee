import { Type, type Static, type TObject, type TSchema } from 'typebox';
import { MAX_MUTATIONS, MutationBody, Mutations } from '../../domain/inventory/mutations.ts';
import { OUTCOMES } from '../../domain/inventory/imports.ts';
import { EFFECT_REASONS, OPERATIONS } from '../../domain/inventory/planning.ts';
import { SLUG } from '../../domain/inventory/fields.ts';
import { titleOf, type Resource } from '../../domain/inventory/resource.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { pageQuery } from '../http/pagination.ts';
import { Actor, Nullable, Timestamp } from '../http/schemas.ts';

const closed = { additionalProperties: false };
const NullableText = Nullable(Type.String());

export const FieldChangeView = Type.Object(
  { field: Type.String(), before: Type.Unknown(), after: Type.Unknown() },
  { title: 'FieldChange', 'x-field-change': true, ...closed },
);
export const PlanErrorView = Type.Object(
  {
    pointer: Type.String({ description: 'JSON Pointer (RFC 6901) into the record.' }),
    code: Type.String(),
    message: Type.String(),
  },
  { title: 'PlanError', ...closed },
);
export const PlanConflictView = Type.Object(
  {
    pointer: NullableText,
    code: Type.String(),
    message: Type.String(),
    resource: Nullable(
      Type.String({
        description: 'The resource of the conflicting record; null when you may not read it.',
      }),
    ),
    id: NullableText,
  },
  { title: 'PlanConflict', ...closed },
);
export const PlanWarningView = Type.Object(
  { pointer: NullableText, code: Type.String(), message: Type.String() },
  { title: 'PlanWarning', ...closed },
);
const EffectView = Type.Object(
  {
    action: Type.Enum([...OPERATIONS]),
    resource: Type.String(),
    id: Nullable(Type.String({ description: 'null for a record that does not exist yet.' })),
    label: Type.String(),
    reason: Type.Enum([...EFFECT_REASONS]),
    changes: Type.Array(FieldChangeView),
  },
  { title: 'PlanEffect', ...closed },
);

const Validation = Type.Object(
  {
    valid: Type.Boolean(),
    errors: Type.Array(PlanErrorView),
    conflicts: Type.Array(PlanConflictView),
    warnings: Type.Array(PlanWarningView),
  },
  { title: 'PlanFindings', ...closed },
);
const AnyObject = Type.Object({}, { additionalProperties: true });

export const ValidationResult = Type.Object(
  {
    resource: Type.String(),
    operation: Type.String(),
    actorId: Type.String(),
    validation: Validation,
    candidateRecord: AnyObject,
    effects: Type.Array(EffectView),
  },
  { title: 'InventoryValidation', ...closed },
);

export const ValidationResults = Type.Object(
  {
    actorId: Type.String(),
    validation: Validation,
    results: Type.Array(
      Type.Object(
        {
          resource: Type.String(),
          operation: Type.String(),
          validation: Validation,
          candidateRecord: AnyObject,
          effects: Type.Array(EffectView),
        },
        { title: 'MutationValidation', ...closed },
      ),
    ),
  },
  { title: 'InventoryValidations', ...closed },
);

export const ValidationRequest = Type.Object(
  {
    ...Type.Partial(MutationBody).properties,
    mutations: Type.Optional(
      Type.Array(MutationBody, {
        minItems: 1,
        maxItems: MAX_MUTATIONS,
        description: 'Several mutations instead of one; planned in order.',
      }),
    ),
  },
  { title: 'InventoryValidationRequest', ...closed, minProperties: 1 },
);

export const BulkRequest = Type.Object(
  {
    mode: Type.Enum(['all', 'each'], {
      default: 'all',
      description: 'all: all mutations or none. each: the valid ones, with a report.',
    }),
    mutations: Mutations,
  },
  { title: 'BulkRequest', ...closed },
);
export type BulkRequest = Static<typeof BulkRequest>;

const counts = Type.Object(
  Object.fromEntries(OUTCOMES.map((outcome) => [outcome, Type.Integer()])),
  closed,
);
const report = {
  errors: Type.Array(PlanErrorView),
  conflicts: Type.Array(PlanConflictView),
  warnings: Type.Array(PlanWarningView),
};
export const BulkResult = Type.Object(
  {
    counts,
    results: Type.Array(
      Type.Object(
        {
          resource: Type.String(),
          outcome: Type.Enum([...OUTCOMES]),
          id: NullableText,
          version: Nullable(Type.Integer()),
          ...report,
        },
        { title: 'MutationResult', ...closed },
      ),
    ),
  },
  { title: 'BulkResult', ...closed },
);

export const AllocateRequest = Type.Object(
  {
    kind: Type.Enum(['address', 'prefix']),
    prefixLength: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 128, description: 'The length of the child prefix.' }),
    ),
    record: Type.Optional(
      Type.Object(
        {},
        { additionalProperties: true, description: 'Further fields of the new record.' },
      ),
    ),
  },
  { title: 'AllocationRequest', ...closed },
);

const BigCount = Type.String({
  title: 'BigCount',
  pattern: '^[0-9]+$',
  description: 'A whole number as text, because IPv6 exceeds JSON numbers.',
});
export const UsageView = Type.Object(
  {
    size: BigCount,
    used: BigCount,
    free: BigCount,
    percent: Type.Number({
      description: 'Used addresses in percent of the size, with two decimals.',
    }),
    children: Type.Integer(),
    addresses: Type.Integer({ description: 'Addresses in the prefix and in its children.' }),
    ranges: Type.Integer(),
  },
  { title: 'PrefixUsage', ...closed },
);

export const ChangeView = Type.Object(
  {
    id: Type.String({ description: 'The id of the audit entry.' }),
    at: Timestamp,
    action: Type.Enum([...OPERATIONS]),
    actorId: Actor(),
    requestId: Type.String(),
    version: Type.Integer(),
    changes: Type.Array(FieldChangeView),
  },
  { title: 'RecordChange', ...closed },
);

const FILTERABLE_TYPES: ReadonlySet<string> = new Set([
  'text',
  'integer',
  'boolean',
  'reference',
  'network',
  'address',
]);

/** The id of a record of a resource, or one of `words`. */
function idFilter(resource: Resource, words: readonly string[], description: string): TSchema {
  const { idPrefix } = resource;
  const id = idPrefix === null ? SLUG.slice(1, -1) : `${idPrefix}_[0-9a-z]{26}`;
  const example =
    idPrefix === null ? 'an id' : `an id such as ${idPrefix}_01jd0cmxk5e5v8kyzwq0q8s3rt`;
  return Type.String({
    title: `${titleOf(resource)}Filter`,
    pattern: `^(?:${[...words, id].join('|')})$`,
    'x-rule': `must be ${[example, ...words].join(', or ')}`,
    description,
  });
}

/** The query parameter of a field. A field with a canonical form checks its value itself. */
function filterOf({ type, schema, reference, canonical }: Resource['fields'][string]): TSchema {
  if (reference !== undefined)
    return idFilter(
      RESOURCES[reference],
      reference === 'vrfs' ? ['none', 'global'] : ['none'],
      'An id, or `none` for records without a reference.',
    );
  const { enum: values, pattern } = schema as { enum?: unknown; pattern?: string };
  const isChecked = values !== undefined || (pattern !== undefined && !canonical);
  if (type === 'integer' || type === 'boolean' || isChecked) return schema;
  return Type.String({ minLength: 1, maxLength: 255 });
}

/** The fields that lists of a resource filter by. */
export const filtersOf = ({ fields }: Resource): string[] =>
  Object.entries(fields)
    .filter(([name, { type }]) => FILTERABLE_TYPES.has(type) && name !== 'description')
    .map(([name]) => name);

const ADDRESS_SPACE_RESOURCES: ReadonlySet<string> = new Set([
  'prefixes',
  'ip-ranges',
  'ip-addresses',
]);

/** The query parameters that filter a list of a resource. */
export function filterQuery(resource: Resource): Record<string, TSchema> {
  const filterable = new Set(filtersOf(resource));
  const fields = Object.entries(resource.fields)
    .filter(([name]) => filterable.has(name))
    .map(([name, field]) => [name, Type.Optional(filterOf(field))]);
  const network = (description: string) =>
    Type.Optional(Type.String({ maxLength: 50, description }));
  return {
    q: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: 100,
        description: `Text in ${resource.searchFields.join(', ')}.`,
      }),
    ),
    tag: Type.Optional(idFilter(RESOURCES.tags, [], 'The id of a tag.')),
    ...((resource.sharable || resource.isPlatformPublic) && {
      shared: Type.Optional(
        Type.Boolean({
          description: resource.sharable
            ? 'true: records that other tenants share with yours, instead of your own.'
            : 'true: records of the platform, which hold for all tenants, instead of your own.',
        }),
      ),
    }),
    ...(ADDRESS_SPACE_RESOURCES.has(resource.name) && {
      within: network('A network: records inside it.'),
    }),
    ...(resource.name === 'prefixes' && {
      contains: network('An address or a network: prefixes that contain it.'),
    }),
    ...(Object.fromEntries(fields) as Record<string, TSchema>),
  };
}

/** The query parameters of a list of a resource. */
export function listQuery(resource: Resource): TObject {
  const sorts = ['-createdAt', ...resource.sortFields.flatMap((field) => [field, `-${field}`])];
  return Type.Object(
    {
      ...filterQuery(resource),
      sort: Type.Enum(sorts, {
        default: '-createdAt',
        description: 'A hyphen reverses the order.',
      }),
      ...pageQuery,
    },
    closed,
  );
}
