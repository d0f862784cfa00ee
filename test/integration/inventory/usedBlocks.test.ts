import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Knex } from '../../../db/core/knex.ts';
import { findFreeBlocks } from '../../../db/inventory/freeSpace.ts';
import { loadNeeds } from '../../../db/inventory/load.ts';
import { prepareToRead } from '../../../db/inventory/locks.ts';
import { blockAt, contains, formatBlock } from '../../../domain/inventory/cidr.ts';
import type { Block } from '../../../domain/inventory/cidr.ts';
import { PlanSnapshot } from '../../../domain/inventory/planSnapshot.ts';
import { blockOf } from '../../../domain/inventory/prefixTree.ts';
import type { Row } from '../../../domain/inventory/resource.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { withDatabase } from '../../support/database.ts';
import { propertyRuns } from '../../support/effort.ts';

let db: Knex;
withDatabase((opened) => (db = opened));

const blocks = async (): Promise<string[]> => {
  const { rows } = await db.raw<{ rows: { line: string }[] }>(
    "SELECT space_key || ' ' || block || ' ' || used AS line FROM used_blocks ORDER BY space_key, block",
  );
  return rows.map(({ line }) => line);
};

/** Inserts addresses `first` to `last` of 10.0.0.0/8. */
const insert = (first: number, last: number, { vrf = 'vrf_a', tenant = 't1', role = '' } = {}) =>
  db.raw(
    `INSERT INTO ip_addresses (id, tenant_id, address, vrf_id, status, role)
       SELECT 'ipa_' || ? || ? || ? || n, ?, '10.0.0.0'::inet + n, nullif(?, ''), 'active', nullif(?, '')
       FROM generate_series(?::integer, ?::integer) AS n`,
    [vrf, tenant, role, tenant, vrf, role, first, last],
  );
const change = (set: string, where: string) =>
  db.raw(`UPDATE ip_addresses SET ${set} WHERE ${where}`);

test('the counts of blocks follow every change of addresses', async () => {
  await db.raw(
    `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) VALUES
       ('vrf_a', 't1', 'a', true), ('vrf_b', 't1', 'b', false), ('vrf_s', 'platform', 's', true)`,
  );
  await insert(1, 600);
  await insert(1, 5, { vrf: 'vrf_b' });
  await insert(1, 5, { vrf: 'vrf_s' });
  await insert(1, 4, { vrf: 'vrf_s', tenant: 't2' });
  await insert(1, 3, { vrf: '' });
  await insert(700, 702, { role: 'vip' });
  await insert(700, 701, { role: 'anycast' });
  await db.raw(
    `INSERT INTO ip_addresses (id, tenant_id, address, status) SELECT 'ipa_6' || n, 't1', '2001:db8::'::inet + n, 'active' FROM generate_series(0, 256) AS n`,
  );
  const initial = [
    ...['global/t1 10.0.0.0/24 3', 'global/t1 2001:db8::/112 1'],
    ...['global/t1 2001:db8::/120 256', 'global/t1 2001:db8::100/120 1'],
    ...['vrf_a 10.0.0.0/16 1', 'vrf_a 10.0.0.0/24 255', 'vrf_a 10.0.1.0/24 256'],
    ...['vrf_a 10.0.2.0/24 89', 'vrf_s/t1 10.0.0.0/24 5', 'vrf_s/t2 10.0.0.0/24 4'],
  ];
  expect(await blocks()).toEqual(initial);

  /** The counts are those of a recount, too. */
  const expectBlocks = async (changed: Record<string, number | null>) => {
    const expected = new Map(
      initial.map((line) => [line.replace(/ \d+$/, ''), Number(/\d+$/.exec(line)?.[0])]),
    );
    for (const [block, used] of Object.entries(changed))
      if (used === null) expected.delete(block);
      else expected.set(block, used);
    const lines = [...expected].map(([block, used]) => `${block} ${used}`).sort();
    expect((await blocks()).sort()).toEqual(lines);
    await db.raw('SELECT recount_used_blocks()');
    expect((await blocks()).sort()).toEqual(lines);
    initial.splice(0, initial.length, ...lines);
  };
  // A full block that loses one, by each way.
  await db.raw(`DELETE FROM ip_addresses WHERE vrf_id = 'vrf_a' AND host = '10.0.1.7'`);
  await expectBlocks({ 'vrf_a 10.0.1.0/24': 255, 'vrf_a 10.0.0.0/16': null });
  await change(`address = '10.0.1.7/24'`, `vrf_id = 'vrf_a' AND host = '10.0.2.1'`);
  await expectBlocks({
    ...{ 'vrf_a 10.0.1.0/24': 256, 'vrf_a 10.0.2.0/24': 88, 'vrf_a 10.0.0.0/16': 1 },
  });
  await change(`role = 'vip'`, `vrf_id = 'vrf_a' AND host = '10.0.1.7'`);
  await expectBlocks({ 'vrf_a 10.0.1.0/24': 255, 'vrf_a 10.0.0.0/16': null });
  await change(`role = NULL`, `vrf_id = 'vrf_a' AND host = '10.0.1.7'`);
  await change(`description = 'other'`, `vrf_id = 'vrf_a'`);
  await expectBlocks({ 'vrf_a 10.0.1.0/24': 256, 'vrf_a 10.0.0.0/16': 1 });
  await change(`vrf_id = NULL`, `vrf_id = 'vrf_a' AND host = '10.0.1.8'`);
  await expectBlocks({
    ...{ 'vrf_a 10.0.1.0/24': 255, 'vrf_a 10.0.0.0/16': null, 'global/t1 10.0.1.0/24': 1 },
  });
  // VRFs change what counts in them.
  await change(`tenant_id = 't2'`, `vrf_id = 'vrf_s' AND tenant_id = 't1' AND host = '10.0.0.5'`);
  await expectBlocks({ 'vrf_s/t1 10.0.0.0/24': 4, 'vrf_s/t2 10.0.0.0/24': 5 });
  await db.raw(`UPDATE vrfs SET enforce_unique = true WHERE id = 'vrf_b'`);
  await expectBlocks({ 'vrf_b 10.0.0.0/24': 5 });
  await db.raw(`UPDATE vrfs SET enforce_unique = false WHERE id = 'vrf_b'`);
  await expectBlocks({ 'vrf_b 10.0.0.0/24': null });
  await db.raw('DELETE FROM ip_addresses');
  expect(await blocks()).toEqual([]);
});

test('the search skips full blocks of every size, and only these', async () => {
  /** Uses addresses of each of `count` blocks of 256. */
  const fill = (first: string, count: number, used = 256) =>
    db.raw(
      `SELECT count_used_block('v', 'v/t', set_masklen(?::inet + n * 256, 24)::cidr, ?)
         FROM generate_series(0, ?::integer) AS n`,
      [first, used, count - 1],
    );
  // 10.1.0.0/16 is full, then three blocks of 256, then one that has an address left.
  await fill('10.1.0.0', 256 + 3);
  await fill('10.2.3.0', 1, 255);
  await fill('10.4.0.0', 256);
  const search = async (first: string, last: string, space: string | null = 'v/t') => {
    const { rows } = await db.raw<{ rows: { at: string | null }[] }>(
      `SELECT host(skip_used_blocks('v', ?, ?::inet, ?::inet)) AS at`,
      [space, first, last],
    );
    return assertDefined(rows[0], 'row').at;
  };
  const end = '10.255.255.255';
  expect(await db('used_blocks').where({ block: '10.1.0.0/16' }).pluck('used')).toEqual([256]);
  expect(await search('10.0.0.1', end)).toBe('10.0.0.1');
  expect(await search('10.1.0.0', end)).toBe('10.2.3.0');
  expect(await search('10.1.77.13', end)).toBe('10.2.3.0');
  expect(await search('10.2.1.1', end)).toBe('10.2.3.0');
  expect(await search('10.2.3.9', end)).toBe('10.2.3.9');
  expect(await search('10.4.3.9', end)).toBe('10.5.0.0');
  expect(await search('10.1.0.0', end, null)).toBe('10.2.3.0');
  expect(await search('10.1.0.0', end, 'v/other')).toBe('10.1.0.0');
  // Several spaces may fill the same blocks.
  await db.raw(
    `SELECT count_used_block('v', 'v/u', set_masklen('10.2.1.0'::inet + n * 256, 24)::cidr, 256) FROM generate_series(0, 3) AS n`,
  );
  expect(await search('10.1.0.0', end, null)).toBe('10.2.5.0');
  expect(await search('10.1.0.0', end)).toBe('10.2.3.0');
  expect(await search('10.1.0.0', '10.2.4.255', null)).toBeNull();
  await fill('255.255.255.0', 1);
  expect(await search('255.255.255.9', '255.255.255.255')).toBeNull();
  // Nothing is left up to the end of the prefix.
  expect(await search('10.1.0.1', '10.1.0.254')).toBeNull();
  expect(await search('10.1.0.0', '10.1.255.255')).toBeNull();
  expect(await search('10.1.0.0', '10.2.2.255')).toBeNull();
  // One address that becomes free is found again.
  await db.raw(`SELECT count_used_block('v', 'v/t', '10.1.9.0/24', -1)`);
  expect(await search('10.1.0.0', end)).toBe('10.1.9.0');
});

/** The number of rows of `prefixes` that some work in a transaction reads. */
async function readsOf(work: (trx: Knex) => Promise<unknown>): Promise<number> {
  const rowsRead = async (trx: Knex): Promise<number> => {
    const { rows } = await trx.raw<{ rows: { reads: string }[] }>(
      "SELECT seq_tup_read + idx_tup_fetch AS reads FROM pg_stat_xact_user_tables WHERE relname = 'prefixes'",
    );
    return Number(rows[0]?.reads);
  };
  return db.transaction(async (trx) => {
    await prepareToRead(trx);
    const before = await rowsRead(trx);
    await work(trx);
    return (await rowsRead(trx)) - before;
  });
}

test('a search and a plan read no networks of other spaces', async () => {
  await db.raw(
    `INSERT INTO vrfs (id, tenant_id, name, enforce_unique)
       SELECT 'vrf_o' || n, CASE WHEN n % 2 = 0 THEN 't1' ELSE 'platform' END, 'o' || n, true FROM generate_series(1, 20) AS n`,
  );
  await db.raw(
    `INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode)
       SELECT 'pfx_' || v || '_' || n, 't1', set_masklen('10.0.0.0'::inet + 256 * n, 24)::cidr, 'vrf_o' || v, 'active', 'static'
       FROM generate_series(1, 20) AS v, generate_series(1, 50) AS n WHERE v > 2 OR n = 50`,
  );
  for (const [vrf, tenant] of [
    ['vrf_o1', 'platform'],
    ['vrf_o1', 't1'],
    ['vrf_o2', 't1'],
  ] as const) {
    const id = `pfx_${vrf}_${tenant}`;
    await db('prefixes').insert({
      ...{ id, tenant_id: tenant, cidr: '10.0.0.0/8', vrf_id: vrf },
      ...{ status: 'container', allocation_mode: 'pool' },
    });
    const row: Row = { id, version: 1, tenantId: tenant, vrfId: vrf, cidr: '10.0.0.0/8' };
    const search = (trx: Knex) =>
      findFreeBlocks(trx, row, blockOf(row), { length: 24, isAddress: false }, 1);
    expect(await readsOf(search)).toBeLessThan(20);
    const near = (cidr: string) => ({ kind: 'neighbours', vrf, tenantId: tenant, cidr }) as const;
    const many = Array.from({ length: 10 }, (_, n) => near(`10.0.${30 + n}.0/24`));
    for (const needs of [[near('10.0.40.0/24')], [near('10.0.40.0/21')], many]) {
      const visible = { kind: 'everywhere' } as const;
      const loaded = { rows: 0, bytes: 0 };
      const pause = () => Promise.resolve();
      const keep = () => undefined;
      const options = { locking: null, visible, warns: true, pause, loaded, keep };
      const load = (trx: Knex) => loadNeeds(trx, new PlanSnapshot(), needs, options);
      expect(await readsOf(load)).toBeLessThan(20 * needs.length);
    }
  }
});

/** A network in the space of a tenant, in a VRF of the platform, the global table or a VRF of a tenant. */
type Network = { vrf: string; tenantId: string; block: Block };
type Stored = Network & { id: string; parent: string | null };

const OWN_VRF = 'vrf_n';
const spaceOf = ({ vrf, tenantId }: Network) => (vrf === OWN_VRF ? vrf : `${vrf}/${tenantId}`);
const sharedOf = ({ vrf }: Network) => (vrf === OWN_VRF ? null : `${vrf}/platform`);

/** What a plan has to load around a network, found by comparing it with every prefix. */
function surroundings(stored: readonly Stored[], asked: Network) {
  const [own, shared] = [spaceOf(asked), sharedOf(asked)];
  const { block } = asked;
  const inVrf = stored.filter(({ vrf }) => vrf === asked.vrf);
  const around = inVrf.filter((each) => contains(each.block, block));
  const isLarger = (each: Stored) => each.block.length < block.length;
  const smallest = (some: readonly Stored[]) => {
    const length = Math.max(...some.map((each) => each.block.length));
    return some.filter((each) => each.block.length === length);
  };
  const containersIn = (space: string | null) =>
    smallest(around.filter((each) => isLarger(each) && spaceOf(each) === space));
  const seen = around.filter((each) => [own, shared].includes(spaceOf(each)));
  const containers = [...new Set([...containersIn(own), ...containersIn(shared)])];
  const closest = smallest(containers);
  const ofOwn = closest.filter((each) => spaceOf(each) === own);
  const ofTenants = own === shared ? around.filter(({ tenantId }) => tenantId !== 'platform') : [];
  const parents = [...(ofOwn.length > 0 ? ofOwn : closest), ...ofTenants.filter(isLarger)];
  const inside = inVrf.filter(
    (each) =>
      (own === shared || spaceOf(each) === own) &&
      each.block.length > block.length &&
      contains(block, each.block) &&
      (each.parent === null ? closest.length === 0 : parents.some(({ id }) => id === each.parent)),
  );
  return {
    rows: [...seen, ...ofTenants, ...inside],
    near: [...containers, ...seen.filter((each) => !isLarger(each))],
  };
}

const idsOf = (rows: readonly { id: string }[]) => [...new Set(rows.map(({ id }) => id))].sort();

const network = fc
  .tuple(
    fc.constantFrom(...['global t1', 'global t2', 'global platform', 'vrf_p t1', 'vrf_p platform']),
    fc.constantFrom(4, 6),
    fc.subarray([0, 1, 8, 16, 23, 24]),
    fc.constantFrom(1, 7, 8, 15, 16, 24, 31, 32),
    fc.constantFrom('', `${OWN_VRF} t1`),
  )
  .map(([shared, family, bits, length, own]): Network => {
    const [vrf, tenantId] = (own || shared).split(' ') as [string, string];
    // Bits of the middle and of both ends of an address, so that networks are in each other.
    const value = bits.reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n);
    const more = family === 6 ? 96 : 0;
    return {
      vrf,
      tenantId,
      block: blockAt(
        family === 6 ? 6 : 4,
        value << BigInt(more),
        length === 32 ? 32 + more : length,
      ),
    };
  });

/** Stores networks as prefixes. A VRF of a tenant that allows it has some of them twice. */
async function store(networks: readonly Network[]): Promise<Stored[]> {
  await db.raw('DELETE FROM prefixes');
  await db.raw(
    `INSERT INTO prefixes (id, tenant_id, cidr, vrf_id, status, allocation_mode)
       SELECT 'pfx_m' || n, tenant, cidr, nullif(vrf, 'global'), 'active', 'static'
       FROM unnest(?::text[], ?::cidr[], ?::text[]) WITH ORDINALITY AS given (tenant, cidr, vrf, n)`,
    [
      networks.map(({ tenantId }) => tenantId),
      networks.map(({ block }) => formatBlock(block)),
      networks.map(({ vrf }) => vrf),
    ],
  );
  await db.raw('SELECT recalculate_prefix_parents()');
  const { rows } = await db.raw<{ rows: { id: string; parent: string | null }[] }>(
    'SELECT id, parent_prefix_id AS parent FROM prefixes',
  );
  const parents = new Map(rows.map(({ id, parent }) => [id, parent]));
  return networks.map((each, i) => {
    const id = `pfx_m${i + 1}`;
    return { ...each, id, parent: parents.get(id) ?? null };
  });
}

/** The ids of what a plan loads around networks, and of those whose usage comes with it. */
async function loadAround(trx: Knex, stored: readonly Stored[], networks: readonly Network[]) {
  const snapshot = new PlanSnapshot();
  const rows = new Set<string>();
  snapshot.subscribe(({ id }) => rows.add(id));
  const needs = networks.map(
    ({ block, ...where }) => ({ kind: 'neighbours', ...where, cidr: formatBlock(block) }) as const,
  );
  await loadNeeds(trx, snapshot, needs, {
    locking: null,
    visible: { kind: 'everywhere' },
    warns: true,
    pause: () => Promise.resolve(),
    loaded: { rows: 0, bytes: 0 },
    keep: () => undefined,
  });
  const near = stored.filter(({ id }) => snapshot.isLoaded({ kind: 'fact', name: 'usage', id }));
  return { rows: [...rows].sort(), near: idsOf(near) };
}

test('a plan loads the same around networks that it asks for one by one, or together', async () => {
  await db.raw(
    `INSERT INTO vrfs (id, tenant_id, name, enforce_unique) VALUES ('${OWN_VRF}', 't1', 'n', false), ('vrf_p', 'platform', 'p', true)`,
  );
  const key = (each: Network) => `${spaceOf(each)} ${formatBlock(each.block)}`;
  const prefixes = fc.uniqueArray(network, { selector: key, minLength: 10, maxLength: 40 });
  const asked = fc.array(network, { minLength: 9, maxLength: 9 });
  await fc.assert(
    fc.asyncProperty(prefixes, asked, async (unique, others) => {
      const repeated = unique.filter(({ vrf }, i) => vrf === OWN_VRF && i % 2 === 0);
      const host = { vrf: 'vrf_p', tenantId: 't1', block: blockAt(4, 2n ** 32n - 1n, 32) };
      const stored = await store([...unique, ...repeated, host]);
      // Also the networks that exist, and all addresses.
      const networks = [
        ...others,
        ...unique.slice(0, 9),
        { ...host, tenantId: 'platform' },
        ...([4, 6] as const).map((family) => ({ ...unique[0], block: blockAt(family, 0n, 0) })),
      ] as Network[];
      const expected = networks.map((each) => surroundings(stored, each));
      await db.transaction(async (trx) => {
        await prepareToRead(trx);
        for (const [i, each] of networks.entries())
          expect(await loadAround(trx, stored, [each])).toEqual({
            rows: idsOf(expected[i]?.rows ?? []),
            near: idsOf(expected[i]?.near ?? []),
          });
        expect(await loadAround(trx, stored, networks)).toEqual({
          rows: idsOf(expected.flatMap(({ rows }) => rows)),
          near: idsOf(expected.flatMap(({ near }) => near)),
        });
      });
    }),
    { numRuns: propertyRuns(6) },
  );
});
