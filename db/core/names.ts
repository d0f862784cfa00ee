import type { OtherLabelKind } from '../../domain/shared/labels.ts';
import type { Scope } from '../../domain/access/scope.ts';
import type { Knex } from './knex.ts';
import { scopeCondition } from './scopeSql.ts';

/** Where the names of records of one kind come from, and which of them a reader may know. */
export type NameSource = {
  kind: string;
  ids: Iterable<string>;
  table: string;
  /** SQL of the name, as text that is not null; empty for a record without one. */
  label: string;
  where: string;
  bindings: Knex.RawBinding[];
  /** Converts the text of the database to that of responses. */
  present?: (text: string) => string;
};

/** `tenantId` is that of an account, null for records. */
export type FoundName = { kind: string; id: string; label: string; tenantId: string | null };

const tenantScoped = (scope: Scope) => scopeCondition(scope);

type SourceOf = (scope: Scope) => Pick<NameSource, 'table' | 'label' | 'where' | 'bindings'>;

const scoped =
  (table: string, label: string, { and = '', columns = tenantScoped } = {}): SourceOf =>
  (scope) => {
    const { sql, bindings } = columns(scope);
    return { table, label, where: `${sql}${and}`, bindings };
  };

const LIVE = { and: ' AND deleted_at IS NULL' };

/** The labels of records outside the inventory, as far as they are in a scope; searches show the same. */
const SOURCES: Readonly<Record<OtherLabelKind, SourceOf>> = {
  jobs: scoped('jobs', 'type', {
    columns: (scope) =>
      scopeCondition(scope, { tenant: 'tenant_id', site: 'site_id', device: 'device_id' }),
  }),
  schedules: scoped('schedules', 'name', LIVE),
  workflows: scoped('approvals', 'title', {
    columns: (scope) =>
      scopeCondition(scope, {
        tenant: 'tenant_id',
        site: 'scope_site_id',
        device: 'scope_device_id',
      }),
  }),
  webhooks: scoped(
    'webhooks',
    // The path and the query of the URL may contain credentials.
    `CASE description WHEN '' THEN coalesce(substring(endpoint_url FROM '^[^/]*//([^/\\?#]*)'), '') ELSE description END`,
    LIVE,
  ),
  backups: scoped('backups', 'label', { and: ` AND status NOT IN ('deleting', 'deleted')` }),
  providers: scoped('providers', 'name', { columns: () => ({ sql: 'TRUE', bindings: [] }) }),
  roles: scoped('roles', 'name', { columns: () => ({ sql: 'TRUE', bindings: [] }) }),
};

/** The table of a kind, the SQL of its labels, and the condition under which a reader in `scope` sees a record. */
export const namedIn = (kind: OtherLabelKind, scope: Scope): ReturnType<SourceOf> =>
  SOURCES[kind](scope);

/**
 * The labels of records of a kind. Providers and roles have no tenant: the scope says only that the
 * caller may read them.
 */
export const labelsOf = (
  kind: OtherLabelKind,
  scope: Scope,
  ids: Iterable<string>,
): NameSource => ({ kind, ids, ...namedIn(kind, scope) });

/** The display names of accounts, with their tenants. */
export const accountNames = (ids: Iterable<string>): NameSource => ({
  kind: 'people',
  ids,
  table: 'users',
  label: 'display_name',
  where: 'TRUE',
  bindings: [],
});

/** Reads names from all sources with one statement. Ids without a readable record are left out. */
export async function readNames(db: Knex, sources: readonly NameSource[]): Promise<FoundName[]> {
  if (sources.length === 0) return [];
  const selects = sources.map(
    ({ kind, table, label, where }) =>
      `SELECT '${kind}' AS kind, id, ${label} AS label, ${kind === 'people' ? 'tenant_id' : 'NULL'} AS "tenantId"
       FROM ${table} WHERE id = ANY (?::text[]) AND (${where})`,
  );
  const { rows } = await db.raw<{ rows: FoundName[] }>(
    selects.join(' UNION ALL '),
    sources.flatMap(({ ids, bindings }) => [[...ids], ...bindings]),
  );
  const presenters = new Map(sources.map(({ kind, present }) => [kind, present]));
  return rows.map((row) => {
    const present = presenters.get(row.kind);
    const label = row.label === '' ? row.id : row.label;
    return { ...row, label: present ? present(label) : label };
  });
}
