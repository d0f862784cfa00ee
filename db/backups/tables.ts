import type { Permission } from '../../domain/access/permissions.ts';
import type { Section } from '../../domain/backups/backups.ts';

/**
 * How a restore treats a table. `state`: its rows become exactly those of the backup. `history`:
 * missing rows are added and nothing is removed (docs/adr/0020-restores-keep-history.md).
 */
type TableMode = 'state' | 'history';

/** A table that backups contain. */
export type BackedUpTable = {
  name: string;
  section: Section;
  mode: TableMode;
  /** The columns of the primary key. */
  key: readonly [string, ...string[]];
  /**
   * SQL condition on the alias `t` that selects the rows of the tenant `:tenant`; null for tables
   * that all tenants share.
   */
  tenantFilter: string | null;
  /**
   * True for records that only the platform creates and deletes: the restore of a tenant changes those
   * that exist, but neither adds nor deletes one.
   */
  createdByPlatform: boolean;
  /** Columns that record ongoing activity: a restore keeps the current values of existing rows. */
  preserved: readonly string[];
  /**
   * Columns that a restore does not simply set, since it revives no account and no credential: the SQL
   * of the value that it writes, from the row `s` of the backup and the current row `l`, whose columns
   * are null if there is none. `:backup` is the table of the backup. An empty database gets everything
   * as it was.
   */
  guarded: Readonly<Record<string, string>>;
  /** Columns that are computed from records which may belong to other tenants. */
  derived: readonly string[];
  /** Columns whose values no preview shows, such as secrets. */
  hidden: readonly string[];
  /**
   * Required to see rows in a preview besides the permission of the section: the one by which the API shows
   * these records. Null if that of the section is enough.
   */
  readPermission: Permission | null;
  /**
   * SQL condition on the alias `s` that selects rows of a backup which were moved out of the database
   * since: a restore does not add them. Null for tables without such rows.
   */
  removedSince: string | null;
  /**
   * SQL condition on the alias `s` that selects rows of work which the installation had not finished
   * when it made the backup, and can finish on its own: no restore adds them. Null without such rows.
   */
  unfinished: string | null;
  /**
   * SQL condition on a row `s` of a backup and a current row `l`: both are about the same, under different
   * keys. So it is when the installation went on from an older backup. The current row remains.
   */
  sameAs: string | null;
  /** SQL condition on two such rows: the current one gets the values of the backup. */
  supersedes: string;
  /** SQL of the values that a restore inserts instead of those of the row `s`, by column. */
  inserted: Readonly<Record<string, string>>;
  /**
   * For tables whose deleted rows remain because others refer to them: the assignments of the
   * UPDATE that marks a row as deleted. Null for tables whose rows are deleted.
   */
  tombstone: string | null;
};

type Options = Partial<
  Pick<
    BackedUpTable,
    | 'key'
    | 'tenantFilter'
    | 'createdByPlatform'
    | 'preserved'
    | 'guarded'
    | 'derived'
    | 'hidden'
    | 'readPermission'
    | 'removedSince'
    | 'unfinished'
    | 'sameAs'
    | 'supersedes'
    | 'inserted'
    | 'tombstone'
  >
>;

const BY_TENANT_ID = 't.tenant_id = :tenant';

const table =
  (section: Section, mode: TableMode) =>
  (name: string, options: Options = {}): BackedUpTable => ({
    name,
    section,
    mode,
    key: ['id'],
    tenantFilter: BY_TENANT_ID,
    createdByPlatform: false,
    preserved: [],
    guarded: {},
    derived: [],
    hidden: [],
    readPermission: null,
    removedSince: null,
    unfinished: null,
    sameAs: null,
    supersedes: 'false',
    inserted: {},
    tombstone: null,
    ...options,
  });

const viaParent = (column: string, parent: string) =>
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

const SHARED = { tenantFilter: null };
/** Only backups of the platform contain the rows. */
const PLATFORM_ONLY = 'false';

/** An entry that was not sealed when the backup was made is known by its id. */
const IS_ARCHIVED = `EXISTS (SELECT FROM public.audit_archives AS a
  WHERE a.tenant_id = s.tenant_id AND a.checkpoint_at IS NOT NULL
    AND (s.position <= a.position OR s.position IS NULL AND s.id <= a.last_id))`;

/** What is disabled, or does not exist any more, is not enabled by a restore. */
const STAYS_DISABLED = 's.enabled AND coalesce(l.enabled, false)';

/** The value that a record has now; of one that the restore adds, that of the backup. */
const present = (column: string) => `CASE WHEN l.id IS NULL THEN s.${column} ELSE l.${column} END`;

/** The same for a table with a tombstone: the row of a deleted record remains, but not its secrets. */
const presentUnlessDeleted = (column: string) =>
  `CASE WHEN l.id IS NULL OR l.deleted_at IS NOT NULL THEN s.${column} ELSE l.${column} END`;

/** JSON that may contain text which `jsonb` refuses: earlier versions accepted it in configurations. */
const mayBeRefused = (json: string) => String.raw`${json}::text ~* '\\u(0000|d[89a-f])'`;

/** The order of the fields does not matter; with text that `jsonb` refuses it does. */
const IS_SAME_CONFIG = `CASE
  WHEN l.id IS NULL THEN false
  WHEN l.config::text = s.config::text THEN true
  WHEN ${mayBeRefused('l.config')} OR ${mayBeRefused('s.config')} THEN false
  ELSE l.config::jsonb = s.config::jsonb END`;

/** A webhook is enabled again only if it is enabled now, with the URL of the backup. */
const IS_SENT_TO = `l.enabled AND l.endpoint_url = s.endpoint_url`;
const STOPS_SENDING = `s.enabled AND NOT coalesce(${IS_SENT_TO}, false)`;

/** A schedule that is paused now stays so. One that was deleted since is as in the backup. */
const STAYS_PAUSED = 's.enabled AND coalesce(NOT l.enabled AND l.deleted_at IS NULL, false)';

/** The value that a column has now if a condition is true, otherwise that of the backup. */
const presentIf = (condition: string, column: string) =>
  `CASE WHEN ${condition} THEN l.${column} ELSE s.${column} END`;

/** All tables that backups contain, in an order in which rows can be inserted. */
export const TABLES: readonly BackedUpTable[] = [
  settings('custom_fields'),
  settings('tags', SHARED),
  table('settings', 'history')('legal_holds', { readPermission: 'hold:read' }),
  inventory('tenants', { tenantFilter: 't.id = :tenant', createdByPlatform: true }),
  inventory('regions'),
  inventory('sites'),
  inventory('locations'),
  inventory('racks'),
  inventory('manufacturers', SHARED),
  inventory('device_types', SHARED),
  inventory('device_roles', SHARED),
  inventory('platforms', SHARED),
  inventory('vrfs'),
  inventory('devices', { derived: ['units', 'depth'] }),
  inventory('vlan_groups'),
  inventory('vlans'),
  inventory('interfaces', { derived: ['tenant_id', 'site_id'] }),
  inventory('cables'),
  inventory('prefixes', { derived: ['parent_prefix_id', 'unique_in_vrf', 'in_shared_table'] }),
  inventory('ip_ranges', { derived: ['in_shared_table'] }),
  inventory('ip_addresses', { derived: ['unique_in_vrf', 'in_shared_table'] }),
  access('providers', {
    ...SHARED,
    readPermission: 'auth:read',
    hidden: ['config', 'secrets'],
    // With another configuration other people could sign in, or with a key that was replaced.
    guarded: {
      enabled: `${STAYS_DISABLED} AND (${IS_SAME_CONFIG})`,
      secrets: `CASE WHEN ${IS_SAME_CONFIG} THEN l.secrets ELSE s.secrets END`,
    },
  }),
  access('roles', SHARED),
  access('users', {
    readPermission: 'user:read',
    preserved: ['last_login_at'],
    hidden: ['password_hash'],
    guarded: {
      enabled: STAYS_DISABLED,
      password_hash: present('password_hash'),
      must_change_password: present('must_change_password'),
      password_expires_at: present('password_expires_at'),
      // Groups are known as of the last login; mappings of those that were left must not count again.
      external_groups: `coalesce(l.external_groups, '{}')`,
      owner_id: `CASE WHEN EXISTS (SELECT FROM :backup AS o WHERE o.id = l.owner_id)
        THEN l.owner_id ELSE s.owner_id END`,
    },
  }),
  access('grants'),
  // Present tokens stay as they are: a restore neither brings back nor widens one. Others are added as
  // disabled.
  table('access', 'history')('tokens', {
    hidden: ['hash', 'previous_hash'],
    readPermission: 'user:read',
  }),
  // As with tokens: what was accepted and deleted since is added as disabled.
  table('access', 'history')('pools', { ...SHARED, key: ['name'], readPermission: 'jobtype:read' }),
  table('access', 'history')('job_types', {
    ...SHARED,
    key: ['name'],
    readPermission: 'jobtype:read',
  }),
  table('access', 'history')('job_type_versions', {
    ...SHARED,
    key: ['name', 'digest'],
    readPermission: 'jobtype:read',
  }),
  table('access', 'history')('account_controllers', {
    key: ['account_id', 'name', 'tenant_id'],
    readPermission: 'user:read',
  }),
  access('views', {
    hidden: ['list', 'name', 'search', 'owner'],
    // What has been made private since is not shared again.
    guarded: { shared: 's.shared AND coalesce(l.shared, true)' },
  }),
  access('tenant_quotas', { key: ['tenant_id'], tenantFilter: PLATFORM_ONLY }),
  access('retention_settings', { key: ['tenant_id'], tenantFilter: PLATFORM_ONLY }),
  jobs('jobs', {
    derived: ['site_id', 'device_id'],
    hidden: ['payload', 'result', 'error', 'authority'],
  }),
  jobs('job_logs', {
    key: ['job_id', 'line'],
    tenantFilter: viaParent('job_id', 'jobs'),
    hidden: ['message', 'data'],
  }),
  jobs('imports', { hidden: ['authority'], readPermission: 'inventory:read' }),
  jobs('import_rows', {
    key: ['import_id', 'line'],
    tenantFilter: viaParent('import_id', 'imports'),
    readPermission: 'inventory:read',
    hidden: ['mutation', 'report'],
  }),
  // Without these rows nothing opens the files of jobs, nor removes them from their store.
  jobs('job_artifacts', {
    key: ['job_id', 'name'],
    tenantFilter: viaParent('job_id', 'jobs'),
    hidden: ['sealed_key'],
  }),
  jobs('inventory_apply_results', {
    readPermission: 'inventory:read',
    key: ['job_id', 'changes_key'],
    tenantFilter: viaParent('job_id', 'jobs'),
    hidden: ['result'],
  }),
  events('events'),
  table('webhooks', 'state')('webhooks', {
    preserved: ['failing_since', 'unreachable_since', 'probed_at', 'enabled_sequence'],
    hidden: ['secret', 'previous_secret'],
    // A secret that was replaced does not come back, nor does anything go to an endpoint that was given up.
    guarded: {
      secret: presentUnlessDeleted('secret'),
      previous_secret: presentUnlessDeleted('previous_secret'),
      previous_secret_until: presentUnlessDeleted('previous_secret_until'),
      enabled: `s.enabled AND coalesce(${IS_SENT_TO}, false)`,
      disabled_at: `CASE WHEN ${STOPS_SENDING}
        THEN coalesce(l.disabled_at, l.updated_at, s.updated_at) ELSE s.disabled_at END`,
      disabled_reason: `CASE WHEN ${STOPS_SENDING}
        THEN coalesce(l.disabled_reason, 'request') ELSE s.disabled_reason END`,
    },
    tombstone: `enabled = false, disabled_at = coalesce(t.disabled_at, :now),
      disabled_reason = coalesce(t.disabled_reason, 'request'), deleted_at = :now,
      cancel_before = :now, cancel_reason = 'webhook_deleted', updated_at = :now,
      secret = '', previous_secret = NULL, previous_secret_until = NULL,
      version = t.version + 1`,
  }),
  deliveries('deliveries', { sameAs: '(l.event_id, l.webhook_id) = (s.event_id, s.webhook_id)' }),
  deliveries('delivery_attempts', {
    key: ['delivery_id', 'number'],
    tenantFilter: viaParent('delivery_id', 'deliveries'),
    hidden: ['request_headers', 'response_body'],
  }),
  table('secrets', 'state')('secrets', {
    hidden: ['sealed'],
    // A value that was replaced does not come back, nor does a pool get one that it was denied.
    guarded: {
      sealed: present('sealed'),
      value_set_at: present('value_set_at'),
      pools: `ARRAY(SELECT name FROM unnest(s.pools) AS name WHERE name = ANY (l.pools))`,
    },
  }),
  table('schedules', 'state')('schedules', {
    preserved: ['next_due_at', 'last_run_id', 'run_count', 'checked_at'],
    guarded: {
      enabled: `s.enabled AND NOT (${STAYS_PAUSED})`,
      paused_at: presentIf(STAYS_PAUSED, 'paused_at'),
      paused_by: presentIf(STAYS_PAUSED, 'paused_by'),
      pause_reason: presentIf(STAYS_PAUSED, 'pause_reason'),
    },
    hidden: ['payload', 'owner'],
    tombstone: 'next_due_at = NULL, deleted_at = :now, updated_at = :now, version = t.version + 1',
  }),
  runs('schedule_runs', {
    sameAs: `(l.schedule_id, l.due_at, l.kind) = (s.schedule_id, s.due_at, s.kind) AND s.kind <> 'trigger'`,
    // A job has run at that time, which the installation did not know.
    supersedes: `s.outcome = 'fired' AND l.outcome <> 'fired'`,
    // Past occurrences do not run. There is one buffered run of a schedule at most, and that is a current one.
    inserted: {
      outcome: `CASE s.outcome WHEN 'buffered' THEN 'skipped' ELSE s.outcome END`,
      reason: `CASE s.outcome WHEN 'buffered' THEN 'missed' ELSE s.reason END`,
    },
  }),
  workflows('approvals', {
    derived: ['scope_site_id', 'scope_device_id'],
    hidden: ['payload', 'job_payload', 'mutations', 'plan', 'content_key', 'authority'],
  }),
  workflows('approval_assignees', {
    key: ['approval_id', 'kind', 'assignee_id'],
    tenantFilter: viaParent('approval_id', 'approvals'),
  }),
  workflows('approval_decisions', {
    tenantFilter: viaParent('approval_id', 'approvals'),
    sameAs: `(l.approval_id, l.actor_id) = (s.approval_id, s.actor_id)
      AND l.outcome <> 'cancelled' AND s.outcome <> 'cancelled'`,
  }),
  workflows('approval_comments', {
    key: ['approval_id', 'number'],
    tenantFilter: viaParent('approval_id', 'approvals'),
  }),
  audit('audit_entries', { hidden: ['before', 'after'], removedSince: IS_ARCHIVED }),
  audit('audit_heads', { key: ['tenant_id'] }),
  // A copy of the installation may use the same store: what it went on with, its original may have
  // proven, and the file that it removed would be the only one with the entries.
  audit('audit_archives', { unfinished: "s.status = 'writing'" }),
];

/** True for tables that a restore takes as they are when the database is empty. */
export const isTakenWhole = (name: string): boolean =>
  TABLES.every((table) => table.name !== name || table.unfinished === null);

/** Tables that no backup contains, and the reason. */
export const NOT_BACKED_UP: Readonly<Record<string, string>> = {
  schema_migrations: 'an archive names its schema version',
  schema_contracts: 'see schema_migrations',
  outbox: 'the reconcilers derive pending tasks from the records',
  idempotency_keys: 'responses to finished requests of the last day',
  sessions: 'users remain signed in as long as their account allows it',
  session_tokens: 'see sessions',
  logins: 'sign-ins in progress',
  rate_limits: 'counters of the last minutes',
  access_state: 'counts changes of permissions; a restore adds one',
  quota_usage: 'triggers count the rows that a restore writes',
  event_head: 'derived from events',
  event_fan_outs: 'a restore adds no delivery: a replay does',
  view_defaults: 'which view a list opens with: readers choose again',
  cable_ends: 'derived from cables',
  free_hints: 'derived from prefixes and addresses',
  used_blocks: 'derived from addresses',
  backups: 'a restore does not change which archives exist',
  restore_runs: 'see backups',
  workers: 'processes that run now',
  processes: 'see workers',
  installation_state: 'is measured again',
  artifact_removals:
    'files to be removed from their store; a restore removes those that it needs again',
  runners: 'see workers',
  remote_attempts: 'attempts that run now; a restore ends their jobs',
  purge_marks: 'a restore reads what was purged, and does not bring it back',
  purge_progress: 'see purge_marks',
  purged_runs: 'see purge_marks',
  purge_state: 'see purge_marks',
};
