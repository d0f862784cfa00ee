import { Type, type Static, type TObject, type TSchema } from 'typebox';
import { MAX_MUTATIONS, MutationBody, Mutations } from '../../domain/inventory/mutations.ts';
import { EFFECT_REASONS, OPERATIONS } from '../../domain/inventory/planning.ts';
import type { Resource } from '../../domain/inventory/resource.ts';
import { pageQuery } from '../http/pagination.ts';
import { Nullable, Timestamp } from '../http/schemas.ts';

const closed = { additionalProperties: false };
const nothing = Nullable(Type.String());

export const FieldChangeView = Type.Object(
  { field: Type.String(), before: Type.Unknown(), after: Type.Unknown() },
  closed,
);
export const PlanErrorView = Type.Object(
  {
    pointer: Type.String({ description: 'JSON Pointer into the record.' }),
    code: Type.String(),
    message: Type.String(),
  },
  closed,
);
export const PlanConflictView = Type.Object(
  {
    pointer: nothing,
    code: Type.String(),
    message: Type.String(),
    resource: Nullable(
      Type.String({ description: 'What stands against it; null where you may not read it.' }),
    ),
    id: nothing,
  },
  closed,
);
export const PlanWarningView = Type.Object(
  { pointer: nothing, code: Type.String(), message: Type.String() },
  closed,
);
const EffectView = Type.Object(
  {
    action: Type.Enum([...OPERATIONS]),
    resource: Type.String(),
    id: Nullable(Type.String({ description: 'null for a record that is not there yet.' })),
    label: Type.String(),
    reason: Type.Enum([...EFFECT_REASONS]),
    changes: Type.Array(FieldChangeView),
  },
  closed,
);

const Validation = Type.Object(
  {
    valid: Type.Boolean(),
    errors: Type.Array(PlanErrorView),
    conflicts: Type.Array(PlanConflictView),
    warnings: Type.Array(PlanWarningView),
  },
  closed,
);
const anything = Type.Object({}, { additionalProperties: true });

export const ValidationResult = Type.Object(
  {
    resource: Type.String(),
    operation: Type.String(),
    actorId: Type.String(),
    validation: Validation,
    candidateRecord: anything,
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
          candidateRecord: anything,
          effects: Type.Array(EffectView),
        },
        closed,
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
        description: 'Several, instead of the three fields above; planned in order.',
      }),
    ),
  },
  closed,
);

export const BulkRequest = Type.Object(
  {
    mode: Type.Enum(['all', 'each'], {
      default: 'all',
      description: 'all: every mutation or none. each: those that are valid, with a report.',
    }),
    mutations: Mutations,
  },
  closed,
);
export type BulkRequest = Static<typeof BulkRequest>;

export const OUTCOMES = ['created', 'updated', 'deleted', 'invalid', 'conflict'] as const;
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
          id: nothing,
          version: Nullable(Type.Integer()),
          ...report,
        },
        closed,
      ),
    ),
  },
  { title: 'BulkResult', ...closed },
);

export const AllocateRequest = Type.Object(
  {
    kind: Type.Enum(['address', 'prefix']),
    prefixLength: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 128, description: 'For a prefix.' }),
    ),
    record: Type.Optional(
      Type.Object(
        {},
        { additionalProperties: true, description: 'Other fields of the new record.' },
      ),
    ),
  },
  closed,
);

const amount = Type.String({
  pattern: '^[0-9]+$',
  description: 'A whole number, as text: IPv6 has more than a JSON number holds.',
});
export const UsageView = Type.Object(
  {
    size: amount,
    used: amount,
    free: amount,
    percent: Type.Number({ description: 'Used of size, with two decimals.' }),
    children: Type.Integer(),
    addresses: Type.Integer({ description: 'In it and in its children.' }),
    ranges: Type.Integer(),
  },
  { title: 'PrefixUsage', ...closed },
);

export const ChangeView = Type.Object(
  {
    id: Type.String({ description: 'Of the audit entry.' }),
    at: Timestamp,
    action: Type.Enum([...OPERATIONS]),
    actorId: Type.String(),
    requestId: Type.String(),
    version: Type.Integer(),
    changes: Type.Array(FieldChangeView),
  },
  { title: 'RecordChange', ...closed },
);

const FILTERED: ReadonlySet<string> = new Set([
  'text',
  'integer',
  'boolean',
  'reference',
  'network',
  'address',
]);

/** A field of a query: the empty reference is asked for with \`none\`. */
function filterOf({ type, schema, reference }: Resource['fields'][string]): TSchema {
  if (reference !== undefined)
    return Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'An id; `none` for records without one.',
    });
  if (type === 'integer' || type === 'boolean') return schema;
  return Type.String({ minLength: 1, maxLength: 255 });
}

export const filtersOf = ({ fields }: Resource): string[] =>
  Object.entries(fields)
    .filter(([name, { type }]) => FILTERED.has(type) && name !== 'description')
    .map(([name]) => name);

const IN_SPACE: ReadonlySet<string> = new Set(['prefixes', 'ip-ranges', 'ip-addresses']);

/** What a list of a resource can be asked for. */
export function selectionQuery(resource: Resource): Record<string, TSchema> {
  const asked = new Set(filtersOf(resource));
  const fields = Object.entries(resource.fields)
    .filter(([name]) => asked.has(name))
    .map(([name, field]) => [name, Type.Optional(filterOf(field))]);
  const network = (description: string) =>
    Type.Optional(Type.String({ maxLength: 50, description }));
  return {
    q: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: 100,
        description: `Part of ${resource.search.join(', ')}.`,
      }),
    ),
    tag: Type.Optional(
      Type.String({ minLength: 1, maxLength: 64, description: 'The id of a tag.' }),
    ),
    ...(IN_SPACE.has(resource.name) && { within: network('A network: what lies in it.') }),
    ...(resource.name === 'prefixes' && {
      contains: network('An address or a network: the prefixes that contain it.'),
    }),
    ...(Object.fromEntries(fields) as Record<string, TSchema>),
  };
}

export function listQuery(resource: Resource): TObject {
  const sorts = ['-createdAt', ...resource.sorts.flatMap((field) => [field, `-${field}`])];
  return Type.Object(
    {
      ...selectionQuery(resource),
      sort: Type.Enum(sorts, {
        default: '-createdAt',
        description: 'A hyphen turns the order round.',
      }),
      ...pageQuery,
    },
    closed,
  );
}
