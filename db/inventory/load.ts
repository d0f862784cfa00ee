import type { Knex } from '../core/knex.ts';
import { prepared } from '../core/prepared.ts';
import { RESOURCES } from '../../domain/inventory/resources/index.ts';
import { RESOURCE_NAMES, type ResourceName } from '../../domain/inventory/names.ts';
import type { Row } from '../../domain/inventory/resource.ts';
import { labelOf } from '../../domain/inventory/standing.ts';
import type { FactName, Need, User, World } from '../../domain/inventory/planSnapshot.ts';
import { AppError } from '../../domain/shared/errors.ts';
import { columnOf, columnsOf, rowOf, sqlTypeOf, tableOf } from './tables.ts';

/** Rows that one round of a plan may look up. */
const MAX_ROWS = 50_000;
/** A statement of more parts is seldom seen twice. */
const MAX_KEPT_PARTS = 8;
/** Users of a record that are looked up to be named. */
const MAX_USERS = 11;

/** One part of the statement: what it yields is `(part, key, row)`. */
type Part = { sql: string; bindings: Knex.RawBinding[] };
type Found = { part: string; key: string | null; row: Record<string, unknown> };

/** `share` and `update` are row locks, for a plan that is to be written; `own` are the records that it is about. */
export type Locking = { own: ReadonlySet<string> } | null;

type Of<K extends Need['kind']> = Extract<Need, { kind: K }>;
const ofKind = <K extends Need['kind']>(needs: readonly Need[], kind: K): Of<K>[] =>
  needs.filter((need): need is Of<K> => need.kind === kind);

function grouped<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const groups = new Map<string, T[]>();
  for (const item of items)
    if (!groups.get(keyOf(item))?.push(item)) groups.set(keyOf(item), [item]);
  return [...groups.values()];
}

/** Looks up what a plan needs, in one statement, and tells the world. Error: `limit_reached`. */
export async function loadNeeds(
  db: Knex,
  world: World,
  needs: readonly Need[],
  locking: Locking,
): Promise<void> {
  const parts = [
    ...rowParts(ofKind(needs, 'row'), locking),
    ...lookupParts(ofKind(needs, 'rows')),
    ...aroundParts(ofKind(needs, 'around')),
    ...rangeParts(ofKind(needs, 'ranges')),
    ...factParts(ofKind(needs, 'fact')),
  ];
  const found: Found[] = [];
  if (parts.length > 0) {
    const text = parts.map(({ sql }) => `(${sql})`).join(' UNION ALL ');
    const sql = `${text} LIMIT ${MAX_ROWS + 1}`;
    const bindings = parts.flatMap((part) => part.bindings);
    // What is asked once in this form need not be kept.
    const { rows } = (await (parts.length <= MAX_KEPT_PARTS
      ? prepared(db, sql, bindings)
      : db.raw(sql, bindings))) as { rows: Found[] };
    found.push(...rows);
  }
  if (found.length > MAX_ROWS)
    throw new AppError(
      'limit_reached',
      `The change concerns more than ${MAX_ROWS} records; make it in smaller steps.`,
    );
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
    } else
      rows.push({
        resource: kind as ResourceName,
        row: rowOf(RESOURCES[kind as ResourceName], each.row),
      });
  }
  for (const need of needs) {
    if (need.kind === 'fact')
      world.learn(need, factOf(need.name, facts.get(`${need.name}|${need.id}`) ?? []));
    else world.learn(need);
  }
  // What is around a network comes with the usage of what is closest.
  for (const [key, [first]] of facts) {
    if (key.startsWith('usage|') && first)
      world.learn({ kind: 'fact', name: 'usage', id: String(first.key) }, factOf('usage', [first]));
  }
  world.learnRows(rows);
}

function factOf(name: FactName, found: readonly Found[]): unknown {
  if (name === 'usage')
    return BigInt((found[0]?.row.used as string | undefined)?.split('.')[0] ?? 0);
  if (name.endsWith('Above')) return true;
  return found.slice(0, MAX_USERS - 1).map(({ row }): User => {
    const { resource, record, id, label } = row as {
      resource: string;
      record?: Record<string, unknown>;
      id?: string;
      label?: string;
    };
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

const RANKS: readonly ResourceName[] = RESOURCE_NAMES;

/** Locked rows are read in a part of their own: a union cannot lock. */
function rowParts(needs: readonly Of<'row'>[], locking: Locking): Part[] {
  // In one order, whoever asks: two transactions do not wait for each other.
  const groups = grouped(needs, ({ resource }) => resource).sort(
    ([a], [b]) => RANKS.indexOf(a?.resource ?? 'tags') - RANKS.indexOf(b?.resource ?? 'tags'),
  );
  return groups.flatMap((group) => {
    const name = group[0]?.resource ?? 'tenants';
    const ids = group.map(({ id }) => id);
    if (!locking) return [{ sql: select(name, 'WHERE id = ANY (?::text[])'), bindings: [ids] }];
    return [false, true].flatMap((own): Part[] => {
      const these = ids.filter((id) => locking.own.has(`${name}/${id}`) === own);
      if (these.length === 0) return [];
      return [
        {
          sql: select(
            name,
            `WHERE id = ANY (?::text[]) ORDER BY id FOR ${own ? 'UPDATE' : 'SHARE'}`,
          ),
          bindings: [these],
        },
      ];
    });
  });
}

function lookupParts(needs: readonly Of<'rows'>[]): Part[] {
  return grouped(needs, ({ resource, fields, most }) => [resource, most, ...fields].join('|')).map(
    (group) => {
      const {
        resource: name,
        fields,
        most,
      } = group[0] ?? { resource: 'tenants' as const, fields: [], most: undefined };
      const columns = fields.map(columnOf);
      const types = fields.map((field) => sqlTypeOf(RESOURCES[name], field));
      const wanted = `SELECT * FROM unnest(${types.map((type) => `?::${type}[]`).join(', ')})`;
      if (most !== undefined) {
        const asked = `unnest(?::${types[0] ?? 'text'}[]) AS asked (value)`;
        const some = `LATERAL (SELECT ${columnsOf(RESOURCES[name])} FROM ${tableOf(RESOURCES[name])} WHERE ${columns[0] ?? 'id'} = asked.value LIMIT ${most}) AS x`;
        return {
          sql: `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row FROM ${asked} CROSS JOIN ${some}`,
          bindings: [group.map(({ values }) => values[0] as string)],
        };
      }
      return {
        sql: select(name, `WHERE (${columns.join(', ')}) IN (${wanted})`),
        bindings: fields.map((_, i) => group.map(({ values }) => values[i] as string)),
      };
    },
  );
}

/** The child of a prefix that an address is in: children are apart, so it is the last one that does not begin behind it. */
const IN_CHILD = (
  prefix: string,
  host: string,
) => `coalesce((SELECT c.cidr >>= ${host} FROM prefixes AS c
  WHERE c.vrf_key = ${prefix}.vrf_key AND c.parent_prefix_id = ${prefix}.id AND c.cidr <= ${host} ORDER BY c.vrf_key DESC, c.parent_prefix_id DESC, c.cidr DESC LIMIT 1), false)`;

/** Addresses of a prefix that children and, where it is small, addresses take; the limits keep it cheap. */
const MAX_COUNTED = 4_096;
const USED = `
  coalesce((SELECT sum(power(2::numeric, CASE family(c.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(c.cidr)))
    FROM (SELECT cidr FROM prefixes WHERE vrf_key = p.vrf_key AND parent_prefix_id = p.id LIMIT ${MAX_COUNTED}) AS c), 0)
  + CASE WHEN CASE family(p.cidr) WHEN 4 THEN 32 ELSE 128 END - masklen(p.cidr) <= 12 THEN
    (SELECT count(DISTINCT host) FROM ip_addresses AS a WHERE a.vrf_key = p.vrf_key
      AND a.host BETWEEN host(p.cidr)::inet AND host(broadcast(p.cidr))::inet AND NOT ${IN_CHILD('p', 'a.host')}) ELSE 0 END`;

/**
 * The networks that contain each one asked about or are it, the outermost inside it, and how full the closest is. A
 * network has those that contain it above the one that sorts right before it; see `closest_prefix`.
 */
function aroundParts(needs: readonly Of<'around'>[]): Part[] {
  if (needs.length === 0) return [];
  const asked = 'unnest(?::text[], ?::cidr[]) AS asked (vrf, cidr)';
  const bindings = (some: readonly Of<'around'>[]) => [
    some.map(({ vrf }) => vrf),
    some.map(({ cidr }) => cidr),
  ];
  // Nothing lies inside a single address.
  const wide = needs.filter(({ cidr }) => !/(?:\..*\/32|\/128)$/.test(cidr));
  const parts: Part[] = [
    {
      sql: select(
        'prefixes',
        `WHERE (vrf_key, cidr) IN (WITH RECURSIVE up AS (
          SELECT q.* FROM ${asked} CROSS JOIN LATERAL (SELECT id, parent_prefix_id, vrf_key, cidr FROM prefixes
            WHERE vrf_key = asked.vrf AND cidr <= asked.cidr::inet ORDER BY vrf_key DESC, cidr DESC LIMIT 1) AS q
          UNION SELECT p.id, p.parent_prefix_id, p.vrf_key, p.cidr FROM up JOIN prefixes AS p ON p.id = up.parent_prefix_id
        ) SELECT vrf_key, cidr FROM up)`,
      ),
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
  return [
    ...parts,
    {
      sql: select(
        'prefixes',
        `WHERE id IN (SELECT prefixes_inside(asked.vrf, asked.cidr) FROM ${asked})`,
      ),
      bindings: bindings(wide),
    },
  ];
}

const rangeParts = (needs: readonly Of<'ranges'>[]): Part[] =>
  needs.length === 0
    ? []
    : [
        {
          sql: select(
            'ip-ranges',
            `WHERE id IN (SELECT r.id FROM unnest(?::text[], ?::inet[], ?::inet[]) AS asked (vrf, first, last)
      JOIN ip_ranges AS r ON r.vrf_key = asked.vrf AND r.span && inet_range(asked.first, asked.last, '[]'))`,
          ),
          bindings: [
            needs.map(({ vrf }) => vrf),
            needs.map(({ first }) => first),
            needs.map(({ last }) => last),
          ],
        },
      ];

/** Records of a resource that are the answer to a fact, for each id that is asked about; `asked.id` is it. */
const users = (name: ResourceName, fact: FactName, where: string, ids: readonly string[]): Part => {
  const resource = RESOURCES[name];
  return {
    sql: `SELECT 'fact:${fact}' AS part, asked.id AS key, json_build_object('resource', '${name}', 'record', to_json(x)) AS row FROM unnest(?::text[]) AS asked (id)
      CROSS JOIN LATERAL (SELECT ${columnsOf(resource)} FROM ${tableOf(resource)} AS t WHERE ${where} LIMIT ${MAX_USERS}) AS x`,
    bindings: [[...ids]],
  };
};

function factParts(needs: readonly Of<'fact'>[]): Part[] {
  return grouped(needs, ({ name }) => name).flatMap((group) => {
    const name = group[0]?.name;
    return name === undefined ? [] : FACTS[name](group.map(({ id }) => id));
  });
}

const above =
  (name: 'regions' | 'locations') =>
  (ids: readonly string[]): Part[] => [
    {
      sql: `SELECT '${name}' AS part, NULL AS key, to_json(x) AS row FROM (WITH RECURSIVE up AS (
      SELECT * FROM ${name} WHERE id = ANY (?::text[]) UNION SELECT p.* FROM ${name} AS p JOIN up ON p.id = up.parent_id
    ) SELECT ${columnsOf(RESOURCES[name])} FROM up) AS x`,
      bindings: [[...ids]],
    },
  ];

/** Rights and accounts at a place: `asked.id` is the resource and the record's id. */
const outsider = (
  label: string,
  table: string,
  name: string,
  where: string,
  ids: readonly string[],
): Part => ({
  sql: `SELECT 'fact:outsiders' AS part, asked.id AS key, json_build_object('resource', '${label}', 'id', x.id, 'label', x.label) AS row FROM unnest(?::text[]) AS asked (id)
    CROSS JOIN LATERAL (SELECT id, ${name} AS label FROM ${table} WHERE ${where} LIMIT ${MAX_USERS}) AS x`,
  bindings: [[...ids]],
});

const RECORD = "split_part(asked.id, '/', 2)";
const part = (i: number) => `(asked.id::json->>${i})`;
const cidr = (i: number) => `${part(i)}::cidr`;

const lies = (
  first: string,
  last: string,
) => `t.vrf_key = ${part(0)} AND ${first} >= host(${cidr(1)})::inet AND ${last} <= host(broadcast(${cidr(1)}))::inet
  AND NOT coalesce(closest_prefix(t.vrf_key, inet_merge(${first}, ${last})) << ${cidr(1)}, false)
  AND NOT EXISTS (SELECT FROM prefixes AS p WHERE p.vrf_key = t.vrf_key AND p.cidr = inet_merge(${first}, ${last}) AND p.cidr << ${cidr(1)})
  AND (${part(2)} IS NULL OR NOT (${first} <<= ${cidr(2)} AND ${last} <<= ${cidr(2)}))`;

/** How each fact is found, by the ids that it is asked with. */
const FACTS: Readonly<Record<FactName, (ids: readonly string[]) => Part[]>> = {
  usage: (ids) => [
    {
      sql: `SELECT 'fact:usage' AS part, p.id AS key, json_build_object('used', (${USED})::text) AS row FROM prefixes AS p WHERE p.id = ANY (?::text[])`,
      bindings: [[...ids]],
    },
  ],
  regionsAbove: above('regions'),
  locationsAbove: above('locations'),
  direct: (ids) => [
    users('ip-addresses', 'direct', lies('t.host', 't.host'), ids),
    users('ip-ranges', 'direct', lies('t.start_address', 't.end_address'), ids),
  ],
  tagUsers: (ids) =>
    Object.values(RESOURCES).map(({ name }) =>
      users(name, 'tagUsers', "t.tags @> ARRAY[asked.id] AND t.tags <> '{}'", ids),
    ),

  fieldUsers: (ids) =>
    grouped(ids, (id) => String((JSON.parse(id) as string[])[1])).map((group) => {
      const name = (JSON.parse(group[0] ?? '[]') as [string, ResourceName])[1];
      const { standing } = RESOURCES[name];
      const tenant =
        standing === 'isTenant' ? 't.id' : standing === 'catalogue' ? "'platform'" : 't.tenant_id';
      return users(
        name,
        'fieldUsers',
        `jsonb_exists(t.custom_fields, ${part(2)}) AND t.custom_fields <> '{}' AND ${part(0)} IN ('platform', ${tenant})`,
        group,
      );
    }),

  outsiders: (ids) =>
    grouped(ids, (id) => id.slice(0, id.indexOf('/'))).flatMap((group) => {
      const name = (group[0] ?? '').split('/')[0] ?? '';
      const grants = outsider(
        'assignments',
        'grants',
        'role_id',
        `${{ sites: 'site_id', devices: 'device_id' }[name] ?? 'tenant_id'} = ${RECORD}`,
        group,
      );
      if (name !== 'tenants') return [grants];
      const at = (label: string, table: string, column: string, where = '') =>
        outsider(label, table, column, `tenant_id = ${RECORD}${where}`, group);
      return [
        grants,
        at('users', 'users', 'username'),
        at('webhooks', 'webhooks', 'id', ' AND deleted_at IS NULL'),
        at('schedules', 'schedules', 'name', ' AND deleted_at IS NULL'),
      ];
    }),

  duplicates: (ids) => [
    users(
      'prefixes',
      'duplicates',
      't.vrf_key = asked.id AND EXISTS (SELECT FROM prefixes AS o WHERE o.vrf_key = t.vrf_key AND o.cidr = t.cidr AND o.id < t.id)',
      ids,
    ),
    users(
      'ip-addresses',
      'duplicates',
      't.vrf_key = asked.id AND EXISTS (SELECT FROM ip_addresses AS o WHERE o.vrf_key = t.vrf_key AND o.host = t.host AND o.id <> t.id AND (o.shared = 0 OR t.shared = 0))',
      ids,
    ),
  ],
};
