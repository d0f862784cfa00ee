import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Knex } from '../../../db/core/knex.ts';
import { findFreeBlocks, freeHintChange, type Wanted } from '../../../db/inventory/freeSpace.ts';
import { addressBits, isReserved, parseBlock, formatHost } from '../../../domain/inventory/cidr.ts';
import type { Block, Family } from '../../../domain/inventory/cidr.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { withDatabase } from '../../support/database.ts';
import { propertyRuns } from '../../support/effort.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

const VRFS = ['', 'vrf_a', 'vrf_b', 'vrf_s'];
const TENANTS = ['platform', 't1', 't2'];
const BASES = ['10.0.0.0', '2001:db8::'];

/** Pools with up to 1,024 addresses, and the lengths that are searched in each. */
const POOLS = [
  ['', 'platform', '10.0.0.0/22'],
  ['', 't1', '10.0.0.0/23'],
  ['vrf_a', 't1', '10.0.0.0/22'],
  ['vrf_a', 't1', '2001:db8::/118'],
  ['vrf_b', 't2', '10.0.0.0/22'],
  ['vrf_s', 'platform', '10.0.0.0/22'],
  ['vrf_s', 't2', '10.0.1.0/24'],
  ['vrf_s', 't1', '10.0.2.0/31'],
] as const;

const span = { first: fc.nat(800), more: fc.constantFrom(0, 3, 255, 300, 600) };
const where = {
  vrf: fc.constantFrom(...VRFS),
  tenant: fc.constantFrom(...TENANTS),
  base: fc.constantFrom(0, 0, 0, 1),
};
/** What may happen to many addresses by one statement. Some of it the schema refuses. */
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      what: fc.constant('insert' as const),
      ...span,
      ...where,
      role: fc.constantFrom('', '', '', 'vip'),
    }),
  },
  { weight: 3, arbitrary: fc.record({ what: fc.constant('delete' as const), ...span, ...where }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('move' as const),
      ...span,
      ...where,
      by: fc.integer({ min: -300, max: 300 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant('set' as const),
      ...span,
      ...where,
      to: fc.constantFrom(
        "role = 'vip'",
        'role = NULL',
        "vrf_id = 'vrf_a'",
        "vrf_id = 'vrf_s'",
        'vrf_id = NULL',
        "tenant_id = 't1'",
        "tenant_id = 't2'",
        "status = 'reserved'",
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant('vrf' as const),
      vrf: fc.constantFrom('vrf_a', 'vrf_b', 'vrf_s'),
      to: fc.constantFrom(
        'enforce_unique = true',
        'enforce_unique = false',
        "tenant_id = 't1'",
        "tenant_id = 'platform'",
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant('range' as const),
      ...where,
      first: fc.nat(1000),
      more: fc.nat(30),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constant('allocate' as const),
      pool: fc.nat(POOLS.length - 1),
      count: fc.integer({ min: 1, max: 60 }),
      length: fc.constantFrom(0, 0, 1, 4),
      takesNetworks: fc.constantFrom(false, false, true),
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

let ids = 0;
const vrfOf = (vrf: string) => "vrf_id IS NOT DISTINCT FROM nullif('" + vrf + "', '')";

function sqlOf(one: Exclude<Step, { what: 'allocate' }>): string {
  if (one.what === 'vrf') return `UPDATE vrfs SET ${one.to} WHERE id = '${one.vrf}'`;
  const base = `'${BASES[one.base] ?? ''}'::inet`;
  const [from, to] = [`${base} + ${one.first}`, `${base} + ${one.first + one.more}`];
  const those = `${vrfOf(one.vrf)} AND tenant_id = '${one.tenant}' AND host BETWEEN ${from} AND ${to}`;
  switch (one.what) {
    case 'insert':
      return `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status, role)
        SELECT 'ipa_${++ids}_' || n, '${one.tenant}', ${base} + n, nullif('${one.vrf}', ''), 'active', nullif('${one.role}', '')
        FROM generate_series(${one.first}, ${one.first + one.more}) AS n
        WHERE NOT EXISTS (SELECT FROM ip_addresses AS a WHERE a.host = ${base} + n AND a.vrf_key = coalesce(nullif('${one.vrf}', ''), 'global')
          AND a.unique_in_vrf AND (a.space_key = a.vrf_key OR a.tenant_id = '${one.tenant}'))`;
    case 'delete':
      return `DELETE FROM ip_addresses WHERE ${those}`;
    case 'move':
      return `UPDATE ip_addresses SET address = address + (${one.by}) WHERE ${those}`;
    case 'set':
      return `UPDATE ip_addresses SET ${one.to} WHERE ${those}`;
    case 'range':
      return `INSERT INTO ip_ranges (id, tenant_id, vrf_id, start_address, end_address, status)
        VALUES ('ipr_${++ids}', '${one.tenant}', nullif('${one.vrf}', ''), ${from}, ${to}, 'active')`;
  }
}

/** Runs a statement that may be refused, in the outer transaction. */
async function attempt(trx: Knex, run: (inner: Knex) => Promise<unknown>): Promise<void> {
  await trx.raw('SAVEPOINT s');
  try {
    await run(trx);
    await trx.raw('SET CONSTRAINTS ALL IMMEDIATE');
    await trx.raw('SET CONSTRAINTS ALL DEFERRED');
    await trx.raw('RELEASE SAVEPOINT s');
  } catch (error) {
    if (!/^(23|P0|HF)/.test(String((error as { code?: string }).code))) throw error;
    await trx.raw('ROLLBACK TO SAVEPOINT s');
  }
}

/** The lines that a query returns. */
async function linesOf(trx: Knex, sql: string): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { line: string }[] }>(sql);
  return rows.map(({ line }) => line).sort();
}

const COUNTED = `SELECT vrf_key || ' ' || space_key || ' ' || block || ' ' || used AS line FROM used_blocks`;
const EXPECTED = `WITH b AS (SELECT vrf_key, space_key, set_masklen(host, masklen(host) - 8)::cidr AS block, count(DISTINCT host) AS used
    FROM ip_addresses WHERE unique_in_vrf AND shared = 0 GROUP BY 1, 2, 3)
  SELECT vrf_key || ' ' || space_key || ' ' || block || ' ' || used AS line FROM b
  UNION ALL SELECT vrf_key || ' ' || space_key || ' ' || set_masklen(block::inet, masklen(block) - 8)::cidr || ' ' || count(*)
    FROM b WHERE used = 256 GROUP BY vrf_key, space_key, set_masklen(block::inet, masklen(block) - 8)::cidr`;

/** All that is not free in a position, read one by one. */
async function naive(
  trx: Knex,
  id: string,
  whole: Block,
  { length, isAddress }: Wanted,
  count: number,
) {
  const { rows } = await trx.raw<{ rows: { first: string; last: string }[] }>(
    `WITH p AS (SELECT *, shared_space(space_key) AS platform FROM prefixes WHERE id = ?)
     SELECT host(a.host) AS first, host(a.host) AS last FROM ip_addresses AS a, p WHERE a.vrf_key = p.vrf_key AND (a.space_key = p.space_key OR p.space_key = p.platform)
     UNION ALL SELECT host(r.start_address), host(r.end_address) FROM ip_ranges AS r, p WHERE r.vrf_key = p.vrf_key AND (r.space_key = p.space_key OR p.space_key = p.platform)
     UNION ALL SELECT host(c.cidr), host(broadcast(c.cidr)) FROM prefixes AS c, p WHERE c.vrf_key = p.vrf_key AND c.cidr << p.cidr
       AND (c.space_key = p.space_key OR p.space_key = p.platform OR c.space_key = p.platform)`,
    [id],
  );
  const value = (text: string) => assertDefined(parseBlockAt(text, whole.family), 'address');
  const spans = rows
    .filter(({ first }) => first.includes(':') === (whole.family === 6))
    .map(({ first, last }) => [value(first), value(last)] as const);
  const size = 1n << BigInt(addressBits(whole.family) - length);
  const found: bigint[] = [];
  for (let at = whole.first; at + size - 1n <= whole.last && found.length < count; at += size) {
    const isNetwork = at === whole.first && whole.last - whole.first > 1n;
    if (isAddress && (isNetwork || isReserved(whole, at))) continue;
    if (!spans.some(([first, last]) => first <= at + size - 1n && last >= at)) found.push(at);
  }
  return found.map((at) => formatHost(whole.family, at));
}

const parseBlockAt = (text: string, family: Family): bigint | undefined => {
  const block = parseBlock(`${text}/${addressBits(family)}`);
  return 'first' in block ? block.first : undefined;
};

/** Searches in a pool, compares what is found, and takes it. */
async function allocate(
  trx: Knex,
  { pool, count, length, takesNetworks }: Extract<Step, { what: 'allocate' }>,
) {
  const [vrf, tenant, cidr] = assertDefined(POOLS[pool], 'pool');
  const row = await trx('prefixes')
    .where({ id: `pfx_${pool}` })
    .first();
  const whole = parseBlock(cidr) as Block;
  const isAddress = length === 0 && !takesNetworks;
  const wanted = { length: addressBits(whole.family) - length, isAddress };
  if (wanted.length <= whole.length) return;
  const prefix = { id: `pfx_${pool}`, tenantId: row.tenant_id, vrfId: vrf || null, cidr } as never;
  const found = await findFreeBlocks(trx, prefix, whole, wanted, count);
  const got = found.map(({ family, first }) => formatHost(family, first));
  expect(got).toEqual(await naive(trx, `pfx_${pool}`, whole, wanted, count));
  const last = found.at(-1);
  if (!last) return;
  await attempt(trx, async (inner) => {
    if (isAddress)
      await inner.raw(
        `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status)
         SELECT 'ipa_x${++ids}_' || a, ?, a::inet, nullif(?, ''), 'active' FROM unnest(?::text[]) AS a`,
        [tenant, vrf, got],
      );
    else
      await inner.raw(
        `INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode, parent_prefix_id)
         SELECT 'pfx_x${++ids}_' || a, ?, (a || ?)::cidr, nullif(?, ''), 'active', 'static', ? FROM unnest(?::text[]) AS a`,
        [tenant, `/${wanted.length}`, vrf, `pfx_${pool}`, got],
      );
    const { sql, bindings } = freeHintChange(prefix, last, isAddress);
    await inner.raw(`WITH ${sql('c')} SELECT 1`, [...bindings]);
  });
}

test('counts and free addresses are those of a search without them, after any history', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const trx = await db.transaction();
      try {
        await trx.raw(
          `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) VALUES
             ('vrf_a', 't1', 'a', true), ('vrf_b', 't1', 'b', false), ('vrf_s', 'platform', 's', true)`,
        );
        for (const [i, [vrf, tenant, cidr]] of POOLS.entries())
          await attempt(trx, (inner) =>
            inner.raw(
              `INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode, parent_prefix_id) VALUES (?, ?, ?, nullif(?, ''), 'active', 'pool', ?)`,
              [`pfx_${i}`, tenant, cidr, vrf, { 1: 'pfx_0', 6: 'pfx_5', 7: 'pfx_5' }[i] ?? null],
            ),
          );
        for (const one of steps) {
          if (one.what === 'allocate') await allocate(trx as Knex, one);
          else await attempt(trx as Knex, (inner) => inner.raw(sqlOf(one)));
          expect(await linesOf(trx as Knex, COUNTED)).toEqual(await linesOf(trx as Knex, EXPECTED));
        }
      } finally {
        await trx.rollback();
      }
    }),
    { numRuns: propertyRuns(5), includeErrorInReport: true },
  );
}, 60_000);
