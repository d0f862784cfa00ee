import { Type, type Static, type TInteger, type TObject, type TSchema } from 'typebox';
import { APPROVAL_STATUSES, DECISIONS, EXECUTIONS } from '../approvals/approvals.ts';
import { ENGINES, MODES, SECTIONS } from '../backups/backups.ts';
import { JOB_SOURCES, JOB_STATUSES } from '../jobs/jobs.ts';
import { PERMISSIONS } from '../access/permissions.ts';
import { PROVIDER_KINDS } from '../auth/providers.ts';
import { TOKEN_KINDS } from '../auth/tokenText.ts';
import { RUN_KINDS, RUN_REASONS } from '../schedules/schedules.ts';
import { QUOTA_NAMES, type QuotaName } from '../access/quotas.ts';
import { LEVELS } from '../access/scope.ts';
import { TYPE_STATES } from '../runners/records.ts';
import { HOLD_STATUSES } from '../retention/holds.ts';
import { JOB_KINDS, PERIOD_NAMES, type PeriodName } from '../retention/retention.ts';
import { DISABLED_REASONS } from '../webhooks/webhooks.ts';

const closed = { additionalProperties: false };
const nullable = <S extends TSchema>(schema: S) => Type.Union([schema, Type.Null()]);
/** The data of events; its schema is named in the API description, such as `JobEventData`. */
const data = <P extends Record<string, TSchema>>(name: string, properties: P): TObject<P> =>
  Type.Object(properties, { title: `${name}EventData`, ...closed });

/** What jobs with a target are about. */
const JobTarget = Type.Optional(
  Type.Object({ kind: Type.Enum(['site', 'device']), id: Type.String() }, closed),
);

const Job = data('Job', {
  jobId: Type.String(),
  type: Type.String(),
  status: Type.Enum([...JOB_STATUSES], { title: 'JobStatus' }),
  attempts: Type.Integer(),
  source: Type.Object({ kind: Type.Enum([...JOB_SOURCES]), id: nullable(Type.String()) }, closed),
  target: JobTarget,
  error: nullable(Type.String({ description: 'Error code; null unless it failed.' })),
});

const JobTypeData = data('JobType', {
  name: Type.String(),
  pool: Type.String(),
  state: Type.Enum([...TYPE_STATES], { title: 'JobTypeState' }),
  digest: nullable(Type.String({ description: 'The version that was accepted last.' })),
});
const PoolEvent = data('Pool', { pool: Type.String(), acceptTypes: Type.Array(Type.String()) });

const webhook = {
  webhookId: Type.String(),
  endpointOrigin: Type.String({
    description: 'Scheme, host and port of the endpoint; path and query may contain secrets.',
  }),
  eventTypes: Type.Array(Type.String()),
  enabled: Type.Boolean(),
};
const Webhook = data('Webhook', webhook);
const WebhookDisabled = data('WebhookDisabled', {
  ...webhook,
  reason: Type.Enum(DISABLED_REASONS.filter((reason) => reason !== 'request')),
});

const assignmentScope = {
  roleId: Type.String(),
  level: Type.Enum([...LEVELS]),
  tenantId: Type.String(),
  siteId: nullable(Type.String()),
  deviceId: nullable(Type.String()),
};
const Assignment = data('RoleAssignment', {
  assignmentId: Type.String(),
  userId: Type.String(),
  ...assignmentScope,
});
const Mapping = data('ProviderMapping', {
  mappingId: Type.String(),
  providerId: Type.String(),
  externalGroup: Type.String(),
  ...assignmentScope,
});
const Days = Type.Union([Type.Integer(), Type.Null()], {
  description: 'Number of days; null: kept for ever.',
});
const Retention = data('Retention', {
  tenantId: Type.String(),
  days: Type.Object(
    Object.fromEntries(PERIOD_NAMES.map((name) => [name, Days])) as Record<PeriodName, typeof Days>,
    closed,
  ),
  jobTypes: Type.Record(
    Type.String(),
    Type.Object(
      Object.fromEntries(JOB_KINDS.map((kind) => [kind, Type.Optional(Days)])) as Record<
        (typeof JOB_KINDS)[number],
        ReturnType<typeof Type.Optional<typeof Days>>
      >,
      closed,
    ),
  ),
});
const Quota = data('Quota', {
  tenantId: Type.String(),
  limits: Type.Object(
    Object.fromEntries(QUOTA_NAMES.map((name) => [name, Type.Integer()])) as Record<
      QuotaName,
      TInteger
    >,
    closed,
  ),
});
const Role = data('Role', {
  roleId: Type.String(),
  name: Type.String(),
  permissions: Type.Array(Type.Enum([...PERMISSIONS], { title: 'Permission' })),
  jobTypes: Type.Optional(
    Type.Array(Type.String(), {
      description: 'Patterns of the job types that the role names; absent in older events.',
    }),
  ),
});
const Provider = data('Provider', {
  providerId: Type.String(),
  kind: Type.Enum([...PROVIDER_KINDS]),
  name: Type.String(),
  enabled: Type.Boolean(),
});
/** Ids only: callers who may read events may not be allowed to read names and addresses. */
const User = data('User', {
  userId: Type.String(),
  providerId: Type.String(),
  tenantId: Type.String(),
  enabled: Type.Boolean(),
});

const Token = data('Token', {
  tokenId: Type.String(),
  kind: Type.Enum([...TOKEN_KINDS]),
  userId: Type.String({ description: 'The user or service account that it belongs to.' }),
  expiresAt: Type.String({ format: 'date-time' }),
  lastUsedAt: nullable(Type.String({ format: 'date-time' })),
});

const schedule = { scheduleId: Type.String(), name: Type.String(), jobType: Type.String() };
const Schedule = data('Schedule', {
  ...schedule,
  target: JobTarget,
  cronExpression: Type.String(),
  timezone: Type.String(),
  enabled: Type.Boolean(),
});
const run = {
  ...schedule,
  kind: Type.Enum([...RUN_KINDS]),
  dueAt: Type.String({ format: 'date-time' }),
};
const ScheduleFired = data('ScheduleFired', { ...run, runId: Type.String(), jobId: Type.String() });
const ScheduleSkipped = data('ScheduleSkipped', {
  ...run,
  reason: Type.Enum([...RUN_REASONS]),
  occurrences: Type.Integer({
    description: 'The number of skipped occurrences, from dueAt to lastDueAt.',
  }),
  lastDueAt: Type.String({ format: 'date-time' }),
});
const ScheduleFailed = data('ScheduleFailed', {
  ...run,
  runId: Type.String(),
  reason: Type.Enum([...RUN_REASONS]),
});

const workflow = {
  approvalId: Type.String(),
  type: Type.String(),
  title: Type.String(),
  siteId: nullable(Type.String()),
  deviceId: nullable(Type.String()),
  status: Type.Enum([...APPROVAL_STATUSES], { title: 'ApprovalStatus' }),
  execution: Type.Enum([...EXECUTIONS], { title: 'ApprovalExecution' }),
  requestedBy: Type.String(),
  requiredApprovals: Type.Integer(),
  approvals: Type.Integer({ description: 'Number of approvals so far.' }),
  jobType: nullable(Type.String()),
  jobId: nullable(Type.String()),
  error: nullable(Type.String({ description: 'Error code; null unless it failed.' })),
  expiresAt: Type.String({ format: 'date-time' }),
  executeAt: nullable(Type.String({ format: 'date-time' })),
};
const assigned = {
  assignedUserIds: Type.Array(Type.String()),
  assignedRoleIds: Type.Array(Type.String()),
};
const Workflow = data('Workflow', workflow);
const WorkflowPending = data('WorkflowPending', { ...workflow, ...assigned });
const WorkflowMoved = data('WorkflowMoved', {
  ...workflow,
  ...assigned,
  fromSiteId: nullable(Type.String()),
  toSiteId: nullable(
    Type.String({
      description:
        'Who may decide here decides now. Null if the device is at no site of the tenant.',
    }),
  ),
});
const WorkflowDecision = data('WorkflowDecision', {
  ...workflow,
  decision: Type.Enum([...DECISIONS]),
  decidedBy: Type.String(),
});
const WorkflowComment = data('WorkflowComment', {
  ...workflow,
  number: Type.Integer({
    description: 'Number of the comment; its text is part of the approval request.',
  }),
  commentedBy: Type.String(),
});

const Backup = data('Backup', {
  backupId: Type.String(),
  mode: Type.Enum([...MODES]),
  sections: Type.Array(Type.Enum([...SECTIONS], { title: 'BackupSection' })),
  engine: Type.Enum([...ENGINES]),
  label: Type.String(),
  status: Type.String(),
  sizeBytes: nullable(Type.Integer()),
  rows: nullable(Type.Integer()),
  jobId: nullable(Type.String()),
  error: nullable(Type.String({ description: 'Error code; null unless it failed.' })),
});
const Restore = data('Restore', {
  backupId: Type.String(),
  jobId: nullable(Type.String({ description: 'Null for a restore from the command line.' })),
  sections: Type.Array(Type.Enum([...SECTIONS], { title: 'BackupSection' })),
  preRestoreBackupId: nullable(Type.String()),
  created: Type.Integer(),
  changed: Type.Integer(),
  deleted: Type.Integer(),
  error: nullable(Type.String({ description: 'Error code; null unless it failed.' })),
});

const Secret = data('Secret', { secretId: Type.String() });

const LegalHold = data('LegalHold', {
  holdId: Type.String(),
  level: Type.Enum(['platform', 'tenant']),
  status: Type.Enum([...HOLD_STATUSES]),
});

/** The inventory resources in the singular, as event types name them. */
const INVENTORY = [
  'tenant',
  'region',
  'site',
  'location',
  'rack',
  'manufacturer',
  'device-type',
  'device-role',
  'platform',
  'device',
  'interface',
  'cable',
  'vrf',
  'vlan-group',
  'vlan',
  'prefix',
  'ip-range',
  'ip-address',
  'tag',
  'custom-field',
] as const;
const InventoryRecord = data('InventoryRecord', {
  recordId: Type.String(),
  label: Type.String({ description: 'The name that the record is shown with.' }),
  siteId: nullable(Type.String()),
  version: Type.Integer(),
  changed: Type.Array(Type.String(), {
    description:
      'Names of the fields that changed. A record that moves to another tenant is deleted in the one and created in the other: both events have `tenantId` here.',
  }),
});
type InventoryEvent =
  `inventory.${(typeof INVENTORY)[number]}.${'created' | 'updated' | 'deleted'}`;
const INVENTORY_DATA = Object.fromEntries(
  INVENTORY.flatMap((resource) =>
    ['created', 'updated', 'deleted'].map((verb) => [
      `inventory.${resource}.${verb}`,
      InventoryRecord,
    ]),
  ),
) as Record<InventoryEvent, typeof InventoryRecord>;

/**
 * The JSON Schema of the data of each event type. Data never contains secrets, because every
 * webhook of the tenant may subscribe to every type.
 */
export const EVENT_DATA = {
  'webhook.created': Webhook,
  'webhook.updated': Webhook,
  'webhook.deleted': Webhook,
  'webhook.disabled': WebhookDisabled,
  'job.created': Job,
  'job.started': Job,
  'job.waiting': Job,
  'job.succeeded': Job,
  'job.failed': Job,
  'job.cancelled': Job,
  'job-type.announced': JobTypeData,
  'job-type.updated': JobTypeData,
  'job-type.deleted': JobTypeData,
  'pool.created': PoolEvent,
  'pool.updated': PoolEvent,
  'pool.deleted': PoolEvent,
  'rbac.assignment.created': Assignment,
  'rbac.assignment.deleted': Assignment,
  'rbac.mapping.created': Mapping,
  'rbac.mapping.deleted': Mapping,
  'rbac.role.created': Role,
  'rbac.role.updated': Role,
  'rbac.role.deleted': Role,
  'quota.updated': Quota,
  'retention.updated': Retention,
  'auth.provider.created': Provider,
  'auth.provider.updated': Provider,
  'auth.provider.deleted': Provider,
  'auth.user.created': User,
  'auth.user.updated': User,
  'token.expiring': Token,
  'token.unused': Token,
  'schedule.created': Schedule,
  'schedule.updated': Schedule,
  'schedule.deleted': Schedule,
  'schedule.ended': Schedule,
  'schedule.fired': ScheduleFired,
  'schedule.skipped': ScheduleSkipped,
  'schedule.failed': ScheduleFailed,
  'workflow.created': WorkflowPending,
  'workflow.approved': Workflow,
  'workflow.rejected': Workflow,
  'workflow.expired': Workflow,
  'workflow.cancelled': Workflow,
  'workflow.executed': Workflow,
  'workflow.moved': WorkflowMoved,
  'workflow.reminder': WorkflowPending,
  'workflow.decision.created': WorkflowDecision,
  'workflow.comment.created': WorkflowComment,
  'backup.created': Backup,
  'backup.completed': Backup,
  'backup.failed': Backup,
  'backup.deleted': Backup,
  'restore.completed': Restore,
  'restore.failed': Restore,
  'secret.created': Secret,
  'secret.updated': Secret,
  'secret.deleted': Secret,
  'legal-hold.created': LegalHold,
  'legal-hold.released': LegalHold,
  ...INVENTORY_DATA,
} as const satisfies Record<string, TObject>;

export type EventType = keyof typeof EVENT_DATA;
export type EventData<T extends EventType> = Static<(typeof EVENT_DATA)[T]>;

/** Event types that webhooks can subscribe to and that lists of events can be filtered by. */
export const SUPPORTED_EVENT_TYPES: readonly string[] = Object.keys(EVENT_DATA).sort();

/** Subscribes a webhook to every type, including types that are added later. */
export const ALL_EVENT_TYPES = '*';
