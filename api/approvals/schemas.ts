import { Type, type Static } from 'typebox';
import {
  APPROVAL_STATUSES,
  DECISIONS,
  EXECUTIONS,
  MAX_ASSIGNEES,
  MAX_COUNTED_REQUESTS,
  MAX_REQUIRED_APPROVALS,
} from '../../domain/approvals/approvals.ts';
import { EFFECT_REASONS, OPERATIONS } from '../../domain/inventory/planning.ts';
import { choiceField, idField, textField, timeField } from '../http/listFields.ts';
import { defineList } from '../http/lists.ts';
import {
  ACCEPTS_ANY_TEXT,
  accountIn,
  Actor,
  closed,
  Id,
  InventoryId,
  JsonObject,
  Name,
  NewName,
  Nullable,
  Reference,
  referenceTo,
  TenantId,
  Timestamp,
} from '../http/schemas.ts';
import { JobReference, JobTarget, TargetRequest } from '../jobs/schemas.ts';
import {
  FieldChangeView,
  PlanConflictView,
  PlanErrorView,
  PlanWarningView,
} from '../inventory/schemas.ts';

const openObject = { additionalProperties: true };
const Text = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    'x-rule': 'must not be blank, nor contain control characters other than tabs and line breaks',
    pattern:
      '^(?:(?=[\\s\\S]*\\S)[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f\\ud800-\\udfff]*)?$',
  });
const Comment = { ...Text(2_000), title: 'Comment' };
const ErrorView = Type.Object(
  { code: Type.String(), message: Type.String() },
  { title: 'Failure', ...closed },
);

const summary = {
  id: Id('apr'),
  type: Type.String(),
  title: Type.String(),
  tenantId: Reference('tenants'),
  siteId: Nullable(
    Reference(
      'sites',
      'The site that the request belongs to: of an open request at a device, that of the device. Null if the site belongs to another tenant now.',
    ),
  ),
  deviceId: Nullable(
    Reference(
      'devices',
      'The device that the request belongs to. Null if it belongs to another tenant now.',
    ),
  ),
  status: Type.Enum([...APPROVAL_STATUSES], { title: 'ApprovalStatus' }),
  execution: Type.Enum([...EXECUTIONS], {
    title: 'ApprovalExecution',
    description:
      'Execution of the bound job. none: no job is bound, or the request is not approved. stale: the job did not run, because it would no longer have done what was approved.',
  }),
  createdBy: Actor('The actor id of the requester.'),
  assignedUserIds: Type.Array(accountIn(Type.String()), { description: 'Users who may decide.' }),
  assignedRoleIds: Type.Array(Reference('roles'), {
    description: 'Roles whose holders may decide.',
  }),
  requiredApprovals: Type.Integer({ description: 'The number of approvals that are needed.' }),
  approvals: Type.Integer({ description: 'The number of approvals so far.' }),
  jobType: Nullable(
    Type.String({
      description: 'The type of the bound job; null if the request asks for a decision only.',
    }),
  ),
  jobTarget: Nullable(JobTarget),
  typeDigest: Nullable(
    Type.String({
      description:
        'The version of a job type of runners that the request is about: its job runs with no other one.',
    }),
  ),
  jobId: Nullable(referenceTo('jobs', Id('job'))),
  job: Nullable(JobReference('The job, and whether it is purged.')),
  contentHash: Type.String({
    description: 'The hash of the content of the request. A decision may name it.',
  }),
  expiresAt: Timestamp,
  executeAt: Nullable(Timestamp),
  closedBy: Nullable(
    Actor('The actor who made the deciding decision or cancelled; `system` for an expiry.'),
  ),
  closedAt: Nullable(Timestamp),
  executedAt: Nullable(Timestamp),
  error: Nullable(ErrorView),
  workflowId: Type.String({ description: 'The id of the Temporal workflow.' }),
  mayDecide: Type.Boolean({ description: 'Whether you may approve or reject the request.' }),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  version: Type.Integer(),
};
export const ApprovalSummary = Type.Object(summary, { title: 'ApprovalSummary', ...closed });
export type ApprovalSummary = Static<typeof ApprovalSummary>;

const Effect = Type.Object(
  {
    action: Type.Enum([...OPERATIONS]),
    resource: Type.String(),
    id: Type.String({ description: 'For a record that does not exist yet: `new:` and a number.' }),
    label: Type.String(),
    reason: Type.Enum([...EFFECT_REASONS]),
    version: Nullable(
      Type.Integer({
        description:
          'The version of the record when the request was created; null for a new record.',
      }),
    ),
    changes: Type.Array(FieldChangeView),
  },
  { title: 'ApprovalEffect', ...closed },
);
export type EffectView = Static<typeof Effect>;

const Difference = Type.Object(
  {
    errors: Type.Array(PlanErrorView),
    conflicts: Type.Array(PlanConflictView),
    effects: Type.Array(
      Type.Object(
        { approved: Nullable(Effect), now: Nullable(Effect) },
        { title: 'EffectDifference', ...closed },
      ),
      { description: 'The effects that differ: as approved, and as they would be now.' },
    ),
  },
  { title: 'ApprovalDifference', ...closed },
);
export type DifferenceView = Static<typeof Difference>;

const AccountProvider = Nullable(
  Type.String({
    description:
      'Where the account has its user name: the name of its identity provider, or `service account`. ' +
      'Null for local accounts, the only ones whose user names are unique.',
  }),
);
const RequesterView = Type.Object(
  {
    id: Type.String(),
    username: Nullable(Type.String()),
    displayName: Nullable(Type.String()),
    provider: AccountProvider,
  },
  { title: 'Requester', ...closed },
);
const NullableText = Nullable(Type.String());

const Reason = Nullable(
  Type.String({
    description:
      'Why not: self_approval, permission_denied, not_assigned, disabled, already_decided, or the status of a closed request.',
  }),
);

export const ApprovalRecord = Type.Object(
  {
    ...summary,
    payload: Type.Object({}, openObject),
    jobTargetName: Nullable(
      Type.String({
        description:
          'The name of the target now, for readers who may read it, and for those who may decide.',
      }),
    ),
    jobPayload: Nullable(
      JsonObject({ description: 'The payload of the bound job. Secrets are masked.' }),
    ),
    validationRequest: Nullable(
      Type.Object(
        {
          mutations: Type.Array(
            Type.Object(
              { resource: Type.String(), operation: Type.String(), record: Type.Unknown() },
              { title: 'RequestedMutation', ...closed },
            ),
          ),
        },
        {
          title: 'RequestedChange',
          ...closed,
          description:
            'The requested change; null if you may neither decide nor read the inventory at the scope of the request.',
        },
      ),
    ),
    effects: Type.Array(Effect, {
      description:
        'Every record that would change, with old and new values, as planned when the request was created.',
    }),
    warnings: Type.Array(PlanWarningView, {
      description: 'Warnings of the plan when the request was created.',
    }),
    labels: Type.Record(Type.String(), Type.String(), {
      description:
        'Labels of the records that effects refer to, by id, as far as you may read them.',
    }),
    people: Type.Record(
      Type.String(),
      Type.Object(
        { username: Type.String(), displayName: Type.String(), provider: AccountProvider },
        closed,
      ),
      { description: 'The accounts of the users involved, by id, as far as you may know them.' },
    ),
    hiddenEffects: Nullable(
      Type.Integer({
        description:
          'The number of changing records that you may not read. Null if you may neither decide nor ' +
          'read the inventory at the scope of the request.',
      }),
    ),
    ifApproved: Type.String({ description: 'What happens next, in sentences.' }),
    blocker: Nullable(
      Type.Object(
        { code: Type.String(), message: Type.String(), difference: Nullable(Difference) },
        {
          title: 'ApprovalBlocker',
          ...closed,
          description:
            'Why the request could not be executed now. Null if nothing blocks it, if it is finished, and in responses to other methods than GET.',
        },
      ),
    ),
    difference: Nullable(Difference),
    closeComment: NullableText,
    requester: RequesterView,
    deciders: Type.Object(
      {
        users: Type.Array(
          Type.Object(
            { ...RequesterView.properties, mayDecide: Type.Boolean(), reason: Reason },
            { title: 'Decider', ...closed },
          ),
        ),
        roles: Type.Array(
          Type.Object(
            {
              id: Type.String(),
              name: Type.String(),
              mayApprove: Type.Boolean({
                description: 'Whether the role itself grants workflow:approve.',
              }),
            },
            { title: 'DecidingRole', ...closed },
          ),
        ),
      },
      {
        ...closed,
        description:
          'Who may decide. Everyone needs workflow:approve at the scope of the request, from an assigned role or another. The names are null for people whom a gateway authenticates; their rights are known only when they call.',
      },
    ),
    decisions: Type.Array(
      Type.Object(
        {
          actorId: Actor(),
          outcome: Type.Enum([...DECISIONS]),
          comment: NullableText,
          contentHash: Type.String(),
          decidedAt: Timestamp,
        },
        { title: 'Decision', ...closed },
      ),
    ),
    comments: Type.Array(
      Type.Object(
        {
          number: Type.Integer(),
          actorId: Actor(),
          text: Type.String(),
          createdAt: Timestamp,
        },
        { title: 'ApprovalComment', ...closed },
      ),
    ),
    you: Type.Object(
      { mayDecide: Type.Boolean(), reason: Reason, mayCancel: Type.Boolean() },
      closed,
    ),
  },
  { title: 'ApprovalRequest', ...closed },
);
export type ApprovalRecord = Static<typeof ApprovalRecord>;

export const ApprovalList = Type.Object(
  {
    items: Type.Array(ApprovalSummary),
    nextCursor: Nullable(Type.String({ description: 'Null on the last page.' })),
    counts: Type.Object(
      Object.fromEntries(APPROVAL_STATUSES.map((status) => [status, Type.Integer()])),
      {
        ...closed,
        description: `The number of requests per status, of at most ${MAX_COUNTED_REQUESTS} that are pending and the newest ${MAX_COUNTED_REQUESTS} others. All filters apply, except \`status\`.`,
      },
    ),
    countsExact: Type.Boolean({ description: 'False if there are more than were counted.' }),
  },
  { title: 'ApprovalList', ...closed },
);
export type ApprovalList = Static<typeof ApprovalList>;

const Assignees = (description: string, maxLength: number) =>
  Type.Array(Type.String({ minLength: 1, maxLength }), {
    maxItems: MAX_ASSIGNEES,
    uniqueItems: true,
    description,
  });

export const ApprovalBody = Type.Object(
  {
    type: NewName({
      description: 'The kind of request, in your own words.',
      examples: ['change'],
    }),
    title: NewName({ description: 'Shown to every reader of the request, and in events.' }),
    payload: Type.Record(Type.String(), Type.Unknown(), {
      ...ACCEPTS_ANY_TEXT,
      description: 'Any data that belongs to the request; shown to every reader of the request.',
    }),
    assignedUserIds: Assignees(
      'Users who may decide: ids of accounts, or the ids with which a gateway names people.',
      255,
    ),
    assignedRoleIds: Assignees('Roles whose holders may decide.', 100),
    tenantId: Type.Optional(
      Name({ description: 'The tenant that the request belongs to. Default: your tenant.' }),
    ),
    siteId: Type.Optional(
      Name({
        description: 'The site that the request belongs to. Approvers need workflow:approve there.',
      }),
    ),
    deviceId: Type.Optional(Name({ description: 'The device that the request belongs to.' })),
    jobType: Type.Optional(
      Name({
        description:
          'The type of the job that runs after the approval. Default with a validationRequest: inventory.apply.',
      }),
    ),
    jobPayload: Type.Optional(
      JsonObject<Record<string, unknown>>({
        ...ACCEPTS_ANY_TEXT,
        description: 'The payload of the job, validated against the schema of its type.',
      }),
    ),
    jobTarget: Type.Optional(
      Nullable(
        TargetRequest(
          'The site or the device that the job is about, for job types with `targets`: a record inside ' +
            'the scope of the request. Part of what is approved.',
        ),
      ),
    ),
    validationRequest: Type.Optional(
      Type.Object(
        {
          resource: Type.Optional(Type.Unknown({ description: 'The resource, such as prefixes.' })),
          operation: Type.Optional(Type.Unknown({ description: 'create, update or delete.' })),
          record: Type.Optional(Type.Unknown({ description: 'The candidate record.' })),
          mutations: Type.Optional(
            Type.Unknown({ description: 'Several mutations instead of one; planned in order.' }),
          ),
        },
        {
          title: 'InventoryChangeRequest',
          ...closed,
          description: 'A change of the inventory, as in POST /api/validation/inventory.',
        },
      ),
    ),
    requiredApprovals: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_REQUIRED_APPROVALS,
        description: 'The number of approvals that are needed. Default: 1.',
      }),
    ),
    expiresAt: Type.Optional(
      Type.String({
        ...Timestamp,
        description:
          'The time after which the request cannot be decided; at most a year ahead. Default: in 14 days, or executeAt if that is earlier.',
      }),
    ),
    executeAt: Type.Optional(
      Type.String({
        ...Timestamp,
        description:
          'The time before which the job does not start; at most a year ahead. Part of what is approved.',
      }),
    ),
  },
  { title: 'ApprovalRequestBody', ...closed },
);
export type ApprovalBody = Static<typeof ApprovalBody>;

export const DecisionBody = Type.Object(
  {
    comment: Type.Optional(Comment),
    contentHash: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 128,
        description:
          'The contentHash that you have read. The decision is refused if the request has another one.',
      }),
    ),
  },
  { title: 'DecisionRequest', ...closed },
);
export const CancelBody = Type.Object(
  { comment: Type.Optional(Comment) },
  { title: 'CancelRequest', ...closed },
);
export const CommentBody = Type.Object({ text: Comment }, { title: 'CommentRequest', ...closed });

export const APPROVALS = defineList({
  name: 'approvals',
  id: 'apr',
  item: ApprovalSummary,
  title: 'ApprovalList',
  fields: {
    status: choiceField(APPROVAL_STATUSES, { title: 'ApprovalStatus' }),
    execution: choiceField(EXECUTIONS, { title: 'ApprovalExecution' }),
    type: textField({ facet: true }),
    tenantId: idField(TenantId()),
    siteId: idField(InventoryId('sit'), { nullable: true }),
    deviceId: idField(InventoryId('dev'), { nullable: true }),
    createdBy: textField({ facet: true }),
    jobType: textField({ nullable: true, facet: true }),
    expiresAt: timeField({ sort: true }),
    createdAt: timeField(),
    updatedAt: timeField({ sort: true }),
  },
  own: {
    assignedToMe: Type.Optional(
      Type.Boolean({
        description:
          'Only requests assigned to you, without pending ones that you have decided. false: only the others.',
      }),
    ),
    requestedByMe: Type.Optional(
      Type.Boolean({ description: 'Only your requests. false: only those of others.' }),
    ),
  },
  more: Type.Omit(ApprovalList, ['items', 'nextCursor']).properties,
});

/** Who could decide on a request: an account. */
export const DeciderRecord = Type.Object(
  {
    id: Id('usr'),
    username: Type.String(),
    displayName: Type.String(),
    provider: AccountProvider,
  },
  { title: 'PossibleDecider', ...closed },
);

export const DECIDERS = defineList({
  name: 'deciders',
  id: 'usr',
  item: DeciderRecord,
  title: 'DeciderList',
  fields: {},
  own: {
    q: Type.Optional(
      Type.String({
        minLength: 3,
        maxLength: 100,
        description: 'Text in the user name or the display name.',
      }),
    ),
    tenantId: Type.Optional(TenantId('The tenant of the request; your own by default.')),
    siteId: Type.Optional(InventoryId('sit')),
    deviceId: Type.Optional(InventoryId('dev')),
  },
  more: {
    roles: Type.Array(
      Type.Object(
        { id: Type.String(), name: Type.String() },
        { title: 'ApprovingRole', ...closed },
      ),
      { description: 'Roles whose holders may decide.' },
    ),
  },
});
