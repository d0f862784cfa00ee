import type pg from 'pg';
import type { Api } from '../inventory/api.ts';

/** The prefixes that contain the addresses and the prefixes of the benchmark. */
export type Containers = { addresses: string; networks: string };

/** Prefixes of /64 in each /48. */
const PER_SITE = 250;

/** Creates the containers, and makes the connection skip triggers. */
export async function prepare(api: Api, client: pg.Client): Promise<Containers> {
  const create = async (cidr: string) =>
    String((await api('POST', 'prefixes', { cidr, allocationMode: 'pool' })).body.id);
  const containers = {
    addresses: await create('10.0.0.0/8'),
    networks: await create('2001:db8::/32'),
  };
  await client.query('SET session_replication_role = replica');
  return containers;
}

const SITES = `INSERT INTO prefixes (id, tenant_id, cidr, status, allocation_mode, parent_prefix_id)
  SELECT 'pfx_s' || lpad(n::text, 25, '0'), 'platform', format('2001:db8:%s::/48', to_hex(n))::cidr, 'active', 'pool', $3
  FROM generate_series($1::integer / ${PER_SITE}, ($2::integer - 1) / ${PER_SITE}) AS n ON CONFLICT DO NOTHING`;

const NETWORKS = `INSERT INTO prefixes (id, tenant_id, cidr, status, allocation_mode, parent_prefix_id, description)
  SELECT 'pfx_n' || lpad(n::text, 25, '0'), 'platform', format('2001:db8:%s:%s::/64', to_hex(n / ${PER_SITE}), to_hex(n % ${PER_SITE}))::cidr,
    'active', 'static', 'pfx_s' || lpad((n / ${PER_SITE})::text, 25, '0'), 'network ' || n
  FROM generate_series($1::integer, $2::integer - 1) AS n`;

/** One in ten has another status. */
const ADDRESSES = `INSERT INTO ip_addresses (id, tenant_id, address, status, dns_name)
  SELECT 'ipa_' || lpad(n::text, 26, '0'), 'platform', '10.0.0.0'::inet + n + 1, CASE WHEN n % 10 = 0 THEN 'reserved' ELSE 'active' END,
    'host' || n || '.example.net'
  FROM generate_series($1::integer, $2::integer - 1) AS n`;

const JOBS = `INSERT INTO jobs (id, type, tenant_id, status, payload, retry_policy, created_by, authority, source_kind, created_at, updated_at, finished_at, checked_at)
  SELECT 'job_' || lpad(n::text, 26, '0'), 'core.echo', 'platform', 'succeeded', '{}', '{}', 'bench', '{"actorId": "bench", "grants": []}', 'api', now(), now(), now(), now()
  FROM generate_series($1::integer, $2::integer - 1) AS n`;

const APPROVALS = `INSERT INTO approvals (id, tenant_id, type, title, payload, status, execution, required_approvals, content_key, content_hash,
    expires_at, created_by, requester_names, authority, closed_by, closed_at, check_at, created_at, updated_at)
  SELECT 'apr_' || lpad(n::text, 26, '0'), 'platform', 'change', 'request ' || n, '{}', 'rejected', 'none', 1, 'key', 'hash',
    now(), 'bench', '[]', '{"actorId": "bench", "grants": []}', 'other', now(), now(), now(), now()
  FROM generate_series($1::integer, $2::integer - 1) AS n`;

/** What requests have created at the size before. */
const CREATED = [
  "DELETE FROM ip_addresses WHERE id NOT LIKE 'ipa_0000%'",
  "DELETE FROM prefixes WHERE parent_prefix_id IS NOT NULL AND id NOT LIKE 'pfx_s0%' AND id NOT LIKE 'pfx_n0%'",
];

/** Rows of one statement, so that no transaction gets very large. */
const STEP = 250_000;

/** The indexes without which a row is still checked. */
const INDEXES = `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS sql
  FROM pg_index AS i
  WHERE i.indrelid IN ('prefixes'::regclass, 'ip_addresses'::regclass, 'jobs'::regclass, 'approvals'::regclass)
    AND NOT i.indisunique AND NOT i.indisexclusion
  ORDER BY name`;

/** Adds records of each kind until there are `to`. */
export async function fill(
  client: pg.Client,
  { networks }: Containers,
  from: number,
  to: number,
): Promise<void> {
  for (const statement of CREATED) await client.query(statement);
  // Created after the rows, indexes of millions of rows take minutes instead of hours.
  const { rows: indexes } = await client.query<{ name: string; sql: string }>(INDEXES);
  await client.query(`DROP INDEX ${indexes.map(({ name }) => name).join(', ')}`);
  for (let start = from; start < to; start += STEP) {
    const end = Math.min(start + STEP, to);
    await client.query(SITES, [start, end, networks]);
    for (const statement of [NETWORKS, ADDRESSES, JOBS, APPROVALS])
      await client.query(statement, [start, end]);
  }
  await client.query("SET maintenance_work_mem = '256MB'");
  for (const { sql } of indexes) await client.query(sql);
  await client.query('SELECT recount_used_blocks()');
  await client.query('DELETE FROM free_hints');
  await client.query('VACUUM ANALYZE');
}
