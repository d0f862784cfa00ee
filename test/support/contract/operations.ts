import type { Permission } from '../../../domain/access/permissions.ts';

/** The ids that a request names; each is made when a request needs it. */
export type Target =
  | 'approval'
  | 'assignment'
  | 'backup'
  | 'deletableBackup'
  | 'engine'
  | 'event'
  | 'job'
  | 'mapping'
  | 'provider'
  | 'schedule'
  | 'user'
  | 'webhook';

/** Returns the id of a record that a request may use up. */
export type TargetId = (target: Target) => Promise<string>;

type Fields = Readonly<Record<string, unknown>>;
/** The fields of a body that the interface requires, and the others. */
type Body = { required?: Fields; optional?: Fields };

/** One operation of the published interface, and how it is called. */
export type ContractOperation = {
  name: string;
  /** The permission that the interface names for it; for operations without one, what ours need. */
  permission?: Permission;
  /** True if everybody may ask, and sees what they may see. */
  isOpen?: true;
  /** The record that the path names. */
  target?: Target;
  body?: (idOf: TargetId) => Promise<Body> | Body;
  headers?: Readonly<Record<string, string>>;
  status: number;
};

let count = 0;
/** A name that no other record has. */
const uniqueName = (prefix: string): string => `${prefix} ${++count}`;

const SCHEDULE = {
  cronExpression: '30 2 * * 1',
  jobType: 'core.echo',
};

const rbac: ContractOperation[] = [
  { name: 'GET /api/rbac', permission: 'rbac:read', status: 200 },
  { name: 'GET /api/rbac/summary', status: 200 },
  {
    name: 'POST /api/rbac/assignments',
    permission: 'rbac:write',
    // The role has no more than the caller holds: nobody can grant more.
    body: async (idOf) => ({
      required: { userId: await idOf('user'), roleId: 'rbac-write-only' },
      optional: { tenantId: 'platform' },
    }),
    status: 201,
  },
  {
    name: 'DELETE /api/rbac/assignments/{id}',
    permission: 'rbac:write',
    target: 'assignment',
    status: 204,
  },
  {
    name: 'POST /api/rbac/provider-mappings',
    permission: 'rbac:write',
    body: async (idOf) => ({
      required: {
        providerId: await idOf('provider'),
        externalGroup: uniqueName('group'),
        roleId: 'rbac-write-only',
      },
      optional: { tenantId: 'platform' },
    }),
    status: 201,
  },
  {
    name: 'DELETE /api/rbac/provider-mappings/{id}',
    permission: 'rbac:write',
    target: 'mapping',
    status: 204,
  },
];

const providers: ContractOperation[] = [
  { name: 'GET /api/auth/providers', permission: 'auth:read', status: 200 },
  {
    name: 'POST /api/auth/providers',
    permission: 'auth:write',
    body: () => ({
      required: { kind: 'oidc', name: uniqueName('provider'), config: OIDC_CONFIG },
      optional: { enabled: false },
    }),
    status: 201,
  },
  {
    name: 'GET /api/auth/providers/{id}',
    permission: 'auth:read',
    target: 'provider',
    status: 200,
  },
  {
    name: 'PUT /api/auth/providers/{id}',
    permission: 'auth:write',
    target: 'provider',
    body: () => ({ optional: { name: uniqueName('provider'), enabled: false } }),
    status: 200,
  },
  {
    name: 'DELETE /api/auth/providers/{id}',
    permission: 'auth:write',
    target: 'provider',
    status: 204,
  },
  {
    name: 'POST /api/auth/providers/{id}/test',
    permission: 'auth:write',
    target: 'provider',
    status: 200,
  },
  { name: 'GET /api/auth/providers/enabled', status: 200 },
];

/** A provider at a port where nothing listens. */
export const OIDC_CONFIG = {
  issuer: 'http://127.0.0.1:9',
  clientId: 'holdfast',
  clientSecret: 'a secret of the client',
  allowHttp: true,
  allowPrivateNetwork: true,
};

const backups: ContractOperation[] = [
  { name: 'GET /api/backup', permission: 'backup:read', status: 200 },
  {
    name: 'POST /api/backup/create',
    permission: 'backup:write',
    body: async (idOf) => ({
      optional: {
        mode: 'partial',
        sections: ['settings'],
        engine: await idOf('engine'),
        label: 'before work',
      },
    }),
    status: 201,
  },
  { name: 'GET /api/backup/{backupId}', permission: 'backup:read', target: 'backup', status: 200 },
  {
    name: 'DELETE /api/backup/{backupId}',
    permission: 'backup:write',
    target: 'deletableBackup',
    status: 204,
  },
  {
    name: 'POST /api/backup/restore/validate',
    permission: 'backup:read',
    body: async (idOf) => ({ required: { backupId: await idOf('backup') } }),
    status: 200,
  },
  {
    name: 'POST /api/backup/restore',
    permission: 'backup:restore',
    body: async (idOf) => ({ required: { backupId: await idOf('backup') } }),
    // The next request must not meet a restore that still runs.
    headers: { prefer: 'wait=30' },
    status: 202,
  },
  {
    name: 'POST /api/backup/schedules',
    permission: 'schedule:write',
    body: () => ({
      required: { name: uniqueName('weekly backup'), cronExpression: '30 2 * * 1' },
      optional: { mode: 'partial', label: 'weekly' },
    }),
    status: 201,
  },
];

const schedules: ContractOperation[] = [
  { name: 'GET /api/schedules', permission: 'schedule:read', status: 200 },
  {
    name: 'POST /api/schedules',
    permission: 'schedule:write',
    body: () => ({
      required: { name: uniqueName('schedule'), ...SCHEDULE },
      optional: { timezone: 'Europe/London', payload: { text: 'hello' }, enabled: true },
    }),
    status: 201,
  },
  { name: 'GET /api/schedules/{id}', permission: 'schedule:read', target: 'schedule', status: 200 },
  {
    name: 'PUT /api/schedules/{id}',
    permission: 'schedule:write',
    target: 'schedule',
    body: () => ({
      optional: {
        name: uniqueName('schedule'),
        cronExpression: '0 4 * * *',
        timezone: 'Asia/Tokyo',
        enabled: false,
      },
    }),
    status: 200,
  },
  {
    name: 'DELETE /api/schedules/{id}',
    permission: 'schedule:write',
    target: 'schedule',
    status: 204,
  },
  { name: 'GET /api/schedules/logs', permission: 'schedule:read', status: 200 },
];

const workflows: ContractOperation[] = [
  { name: 'GET /api/workflows', permission: 'workflow:read', isOpen: true, status: 200 },
  {
    name: 'POST /api/workflows',
    permission: 'workflow:write',
    body: () => ({
      required: {
        type: 'change',
        title: uniqueName('request'),
        payload: { ticket: 'CHG-1' },
        assignedUserIds: ['decider'],
        assignedRoleIds: ['approver'],
      },
      optional: { tenantId: 'platform' },
    }),
    status: 201,
  },
  { name: 'GET /api/workflows/{id}', permission: 'workflow:read', target: 'approval', status: 200 },
  {
    name: 'POST /api/workflows/{id}/approve',
    permission: 'workflow:approve',
    target: 'approval',
    status: 200,
  },
  {
    name: 'POST /api/workflows/{id}/reject',
    permission: 'workflow:approve',
    target: 'approval',
    status: 200,
  },
];

const webhooks: ContractOperation[] = [
  { name: 'GET /api/webhooks', permission: 'webhook:read', status: 200 },
  {
    name: 'POST /api/webhooks',
    permission: 'webhook:write',
    body: () => ({
      required: {
        endpointUrl: 'https://hooks.example.net/holdfast',
        eventTypes: ['inventory.device.created'],
      },
      optional: { enabled: false, secret: 's3cr3t-1' },
    }),
    status: 201,
  },
  { name: 'GET /api/webhooks/{id}', permission: 'webhook:read', target: 'webhook', status: 200 },
  {
    name: 'PUT /api/webhooks/{id}',
    permission: 'webhook:write',
    target: 'webhook',
    body: () => ({
      optional: {
        endpointUrl: 'http://hooks.example.net/other',
        eventTypes: '*',
        secret: 'another secret',
        enabled: false,
      },
    }),
    status: 200,
  },
  {
    name: 'DELETE /api/webhooks/{id}',
    permission: 'webhook:delete',
    target: 'webhook',
    status: 204,
  },
];

const events: ContractOperation[] = [
  { name: 'GET /api/events', permission: 'event:read', status: 200 },
  { name: 'GET /api/events/{id}', permission: 'event:read', target: 'event', status: 200 },
];

const jobs: ContractOperation[] = [
  {
    name: 'POST /api/jobs',
    permission: 'job:write',
    body: () => ({
      required: { type: 'core.echo', payload: { text: 'hello' } },
      optional: { retryPolicy: { maxAttempts: 2 } },
    }),
    status: 201,
  },
  { name: 'GET /api/jobs', permission: 'job:read', status: 200 },
  { name: 'GET /api/jobs/{jobId}', permission: 'job:read', target: 'job', status: 200 },
  { name: 'GET /api/jobs/{jobId}/logs', permission: 'job:read', target: 'job', status: 200 },
];

const validation: ContractOperation[] = [
  {
    name: 'POST /api/validation/inventory',
    permission: 'inventory:read',
    body: () => ({
      required: {
        resource: 'prefixes',
        operation: 'create',
        record: { cidr: '192.0.2.0/24' },
      },
    }),
    status: 200,
  },
];

/** The operations of the interface that callers with an identity use. */
export const OPERATIONS: readonly ContractOperation[] = [
  ...rbac,
  ...providers,
  ...backups,
  ...schedules,
  ...workflows,
  ...webhooks,
  ...events,
  ...jobs,
  ...validation,
];

/** The other operations, which sign in and out. */
export const SESSION_OPERATIONS = [
  'POST /api/auth/login/local',
  'POST /api/auth/login/ldap',
  'POST /api/auth/login/oidc/start',
  'GET /api/auth/oidc/callback',
  'POST /api/auth/login/saml/start',
  'POST /api/auth/saml/callback',
  'GET /api/auth/session',
  'POST /api/auth/refresh',
  'POST /api/auth/logout',
] as const;
