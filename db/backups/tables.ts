import type { Section } from '../../domain/backups.ts';

/**
 * `state` is what is so now: a restore makes it what it was. `history` is what has happened: a restore brings back what is
 * missing, and takes nothing away (docs/adr/0020-restore-and-history.md).
 */
type TableMode = 'state' | 'history';

/** A table in a section of backups. Its order among the others is one in which rows can be inserted. */
export type BackedUpTable = {
  name: string;
  section: Section;
  mode: TableMode;
  key: readonly string[];
  /** Which rows are a tenant's, as SQL on the alias `t`; null where rows are nobody's own. */
  ofTenant: string | null;
  /** Columns that tell how something goes on, and stay as they are in what is there. */
  own: readonly string[];
  /** Columns that are worked out from records that may be another's. */
  workedOut: readonly string[];
  /** Columns whose values no preview shows. */
  hidden: readonly string[];
  /** How a row is taken away where rows stay, marked as deleted, for what refers to them: assignments of an UPDATE. */
  tombstone: string | null;
};

type Options = Partial<
  Pick<BackedUpTable, 'key' | 'ofTenant' | 'own' | 'workedOut' | 'hidden' | 'tombstone'>
>;

const OWN_TENANT = 't.tenant_id = :tenant';

const table =
  (section: Section, mode: TableMode) =>
  (name: string, options: Options = {}): BackedUpTable => ({
    name,
    section,
    mode,
    key: ['id'],
    ofTenant: OWN_TENANT,
    own: [],
    workedOut: [],
    hidden: [],
    tombstone: null,
    ...options,
  });

const through = (column: string, parent: string) =>
  `t.${column} IN (SELECT id FROM public.${parent} WHERE tenant_id = :tenant)`;

const settings = table('settings', 'state');
const inventory = table('inventory', 'state');
const access = table('access', 'state');
const jobs = table('jobs', 'history');
const events = table('events', 'history');
const deliveries = table('webhooks', 'history');
const runs = table('schedules', 'history');
const workflows = table('workflows', 'history');
const audit = table('audit', 'history');

const SHARED = { ofTenant: null };

export const TABLES: readonly BackedUpTable[] = [
  settings('custom_fields'),
  settings('tags', SHARED),
  inventory('tenants', { ofTenant: 't.id = :tenant' }),
  inventory('regions'),
  inventory('sites'),
  inventory('locations'),
  inventory('racks'),
  inventory('manufacturers', SHARED),
  inventory('device_types', SHARED),
  inventory('device_roles', SHARED),
  inventory('platforms', SHARED),
  inventory('vrfs'),
  inventory('devices', { workedOut: ['units', 'depth'] }),
  inventory('vlan_groups'),
  inventory('vlans'),
  inventory('interfaces', { workedOut: ['tenant_id', 'site_id'] }),
  inventory('cables'),
  inventory('prefixes', { workedOut: ['parent_prefix_id', 'unique_in_vrf'] }),
  inventory('ip_ranges'),
  inventory('ip_addresses', { workedOut: ['unique_in_vrf'] }),
  access('providers', { ...SHARED, hidden: ['config', 'secrets'] }),
  access('roles', SHARED),
  access('users', { own: ['last_login_at'], hidden: ['password_hash'] }),
  access('grants'),
  jobs('jobs', { hidden: ['payload', 'result', 'error', 'authority'] }),
  jobs('job_logs', {
    key: ['job_id', 'line'],
    ofTenant: through('job_id', 'jobs'),
    hidden: ['message', 'data'],
  }),
  jobs('imports', { hidden: ['authority'] }),
  jobs('import_rows', {
    key: ['import_id', 'line'],
    ofTenant: through('import_id', 'imports'),
    hidden: ['mutation', 'report'],
  }),
  jobs('inventory_applies', {
    key: ['job_id'],
    ofTenant: through('job_id', 'jobs'),
    hidden: ['result'],
  }),
  events('events'),
  table('webhooks', 'state')('webhooks', {
    own: ['failing_since'],
    hidden: ['secret', 'previous_secret'],
    tombstone: `enabled = false, disabled_at = coalesce(t.disabled_at, :now), disabled_reason = coalesce(t.disabled_reason, 'request'), deleted_at = :now,
      cancel_before = :now, cancel_reason = 'webhook_deleted', updated_at = :now, version = t.version + 1`,
  }),
  deliveries('deliveries'),
  deliveries('delivery_attempts', {
    key: ['delivery_id', 'number'],
    ofTenant: through('delivery_id', 'deliveries'),
    hidden: ['request_headers', 'answer'],
  }),
  table('schedules', 'state')('schedules', {
    own: ['next_due_at', 'last_run_id', 'run_count', 'checked_at'],
    hidden: ['payload', 'owner'],
    tombstone: 'next_due_at = NULL, deleted_at = :now, updated_at = :now, version = t.version + 1',
  }),
  runs('schedule_runs'),
  workflows('approvals', {
    hidden: ['payload', 'job_payload', 'mutations', 'plan', 'content_key', 'authority'],
  }),
  workflows('approval_assignees', {
    key: ['approval_id', 'kind', 'assignee_id'],
    ofTenant: through('approval_id', 'approvals'),
  }),
  workflows('approval_decisions', {
    key: ['approval_id', 'actor_id'],
    ofTenant: through('approval_id', 'approvals'),
  }),
  workflows('approval_comments', {
    key: ['approval_id', 'number'],
    ofTenant: through('approval_id', 'approvals'),
  }),
  audit('audit_entries', { hidden: ['before', 'after'] }),
  audit('audit_heads', { key: ['tenant_id'] }),
];

/** Tables that no backup holds, and why. */
export const NOT_BACKED_UP: Readonly<Record<string, string>> = {
  schema_migrations: 'an archive names the version of its schema',
  schema_migrations_lock: 'as schema_migrations',
  outbox: 'calls that are owed are worked out again from the records',
  idempotency_keys: 'answers of the last day to requests that are over',
  sessions: 'who is signed in now stays so, as far as the account does',
  session_tokens: 'as sessions',
  logins: 'sign-ins that are under way',
  rate_limits: 'counts of the last minutes',
  access_state: 'counts changes of rights; a restore is one more',
  event_head: 'the last sequence of the events that are there',
  cable_ends: 'worked out from cables',
  free_hints: 'worked out from prefixes and addresses',
  backups: 'what archives there are does not change by restoring one',
  restore_runs: 'as backups',
};
