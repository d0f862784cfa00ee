import type { Knex } from '../knex.ts';
import { prepared } from '../prepared.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import type { ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { labelOf } from '../../domain/inventory/standing.ts';
import type { FactName, Need, User, World } from '../../domain/inventory/world.ts';
import { AppError } from '../../domain/errors.ts';
import { columnOf, columnsOf, rowOf, sqlTypeOf, tableOf } from './tables.ts';

/** Rows that one round of a plan may look up. */
const MAX_ROWS = 50_000;
/** Users of a record that are looked up to be named. */
const MAX_USERS = 11;

/** One part of the statement: what it yields is `(part, key, row)`. */
type Part = { sql: string; bindings: Knex.RawBinding[] };
type Found = { part: string; key: string | null; row: Record<string, unknown> };

/** `share` and `update` are row locks, for a plan that is to be written; `own` are the records that it is about. */
export type Locking = { own: ReadonlySet<string> } | null;

type Of<K extends Need['kind']> = Extract<Need, { kind: K }>;
const ofKind = <K extends Need['kind']>(needs: readonly Need[], kind: K): Of<K>[] => needs.filter((need): need is Of<K> => need.kind === kind);

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items) if (!groups.get(keyOf(item))?.push(item)) groups.set(keyOf(item), [item]);
  return [...groups.values()];
}

/** Looks up what a plan needs, in one statement, and tells the world. Error: `limit_reached`. */
export async function loadNeeds(db: Knex, world: World, needs: readonly Need[], locking: Locking): Promise<void> {
  const parts = [...rowParts(ofKind(needs, 'row'), locking), ...lookupParts(ofKind(needs, 'rows')), ...aroundParts(ofKind(needs, 'around')), ...rangeParts(ofKind(needs, 'ranges')), ...factParts(ofKind(needs, 'fact'))];
  const found: Found[] = [];
  if (parts.length > 0) {
    const text = parts.map(({ sql }) => `(${sql})`).join(' UNION ALL ');
    const { rows } = (await prepared(db, `${text} LIMIT ${MAX_ROWS + 1}`, parts.flatMap(({ bindings }) => bindings))) as { rows: Found[] };
    found.push(...rows);
  }
  if (found.length > MAX_ROWS) throw new AppError('limit_reached', `The change concerns more than ${MAX_ROWS} records; make it in smaller steps.`);
  tell(world, needs, found);
}

function tell(world: World, needs: readonly Need[], found: readonly Found[]): void {
  const facts = new Map<string, Found[]>();
  const rows: { resource: ResourceName; row: Row }[] = [];
  for (const each of found) {
    const [kind = '', name = ''] = each.part.split(':');
    if (kind === 'fact') {
      const key = `${name}|${each.key ?? ''}`;
      if (!facts.get(key)?.push(each)) facts.set(key, [each]);
    } else rows.push({ resource: kind as ResourceName, row: rowOf(RESOURCES[kind as ResourceName], each.row) });
  }
  for (const need of needs) {
    if (need.kind === 'fact') world.learn(need, factOf(need.name, facts.get(`${need.name}|${need.id}`) ?? []));
    else world.learn(need);
  }
  // What is around a network comes with the usage of what is closest.
  for (const [key, [first]] of facts) {
    if (key.startsWith('usage|') && first) world.learn({ kind: 'fact', name: 'usage', id: String(first.key) }, factOf('usage', [first]));
  }
  world.learnRows(rows);
}

function factOf(name: FactName, found: readonly Found[]): unknown {
  if (name === 'usage') return BigInt((found[0]?.row.used as string | undefined)?.split('.')[0] ?? 0);
  if (name.endsWith('Above')) return true;
  return found.slice(0, MAX_USERS - 1).map(({ row }): User => {
    const { resource, record, id, label } = row as { resource: string; record?: Record<string, unknown>; id?: string; label?: string };
    if (!record) return { resource, id: String(id), label: String(label ?? id) };
    const declared = RESOURCES[resource as ResourceName];
    const full = rowOf(declared, record);
    return { resource, id: full.id, label: labelOf(declared, full), row: full };
  });
}

const select = (name: ResourceName, where: string): string => {
  const resource = RESOURCES[name];
  return `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row FROM (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} ${where}) AS x`;
};

/** Locked rows are read in a part of their own: a union cannot lock. */
function rowParts(needs: readonly Of<'row'>[], locking: Locking): Part[] {
  return grouped(needs, ({ resource }) => resource).flatMap((group) => {
    const name = group[0]?.resource ?? 'tenants';
    const ids = group.map(({ id }) => id);
    if (!locking) return [{ sql: select(name, 'WHERE id = ANY (?::text[])'), bindings: [ids] }];
    return [false, true].flatMap((own): Part[] => {
      const these = ids.filter((id) => locking.own.has(`${name}/${id}`) === own);
      if (these.length === 0) return [];
      return [{ sql: select(name, `WHERE id = ANY (?::text[]) ORDER BY id FOR ${own ? 'UPDATE' : 'SHARE'}`), bindings: [these] }];
    });
  });
}

function lookupParts(needs: readonly Of<'rows'>[]): Part[] {
  return grouped(needs, ({ resource, fields }) => [resource, ...fields].join('|')).map((group) => {
    const { resource: name, fields } = group[0] ?? { resource: 'tenants' as const, fields: [] };
    const columns = fields.map(columnOf);
    const types = fields.map((field) => sqlTypeOf(RESOURCES[name], field));
    const wanted = `SELECT * FROM unnest(${types.map((type) => `?::${type}[]`).join(', ')})`;
    return { sql: select(name, `WHERE (${columns.join(', ')}) IN (${wanted})`), bindings: fields.map((_, i) => group.map(({ values }) => values[i] as string)) };
  });
}

/** The child of a prefix that an address is in: children are apart, so it is the last one that does not begin behind it. */
const IN_CHILD = (prefix: string, host: string) => `coalesce((SELECT c.cidr >>= ${host} FROM prefixes AS c
  WHERE c.vrf_key = ${prefix}.vrf_key AND c.parent_prefix_id = ${prefix}.id AND c.cidr <= ${host} ORDER BY c.vrf_key DESC, c.parent_prefix_id DESC, c.cidr DESC LIMIT 1), false)`;

/** Addresses of a prefix that children and, where it is small, addresses take; the limits keep it cheap. */
const MAX_COUNTED = 4_096;
const USED = `
  coalesce((SELECT sum(power(2::numeric, CASE family(c.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(c.cidr)))
    FROM (SELECT cidr FROM prefixes WHERE vrf_key = p.vrf_key AND parent_prefix_id = p.id LIMIT ${MAX_COUNTED}) AS c), 0)
  + CASE WHEN CASE family(p.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(p.cidr) <= 12 THEN
    (SELECT count(DISTINCT host) FROM ip_addresses AS a WHERE a.vrf_key = p.vrf_key
      AND a.host BETWEEN host(p.cidr)::inet AND host(broadcast(p.cidr))::inet AND NOT ${IN_CHILD('p', 'a.host')}) ELSE 0 END`;

const LAST = (cidr: string) => `set_masklen(broadcast(${cidr}), CASE family(${cidr}) WHEN 4 THEN 32 ELSE 128 END)`;

/**
 * The networks that contain each one asked about or are it, the outermost inside it, and how full the closest is. A
 * network has those that contain it above the one that sorts right before it; see `closest_prefix`.
 */
function aroundParts(needs: readonly Of<'around'>[]): Part[] {
  if (needs.length === 0) return [];
  const asked = 'unnest(?::text[], ?::cidr[]) AS asked (vrf, cidr)';
  const bindings = (some: readonly Of<'around'>[]) => [some.map(({ vrf }) => vrf), some.map(({ cidr }) => cidr)];
  // Nothing lies inside a single address.
  const wide = needs.filter(({ cidr }) => !/(?:\..*\/32|\/128)$/.test(cidr));
  const inside = `p.vrf_key = asked.vrf AND p.cidr > asked.cidr AND p.cidr <= ${LAST('asked.cidr')} AND p.cidr << asked.cidr`;
  const parts: Part[] = [
    {
      sql: select('prefixes', `WHERE (vrf_key, cidr) IN (WITH RECURSIVE up AS (
          SELECT q.* FROM ${asked} CROSS JOIN LATERAL (SELECT id, parent_prefix_id, vrf_key, cidr FROM prefixes
            WHERE vrf_key = asked.vrf AND cidr <= asked.cidr::inet ORDER BY vrf_key DESC, cidr DESC LIMIT 1) AS q
          UNION SELECT p.id, p.parent_prefix_id, p.vrf_key, p.cidr FROM up JOIN prefixes AS p ON p.id = up.parent_prefix_id
        ) SELECT vrf_key, cidr FROM up)`),
      bindings: bindings(needs),
    },
    {
      sql: `SELECT 'fact:usage' AS part, p.id AS key, json_build_object('used', (${USED})::text) AS row FROM (
        SELECT DISTINCT asked.vrf, closest_prefix(asked.vrf, asked.cidr) AS cidr FROM ${asked} UNION SELECT * FROM ${asked}
      ) AS near JOIN prefixes AS p ON p.vrf_key = near.vrf AND p.cidr = near.cidr`,
      bindings: [...bindings(needs), ...bindings(needs)],
    },
  ];
  if (wide.length === 0) return parts;
  return [...parts, {
    sql: select('prefixes', `WHERE id IN (SELECT p.id FROM (SELECT *, closest_prefix(vrf, cidr) AS closest FROM ${asked}) AS asked
      JOIN prefixes AS above ON above.vrf_key = asked.vrf AND above.cidr = asked.closest JOIN prefixes AS p ON p.parent_prefix_id = above.id AND ${inside})`),
    bindings: bindings(wide),
  }, {
    sql: select('prefixes', `WHERE id IN (SELECT p.id FROM (SELECT *, closest_prefix(vrf, cidr) AS closest FROM ${asked}) AS asked
      JOIN prefixes AS p ON asked.closest IS NULL AND p.parent_prefix_id IS NULL AND ${inside})`),
    bindings: bindings(wide),
  }];
}

const rangeParts = (needs: readonly Of<'ranges'>[]): Part[] =>
  needs.length === 0 ? [] : [{
    sql: select('ip-ranges', `WHERE id IN (SELECT r.id FROM unnest(?::text[], ?::inet[], ?::inet[]) AS asked (vrf, first, last)
      JOIN ip_ranges AS r ON r.vrf_key = asked.vrf AND r.span && inet_range(asked.first, asked.last, '[]'))`),
    bindings: [needs.map(({ vrf }) => vrf), needs.map(({ first }) => first), needs.map(({ last }) => last)],
  }];

const user = (name: ResourceName, fact: string, where: string): string => {
  const resource = RESOURCES[name];
  return `SELECT 'fact:${fact}' AS part, ?::text AS key, json_build_object('resource', '${name}', 'record', to_json(x)) AS row
    FROM (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} AS t WHERE ${where} LIMIT ${MAX_USERS}) AS x`;
};

function factParts(needs: readonly Of<'fact'>[]): Part[] {
  const usage = needs.filter(({ name }) => name === 'usage').map(({ id }) => id);
  const others = needs.filter(({ name }) => name !== 'usage').flatMap(({ name, id }) => FACTS[name as Exclude<FactName, 'usage'>](id));
  if (usage.length === 0) return others;
  return [...others, { sql: `SELECT 'fact:usage' AS part, p.id AS key, json_build_object('used', (${USED})::text) AS row FROM prefixes AS p WHERE p.id = ANY (?::text[])`, bindings: [usage] }];
}

const above = (name: 'regions' | 'locations') => (id: string): Part[] => [{
  sql: `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row FROM (WITH RECURSIVE up AS (
      SELECT * FROM ${name} WHERE id = ? UNION SELECT p.* FROM ${name} AS p JOIN up ON p.id = up.parent_id
    ) SELECT ${columnsOf(RESOURCES[name])} FROM up LIMIT 200) AS x`,
  bindings: [id],
}];

const outsider = (label: string, table: string, name: string, where: string, id: string, fact: string): Part => ({
  sql: `SELECT 'fact:outsiders' AS part, ?::text AS key, json_build_object('resource', '${label}', 'id', x.id, 'label', x.label) AS row
    FROM (SELECT id, ${name} AS label FROM ${table} WHERE ${where} LIMIT ${MAX_USERS}) AS x`,
  bindings: [fact, id],
});

/** How each fact is found, by the id that it is asked with. */
const FACTS: Readonly<Record<Exclude<FactName, 'usage'>, (id: string) => Part[]>> = {
  regionsAbove: above('regions'),
  locationsAbove: above('locations'),

  direct(id) {
    const [vrf, cidr, but] = JSON.parse(id) as [string, string, string | null];
    const lies = (first: string, last: string) => `t.vrf_key = ? AND ${first} >= host(?::cidr)::inet AND ${last} <= host(broadcast(?::cidr))::inet
      AND NOT coalesce(closest_prefix(t.vrf_key, inet_merge(${first}, ${last})) << ?::cidr, false)
      AND NOT EXISTS (SELECT FROM prefixes AS p WHERE p.vrf_key = t.vrf_key AND p.cidr = inet_merge(${first}, ${last}) AND p.cidr << ?::cidr)
      AND (?::cidr IS NULL OR NOT (${first} <<= ?::cidr AND ${last} <<= ?::cidr))`;
    const bindings = [id, vrf, cidr, cidr, cidr, cidr, but, but, but] as string[];
    return [{ sql: user('ip-addresses', 'direct', lies('t.host', 't.host')), bindings }, { sql: user('ip-ranges', 'direct', lies('t.start_address', 't.end_address')), bindings }];
  },

  tagUsers: (id) => Object.values(RESOURCES).map(({ name }) => ({ sql: user(name, 'tagUsers', "t.tags @> ARRAY[?]::text[] AND t.tags <> '{}'"), bindings: [id, id] })),

  fieldUsers(id) {
    const [tenantId, name, field] = JSON.parse(id) as [string, ResourceName, string];
    const tenant = { isTenant: 'id', catalogue: "'platform'" }[RESOURCES[name].standing as string] ?? 'tenant_id';
    return [{ sql: user(name, 'fieldUsers', `jsonb_exists(t.custom_fields, ?) AND t.custom_fields <> '{}' AND ?::text IN ('platform', t.${tenant})`.replace("t.'platform'", "'platform'")), bindings: [id, field, tenantId] }];
  },

  outsiders(id) {
    const [name, record] = [id.slice(0, id.indexOf('/')), id.slice(id.indexOf('/') + 1)];
    const grants = outsider('assignments', 'grants', 'role_id', `${{ sites: 'site_id', devices: 'device_id' }[name] ?? 'tenant_id'} = ?`, record, id);
    if (name !== 'tenants') return [grants];
    const at = (label: string, table: string, column: string, where = '') => outsider(label, table, column, `tenant_id = ?${where}`, record, id);
    return [grants, at('users', 'users', 'username'), at('webhooks', 'webhooks', 'id', ' AND deleted_at IS NULL'), at('schedules', 'schedules', 'name', ' AND deleted_at IS NULL')];
  },

  duplicates: (id) => [
    { sql: user('prefixes', 'duplicates', 't.vrf_key = ? AND EXISTS (SELECT FROM prefixes AS o WHERE o.vrf_key = t.vrf_key AND o.cidr = t.cidr AND o.id < t.id)'), bindings: [id, id] },
    { sql: user('ip-addresses', 'duplicates', 't.vrf_key = ? AND EXISTS (SELECT FROM ip_addresses AS o WHERE o.vrf_key = t.vrf_key AND o.host = t.host AND o.id <> t.id AND (o.shared = 0 OR t.shared = 0))'), bindings: [id, id] },
  ],
};
