import { Type, type TSchema, type TSchemaOptions } from 'typebox';
import { TENANT_ID, TENANT_ID_RULE } from '../../domain/access/tenantId.ts';
import type { LabelKind } from '../../domain/shared/labels.ts';
import { MAX_NAME } from '../../domain/shared/names.ts';
import { STORED_LINE, TRIMMED_LINE } from '../../domain/shared/oneLine.ts';

/** For objects that have no other properties. */
export const closed = { additionalProperties: false };

/** The names of the schemas of ids. */
const ID_NAMES = {
  aar: 'AuditArchiveId',
  apr: 'ApprovalId',
  asg: 'RoleAssignmentId',
  aud: 'AuditEntryId',
  bkp: 'BackupId',
  dlv: 'DeliveryId',
  evt: 'EventId',
  hld: 'LegalHoldId',
  imp: 'ImportId',
  job: 'JobId',
  map: 'ProviderMappingId',
  rnr: 'RunnerId',
  run: 'ScheduleRunId',
  sch: 'ScheduleId',
  sec: 'SecretId',
  viw: 'ViewId',
  ses: 'SessionId',
  tok: 'TokenId',
  usr: 'UserId',
  whk: 'WebhookId',
} as const;

/** The id of a record: its kind and a UUIDv7 in base 32. */
export const Id = (kind: keyof typeof ID_NAMES) =>
  Type.String({
    title: ID_NAMES[kind],
    pattern: `^${kind}_[0-9a-z]{26}$`,
    'x-rule': `must be an id such as ${kind}_01jd0cmxk5e5v8kyzwq0q8s3rt`,
    examples: [`${kind}_01jd0cmxk5e5v8kyzwq0q8s3rt`],
  });

/** The id of a record of the inventory. */
export const InventoryId = (prefix: string) =>
  Type.String({
    pattern: `^${prefix}_[0-9a-z]{26}$`,
    'x-rule': `must be an id such as ${prefix}_01jd0cmxk5e5v8kyzwq0q8s3rt`,
  });

/** Id of a tenant: short and readable. */
export const TenantId = (description?: string) =>
  Type.String({
    title: 'TenantId',
    pattern: TENANT_ID,
    'x-rule': TENANT_ID_RULE,
    ...(description !== undefined && { description }),
    'x-reference': 'tenants',
  });

/** Id of an identity provider. */
export const ProviderId = Type.String({
  title: 'ProviderId',
  pattern: '^(local|idp_[0-9a-z]{26})$',
  'x-rule': 'must be local, or an id such as idp_01jd0cmxk5e5v8kyzwq0q8s3rt',
});

/** The id of a record of `kind`, in a response: `include=labels` adds its label. */
export const referenceTo = <S extends TSchema>(kind: LabelKind, schema: S): S => ({
  ...schema,
  'x-reference': kind,
});

/** The id of a record of `kind`, in a response. */
export const Reference = (kind: LabelKind, description?: string) =>
  referenceTo(kind, Type.String({ ...(description !== undefined && { description }) }));

/** Who did what a record says: `include=people` adds the name. */
export const Actor = (description?: string) =>
  Type.String({ 'x-person': 'actor', ...(description !== undefined && { description }) });

/** Text that may be the id of a record or an account: `include` adds the names of those. */
export const MaybeId = (description?: string) =>
  Type.String({ 'x-any-id': true, ...(description !== undefined && { description }) });

/** An account that a record mentions: `include=people` adds the name for readers of accounts. */
export const accountIn = <S extends TSchema>(schema: S): S => ({
  ...schema,
  'x-person': 'account',
});

/** The name or the id of something that exists, perhaps in another system. */
export const Name = (options: TSchemaOptions = {}) =>
  Type.String({ title: 'Name', minLength: 1, maxLength: MAX_NAME, ...STORED_LINE, ...options });

/** A name or a title in a request that creates or changes something. */
export const NewName = (options: TSchemaOptions = {}) =>
  Type.String({ title: 'NewName', minLength: 1, maxLength: MAX_NAME, ...TRIMMED_LINE, ...options });

/** Any JSON object. */
export const JsonObject = <T extends object = object>(options: TSchemaOptions = {}) =>
  Type.Unsafe<T>(Type.Object({}, { title: 'JsonObject', additionalProperties: true, ...options }));

/**
 * A property of a body in which any text is accepted, also what a column of the type `text` cannot store:
 * a payload, which is stored as it was sent in a column of the type `json`, or what the operation checks
 * itself. SQL must not read such columns with JSON functions, which refuse this text.
 */
export const ACCEPTS_ANY_TEXT = { 'x-any-text': true } as const;

/** A time in RFC 3339. */
export const Timestamp = Type.String({
  title: 'Timestamp',
  format: 'date-time',
  examples: ['2026-11-21T09:30:00.000Z'],
});

/** A position in a log, such as the sequence of an event; 0 is before the first one. */
export const Position = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description });

/** A value that may be null. */
export const Nullable = <S extends Parameters<typeof Type.Union>[0][number]>(schema: S) =>
  Type.Union([schema, Type.Null()]);

/** Advice about an accepted request, in the response to that request only. */
export const Warnings = Type.Optional(
  Type.Array(
    Type.Object(
      {
        code: Type.String(),
        pointer: Type.String({ description: 'The field of the request body.' }),
        message: Type.String(),
      },
      { title: 'Warning', additionalProperties: false },
    ),
    { description: 'Advice about the request, only in the response to it, if there is any.' },
  ),
);
