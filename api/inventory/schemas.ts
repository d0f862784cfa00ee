import { Type, type Static } from 'typebox';
import { MAX_MUTATIONS, MutationBody, Mutations } from '../../domain/inventory/mutations.ts';
import { OUTCOMES } from '../../domain/inventory/imports.ts';
import { EFFECT_REASONS, OPERATIONS } from '../../domain/inventory/planning.ts';
import { listSchema } from '../http/pagination.ts';
import {
  ACCEPTS_ANY_TEXT,
  Actor,
  closed,
  JsonObject,
  Nullable,
  Timestamp,
} from '../http/schemas.ts';

const NullableText = Nullable(Type.String());

export const FieldChangeView = Type.Object(
  { field: Type.String(), before: Type.Unknown(), after: Type.Unknown() },
  { title: 'FieldChange', 'x-field-change': true, ...closed },
);
export const PlanErrorView = Type.Object(
  {
    pointer: Type.String({
      description:
        'JSON Pointer (RFC 6901) into the record. In the findings of several mutations together, into the body. `/resource`, `/operation` and `/record` of a mutation that names no known resource, operation or record lead into the mutation.',
    }),
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
    // The answer reports what is wrong with a candidate.
    record: Type.Optional({ ...MutationBody.properties.record, ...ACCEPTS_ANY_TEXT }),
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
      title: 'BulkMode',
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
      JsonObject<Record<string, unknown>>({ description: 'Further fields of the new record.' }),
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
      description:
        'Used addresses in percent of the used and the free ones, rounded down to two decimals: 0 also for ' +
        'a few addresses of a large prefix.',
    }),
    children: Type.Integer(),
    addresses: Type.Integer({ description: 'Addresses in the prefix and in its children.' }),
    ranges: Type.Integer(),
  },
  {
    title: 'PrefixUsage',
    description:
      'The network and the broadcast address of an IPv4 prefix shorter than /31 are neither used nor free, ' +
      'unless a child prefix or a range has them. In a container they are free, for child prefixes.',
    ...closed,
  },
);

export const ChangeView = Type.Object(
  {
    id: Type.String({ description: 'The id of the audit entry.' }),
    at: Timestamp,
    action: Type.Enum([...OPERATIONS]),
    restored: Type.Boolean({ description: 'true: a restore of a backup made the change.' }),
    actorId: Actor(),
    requestId: Type.String(),
    version: Type.Integer({
      description: 'A restore returns to the version of the backup.',
    }),
    changes: Type.Array(FieldChangeView),
  },
  { title: 'RecordChange', ...closed },
);

export const ChangeList = Type.Object(
  {
    ...listSchema(ChangeView, 'RecordChangeList').properties,
    archivedUntil: Nullable(
      Type.String({
        format: 'date-time',
        description:
          'When the newest archived entry of the audit log of the tenant of the record was written: changes until then may be in an archive (GET /api/audit/archives) and not in this list. null: nothing is archived.',
      }),
    ),
  },
  { title: 'RecordChangeList' },
);
