import { beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Knex } from '../../../db/core/knex.ts';
import { readUsage } from '../../../db/inventory/usage.ts';
import { withDatabase } from '../../support/database.ts';
import { propertyRuns } from '../../support/effort.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

/** Where a record is: in a VRF of the platform, and in VRFs of a tenant with and without unique addresses. */
type Owner = { vrf: string; tenantId: string };
type Network = Owner & { length: number; index: number };
type Address = Owner & { offset: number; role: string | null };
type Range = Owner & { offset: number; size: number };

const OWNERS: readonly Owner[] = [
  ...['platform', 't1', 't2'].map((tenantId) => ({ vrf: 'vrf_s', tenantId })),
  { vrf: 'vrf_own', tenantId: 't1' },
  { vrf: 'vrf_any', tenantId: 't1' },
];

/** Everything is in 10.8.0.0/20. */
const SIZE = 4_096;
const BASE = '10.8.0.0';

beforeAll(() =>
  db.raw(
    `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) VALUES
       ('vrf_s', 'platform', 's', true), ('vrf_own', 't1', 'o', true), ('vrf_any', 't1', 'a', false)`,
  ),
);

const spaceOf = ({ vrf, tenantId }: Owner) => (vrf === 'vrf_s' ? `${vrf}/${tenantId}` : vrf);
const isOfPlatform = ({ vrf, tenantId }: Owner) => vrf === 'vrf_s' && tenantId === 'platform';

/** True for what counts in a prefix: its space, or all tenants if the platform has it. */
const countsIn = (prefix: Owner, other: Owner) =>
  isOfPlatform(prefix) ? prefix.vrf === other.vrf : spaceOf(prefix) === spaceOf(other);

const spanOf = ({ length, index }: Network): [first: number, end: number] => {
  const size = 2 ** (32 - length);
  const first = (index % (SIZE / size)) * size;
  return [first, first + size];
};

const owner = fc.constantFrom(...OWNERS);
const offset = fc.oneof(fc.nat(SIZE - 1), fc.integer({ min: 240, max: 530 }));
const network = fc.record({
  at: owner,
  length: fc.integer({ min: 20, max: 28 }),
  index: fc.nat(255),
});
const address = fc.record({ at: owner, offset, role: fc.constantFrom(null, null, 'vip') });
const range = fc.record({ at: owner, offset, size: fc.integer({ min: 1, max: 700 }) });

const flat = <T extends { at: Owner }>({ at, ...rest }: T) => ({ ...at, ...rest });

/** Without those that the database refuses: an address with and without a role, or twice without one. */
function storable(addresses: readonly Address[]): Address[] {
  const roles = new Map<string, string | null>();
  return addresses.filter((each) => {
    const key = `${spaceOf(each)} ${each.offset}`;
    const isFree = !roles.has(key) || (each.role !== null && roles.get(key) === each.role);
    roles.set(key, roles.get(key) ?? each.role);
    return isFree || each.vrf === 'vrf_any';
  });
}

async function store(
  trx: Knex,
  networks: readonly Network[],
  addresses: readonly Address[],
  ranges: readonly Range[],
): Promise<Map<string, string | null>> {
  const at = (each: readonly Owner[]) => [each.map((e) => e.tenantId), each.map((e) => e.vrf)];
  await trx.raw(
    `INSERT INTO prefixes (id, tenant_id, vrf_id, cidr, status, allocation_mode)
       SELECT 'pfx_' || n, tenant, vrf, set_masklen('${BASE}'::inet + first, length)::cidr, 'active', 'static'
       FROM unnest(?::text[], ?::text[], ?::integer[], ?::integer[]) WITH ORDINALITY AS given (tenant, vrf, first, length, n)`,
    [...at(networks), networks.map((each) => spanOf(each)[0]), networks.map((e) => e.length)],
  );
  await trx.raw(
    `INSERT INTO ip_addresses (id, tenant_id, vrf_id, address, status, role)
       SELECT 'ipa_' || n, tenant, vrf, '${BASE}'::inet + host, 'active', nullif(role, '')
       FROM unnest(?::text[], ?::text[], ?::integer[], ?::text[]) WITH ORDINALITY AS given (tenant, vrf, host, role, n)`,
    [...at(addresses), addresses.map((e) => e.offset), addresses.map((e) => e.role ?? '')],
  );
  await trx.raw(
    `INSERT INTO ip_ranges (id, tenant_id, vrf_id, start_address, end_address, status)
       SELECT 'rng_' || n, tenant, vrf, '${BASE}'::inet + first, '${BASE}'::inet + last, 'active'
       FROM unnest(?::text[], ?::text[], ?::integer[], ?::integer[]) WITH ORDINALITY AS given (tenant, vrf, first, last, n)`,
    [...at(ranges), ranges.map((e) => e.offset), ranges.map((e) => e.offset + e.size - 1)],
  );
  await trx.raw('SELECT recalculate_prefix_parents()');
  const rows: { id: string; parent_prefix_id: string | null }[] = await trx('prefixes').select(
    'id',
    'parent_prefix_id',
  );
  return new Map(rows.map((row) => [row.id, row.parent_prefix_id]));
}

/** The usage of a prefix, counted one by one. */
function usageOf(
  prefix: Network,
  children: readonly Network[],
  all: { networks: readonly Network[]; addresses: readonly Address[]; ranges: readonly Range[] },
) {
  const [first, end] = spanOf(prefix);
  const isInside = (n: number) => n >= first && n < end;
  const inside = all.networks.filter((each) => {
    const [from, to] = spanOf(each);
    const isSmaller = from >= first && to <= end && to - from < end - first;
    return each.vrf === prefix.vrf && isOfPlatform(each) && !isOfPlatform(prefix) && isSmaller;
  });
  const ranges = all.ranges
    .filter((each) => countsIn(prefix, each))
    .map(({ offset: from, size }): [number, number] => [from, from + size])
    .filter(([from, to]) => from < end && to > first);
  const hosts = new Set(
    all.addresses.filter((e) => countsIn(prefix, e) && isInside(e.offset)).map((e) => e.offset),
  );
  const used = new Set(hosts);
  for (const [from, to] of [...[...children, ...inside].map(spanOf), ...ranges])
    for (let n = Math.max(from, first); n < Math.min(to, end); n++) used.add(n);
  const reserved = BigInt([first, end - 1].filter((n) => !used.has(n)).length);
  return { used: BigInt(used.size), reserved, addresses: hosts.size, ranges: ranges.length };
}

test('the usage of prefixes is what counting every address finds, in every kind of space', async () => {
  const key = (each: Network) => `${spaceOf(each)} ${each.length} ${spanOf(each)[0]}`;
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(network.map(flat), { selector: key, minLength: 4, maxLength: 25 }),
      fc.array(address.map(flat), { minLength: 20, maxLength: 60, size: 'max' }).map(storable),
      fc.uniqueArray(range.map(flat), { selector: spaceOf, maxLength: 4 }),
      async (networks, addresses, ranges) => {
        const trx = await db.transaction();
        try {
          const parents = await store(trx, networks, addresses, ranges);
          const ids = networks.map((_, i) => `pfx_${i + 1}`);
          const found = await readUsage(trx, ids);
          for (const [i, prefix] of networks.entries()) {
            const children = networks.filter((_, c) => parents.get(ids[c] ?? '') === ids[i]);
            const expected = usageOf(prefix, children, { networks, addresses, ranges });
            expect(found.get(ids[i] ?? '')).toMatchObject(expected);
          }
        } finally {
          await trx.rollback();
        }
      },
    ),
    { numRuns: propertyRuns(25) },
  );
});

test('large networks and ranges of IPv6 are counted exactly', async () => {
  const trx = await db.transaction();
  await trx.raw(
    `INSERT INTO prefixes (id, tenant_id, cidr, status, allocation_mode) VALUES
       ('pfx_o', 't1', '2001:db8::/32', 'active', 'static'), ('pfx_c', 't1', '2001:db8:0:1::/64', 'active', 'static')`,
  );
  await trx.raw('SELECT recalculate_prefix_parents()');
  await trx.raw(
    `INSERT INTO ip_ranges (id, tenant_id, start_address, end_address, status) VALUES
       ('rng_1', 't1', '2001:db8:1::1', '2001:db8:2::5', 'active'), ('rng_2', 't1', '2001:db8:9::2', '2001:db8:9::9', 'active')`,
  );
  const found = await readUsage(trx, ['pfx_o', 'pfx_c']);
  await trx.rollback();
  expect(found.get('pfx_o')?.used).toBe(2n ** 64n + (2n ** 80n + 5n) + 8n);
  expect(found.get('pfx_c')).toMatchObject({ size: 2n ** 64n, used: 0n });
});
