import { Type, type Static } from 'typebox';
import {
  APPROVAL_STATUSES,
  DECISIONS,
  EXECUTIONS,
  MAX_ASSIGNEES,
  MAX_REQUIRED_APPROVALS,
} from '../../domain/approvals/approvals.ts';
import { EFFECT_REASONS, OPERATIONS } from '../../domain/inventory/planning.ts';
import { pageQuery } from '../http/pagination.ts';
import { Id, Name, Nullable, Timestamp } from '../http/schemas.ts';
import { FieldChangeView, PlanConflictView, PlanErrorView, PlanWarningView } from '../inventory/schemas.ts';

const closed = { additionalProperties: false };
const anything = { additionalProperties: true };
const Text = (maxLength: number) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern:
      '^(?=[\\s\\S]*\\S)[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f\\ud800-\\udfff]*$',
  });
const Comment = Text(2_000);
const Failure = Type.Object({ code: Type.String(), message: Type.String() }, closed);

const summary = {
  id: Id('apr'),
  type: Type.String(),
  title: Type.String(),
  tenantId: Type.String(),
  siteId: Nullable(Type.String()),
  deviceId: Nullable(Type.String()),
  status: Type.Enum([...APPROVAL_STATUSES]),
  execution: Type.Enum([...EXECUTIONS], {
    description:
      'What became of its job. none: there is none, or nothing was approved. stale: it would not have done what was approved, and was not done.',
  }),
  createdBy: Type.String(),
  assignedUserIds: Type.Array(Type.String()),
  assignedRoleIds: Type.Array(Type.String()),
  requiredApprovals: Type.Integer(),
  approvals: Type.Integer({ description: 'How many have approved.' }),
  jobType: Nullable(Type.String({ description: 'The job that runs when it is approved.' })),
  jobId: Nullable(Id('job')),
  contentHash: Type.String({
    description: 'The hash of what is asked for; a decision may name it.',
  }),
  expiresAt: Timestamp,
  executeAt: Nullable(Timestamp),
  closedBy: Nullable(Type.String({ description: 'Who decided, or cancelled.' })),
  closedAt: Nullable(Timestamp),
  executedAt: Nullable(Timestamp),
  error: Nullable(Failure),
  workflowId: Type.String({ description: 'The workflow in Temporal.' }),
  mayDecide: Type.Boolean({ description: 'Whether you may approve or reject it.' }),
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
    id: Type.String({ description: 'new: and a number for a record that is not there yet.' }),
    label: Type.String(),
    reason: Type.Enum([...EFFECT_REASONS]),
    version: Nullable(
      Type.Integer({ description: 'Of the record as it was when the request was made.' }),
    ),
    changes: Type.Array(FieldChangeView),
  },
  closed,
);
export type EffectView = Static<typeof Effect>;

const Difference = Type.Object(
  {
    errors: Type.Array(PlanErrorView),
    conflicts: Type.Array(PlanConflictView),
    effects: Type.Array(
      Type.Object({ approved: Nullable(Effect), now: Nullable(Effect) }, closed),
      { description: 'What was asked for and what would happen now, where they differ.' },
    ),
  },
  closed,
);
export type DifferenceView = Static<typeof Difference>;

const User = Type.Object(
  { id: Type.String(), username: Nullable(Type.String()), displayName: Nullable(Type.String()) },
  closed,
);
const nothing = Nullable(Type.String());

const Reason = Nullable(
  Type.String({
    description:
      'Why not: self_approval, permission_denied, not_assigned, disabled, already_decided, or the status of a request that is closed.',
  }),
);

export const ApprovalRecord = Type.Object(
  {
    ...summary,
    payload: Type.Object({}, anything),
    jobPayload: Nullable(Type.Object({}, { ...anything, description: 'Secrets masked.' })),
    validationRequest: Nullable(
      Type.Object(
        {
          mutations: Type.Array(
            Type.Object(
              { resource: Type.String(), operation: Type.String(), record: Type.Unknown() },
              closed,
            ),
          ),
        },
        {
          ...closed,
          description:
            'The change as it was asked for; null where you may neither decide nor read the inventory.',
        },
      ),
    ),
    effects: Type.Array(Effect, {
      description: 'Every record that changes, old and new, as planned when the request was made.',
    }),
    warnings: Type.Array(PlanWarningView, {
      description: 'What the plan advised when the request was made.',
    }),
    labels: Type.Record(Type.String(), Type.String(), {
      description:
        'What the records are called that effects refer to, by their ids, where you may read them.',
    }),
    people: Type.Record(
      Type.String(),
      Type.Object({ username: Type.String(), displayName: Type.String() }, closed),
      { description: 'Everybody who has a part in it and has an account, by id.' },
    ),
    hiddenEffects: Type.Integer({
      description: 'Records that change where you may not read them.',
    }),
    ifApproved: Type.String({ description: 'What happens next, in words.' }),
    changedSince: Nullable(
      Type.Object(
        { code: Type.String(), message: Type.String(), difference: Nullable(Difference) },
        {
          ...closed,
          description:
            'Why it would not be carried out as the world is now; null when it would, when that is over, and in answers to anything but GET.',
        },
      ),
    ),
    difference: Nullable(Difference),
    closeComment: nothing,
    requester: User,
    deciders: Type.Object(
      {
        users: Type.Array(
          Type.Object({ ...User.properties, mayDecide: Type.Boolean(), reason: Reason }, closed),
        ),
        roles: Type.Array(
          Type.Object(
            {
              id: Type.String(),
              name: Type.String(),
              mayApprove: Type.Boolean({ description: 'The role gives workflow:approve itself.' }),
            },
            closed,
          ),
        ),
      },
      {
        ...closed,
        description:
          'Who may decide. Whoever holds a role needs workflow:approve here, by it or by another one.',
      },
    ),
    decisions: Type.Array(
      Type.Object(
        {
          actorId: Type.String(),
          outcome: Type.Enum([...DECISIONS]),
          comment: nothing,
          contentHash: Type.String(),
          decidedAt: Timestamp,
        },
        closed,
      ),
    ),
    comments: Type.Array(
      Type.Object(
        {
          number: Type.Integer(),
          actorId: Type.String(),
          text: Type.String(),
          createdAt: Timestamp,
        },
        closed,
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
    nextCursor: Nullable(Type.String({ description: 'null on the last page.' })),
    counts: Type.Object(
      Object.fromEntries(APPROVAL_STATUSES.map((status) => [status, Type.Integer()])),
      {
        ...closed,
        description: 'How many there are of each status, with all filters but that of the status.',
      },
    ),
  },
  { title: 'ApprovalList', ...closed },
);

const Assignees = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 100 }), {
    maxItems: MAX_ASSIGNEES,
    uniqueItems: true,
    description,
  });

export const ApprovalBody = Type.Object(
  {
    type: Name({
      description: 'What kind of request it is; yours to choose.',
      examples: ['change'],
    }),
    title: Name({ description: 'Shown to whoever may see the request, and in events.' }),
    payload: Type.Record(Type.String(), Type.Unknown(), {
      description: 'Anything that belongs to the request; shown to whoever may see it.',
    }),
    assignedUserIds: Assignees('Users who may decide.'),
    assignedRoleIds: Assignees('Roles whose holders may decide.'),
    tenantId: Type.Optional(Name({ description: 'Where it stands; yours unless given.' })),
    siteId: Type.Optional(
      Name({
        description: 'It stands at this site: whoever may decide there, may decide about it.',
      }),
    ),
    deviceId: Type.Optional(Name({ description: 'It stands at this device.' })),
    jobType: Type.Optional(
      Name({
        description:
          'The job that runs when it is approved; for a change inventory.apply unless given.',
      }),
    ),
    jobPayload: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: 'Checked against the schema of the job type.',
      }),
    ),
    validationRequest: Type.Optional(
      Type.Object(
        {
          resource: Type.Optional(Type.Unknown({ description: 'As there.' })),
          operation: Type.Optional(Type.Unknown({ description: 'As there.' })),
          record: Type.Optional(Type.Unknown({ description: 'As there.' })),
          mutations: Type.Optional(
            Type.Unknown({ description: 'Several, instead of the three; planned in order.' }),
          ),
        },
        {
          ...closed,
          description: 'A change of the inventory, as for POST /api/validation/inventory.',
        },
      ),
    ),
    requiredApprovals: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: MAX_REQUIRED_APPROVALS,
        description: 'How many must approve; 1 unless given.',
      }),
    ),
    expiresAt: Type.Optional(
      Type.String({
        ...Timestamp,
        description:
          'Nobody decides after it, within a year; 14 days unless given, or executeAt where that is earlier.',
      }),
    ),
    executeAt: Type.Optional(
      Type.String({
        ...Timestamp,
        description: 'Not before this is it carried out, within a year; part of what is approved.',
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
        description: 'That of the request that you looked at; another one is refused.',
      }),
    ),
  },
  closed,
);
export const CancelBody = Type.Object({ comment: Type.Optional(Comment) }, closed);
export const CommentBody = Type.Object({ text: Comment }, closed);

export const ApprovalQuery = Type.Object(
  {
    ...pageQuery,
    status: Type.Optional(Type.Array(Type.Enum([...APPROVAL_STATUSES]), { maxItems: 5 })),
    execution: Type.Optional(Type.Enum([...EXECUTIONS])),
    type: Type.Optional(Name()),
    tenantId: Type.Optional(Name()),
    assignedToMe: Type.Optional(
      Type.Boolean({
        description:
          'Those that you may decide about, but for those that wait and that you have decided.',
      }),
    ),
    requestedByMe: Type.Optional(Type.Boolean()),
  },
  closed,
);
