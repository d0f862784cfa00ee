import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { formatHost, isBlock, parseBlock } from '../../../domain/inventory/cidr.ts';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { systemCaller } from '../../../domain/shared/caller.ts';
import { propertyRuns } from '../../support/effort.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import {
  IpamModel,
  type ModelAddress,
  type ModelPrefix,
  type ModelRange,
  type ModelVrf,
  type ExpectedFindings,
} from '../../support/ipamModel.ts';
import {
  recordFactory,
  type BatchValidation,
  type BulkReport,
  type InventoryRecord,
  type Validation,
} from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let vrfs: ({ id: string | null } & ModelVrf)[];
let rounds = 0;

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
  const make = recordFactory(() => root);
  for (const id of TENANTS.slice(1)) await make('tenants', { id, name: id });
  const vrf = async (name: string, allowsDuplicates: boolean, tenantId = 'platform') => ({
    id: (await make('vrfs', { name, enforceUnique: !allowsDuplicates, tenantId })).id,
    allowsDuplicates,
    isShared: tenantId === 'platform',
  });
  vrfs = [
    { id: null, allowsDuplicates: false, isShared: true },
    await vrf('strict', false),
    await vrf('lax', true),
    await vrf('own', false, 'red'),
  ];
});
afterAll(() => app.stop());

const TENANTS = ['platform', 'red', 'blue'];
const MODES = ['static', 'pool', 'dynamic'];

/** What may happen; numbers choose among what is there. */
const step = fc.record({
  what: fc.constantFrom(
    'prefix',
    'prefix',
    'prefix',
    'range',
    'address',
    'address',
    'movePrefix',
    'movePrefix',
    'moveAddress',
    'moveRange',
    'dropPrefix',
    'dropPrefix',
    'dropAddress',
    'dropRange',
  ),
  pick: fc.nat(1_000),
  vrf: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 3),
  tenant: fc.constantFrom(...TENANTS),
  keepTenant: fc.constantFrom(true, true, true, false),
  other: fc.constantFrom(false, false, false, false, true),
  shorter: fc.integer({ min: 0, max: 8 }),
  at: fc.nat(255),
  to: fc.nat(255),
  parent: fc.option(fc.nat(1_000), { freq: 4, nil: null }),
  mode: fc.nat(2),
  shared: fc.boolean(),
  keepVrf: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/**
 * Networks of a tenant and of the platform that start at the same address, with an address of the
 * tenant, one of which is then dropped or moved perhaps. Few other histories have that.
 */
const nest = fc
  .record({
    at: fc.constantFrom(0, 64, 128),
    tenant: fc.constantFrom(...TENANTS),
    steps: fc.tuple(step, step, step, step, step),
  })
  .map(({ at, tenant, steps: [outer, inner, address, next, last] }): Step[] => {
    const here = { vrf: 0, other: false, at, parent: null } as const;
    return [
      { ...outer, ...here, what: 'prefix', tenant },
      { ...inner, ...here, what: 'prefix', tenant: 'platform' },
      { ...address, ...here, what: 'address', tenant, at: at + 1 },
      { ...next, what: 'dropPrefix', shared: true },
      last,
    ];
  });

/** The corner of the address space of one round: 256 addresses of each family. */
class AddressSpaceRound {
  readonly model = new IpamModel((vrf) =>
    assertDefined(
      vrfs.find(({ id }) => (id ?? 'global') === vrf),
      'vrf',
    ),
  );
  private readonly number: number;

  constructor(number: number) {
    this.number = number;
  }

  private base = (family: 4 | 6): bigint =>
    family === 4
      ? (10n << 24n) + (BigInt(this.number) << 8n)
      : (0x20010db8n << 96n) + (BigInt(this.number) << 80n);

  private host = (family: 4 | 6, at: number) => this.base(family) + BigInt(at);

  /** Most of a round is in one VRF and one family, so that it becomes crowded there. */
  private familyOf = ({ other }: Step): 4 | 6 => ((this.number % 2 === 0) === other ? 4 : 6);

  private vrfOf = ({ vrf }: Step) => vrfs[(vrf + this.number) % vrfs.length];

  private block(asked: Step) {
    const { shorter, at } = asked;
    const family = this.familyOf(asked);
    const size = 1n << BigInt(shorter);
    const first = (this.host(family, at) / size) * size;
    return { family, first, last: first + size - 1n, length: (family === 4 ? 32 : 128) - shorter };
  }

  private pickOf = <T>(list: readonly T[], pick: number): T | undefined =>
    list[pick % Math.max(1, list.length)];

  /** What a step asks for, and what the model says of it; undefined when there is nothing to do it to. */
  plan(asked: Step):
    | {
        mutation: { resource: string; operation: string; record: Record<string, unknown> };
        expected: ExpectedFindings;
        accept(id: string): void;
      }
    | undefined {
    const { model } = this;
    const vrf = this.vrfOf(asked);
    const family = this.familyOf(asked);
    const key = vrf?.id ?? 'global';
    const kind = asked.what.replace(/^(move|drop)/, '').toLowerCase();
    const list = { prefix: model.prefixes, range: model.ranges, address: model.addresses }[
      kind
    ] as { id: string; vrf: string; tenant: string; family: 4 | 6 }[];
    // Half of the moves and deletes are of prefixes that have others in them: there most can go wrong.
    const parents =
      kind === 'prefix' && asked.shared
        ? model.prefixes.filter((p) =>
            model.prefixes.some((child) => model.smallestContaining(child, child)?.id === p.id),
          )
        : [];
    const target =
      asked.what === kind
        ? undefined
        : this.pickOf(parents.length > 0 ? parents : list, asked.pick);
    if (asked.what !== kind && !target) return undefined;
    const resource =
      { prefix: 'prefixes', range: 'ip-ranges', address: 'ip-addresses' }[kind] ?? '';
    if (asked.what.startsWith('drop') && target) {
      const orphaning = kind === 'prefix' && model.leavesOrphans(target as ModelPrefix, null);
      return {
        mutation: { resource, operation: 'delete', record: { id: target.id } },
        expected: { errors: [], conflicts: orphaning ? ['would_orphan_addresses'] : [] },
        accept: () => void list.splice(list.indexOf(target), 1),
      };
    }
    const operation = target ? 'update' : 'create';
    const into = target && asked.keepVrf ? target.vrf : key;
    const id = target?.id ?? '';
    const tenant = target && asked.keepTenant ? target.tenant : asked.tenant;
    const position = { vrfId: into === 'global' ? null : into, tenantId: tenant };
    const own = target ? { id } : {};
    const put =
      <T extends { id: string }>(of: T[], next: T) =>
      (made: string) => {
        if (target)
          of.splice(
            of.findIndex((each) => each.id === id),
            1,
            next,
          );
        else of.push({ ...next, id: made });
      };
    if (kind === 'prefix') {
      const block = this.block(asked);
      const mode = MODES[asked.mode] ?? 'static';
      const parent =
        asked.parent === null ? null : (this.pickOf(model.prefixes, asked.parent)?.id ?? null);
      const next: ModelPrefix = { ...block, id, vrf: into, tenant, mode };
      const cidr = `${formatHost(block.family, block.first)}/${block.length}`;
      return {
        mutation: {
          resource,
          operation,
          record: {
            ...own,
            ...position,
            cidr,
            allocationMode: mode,
            ...(parent !== null && { parentPrefixId: parent }),
          },
        },
        expected: model.prefix(next, parent),
        accept: put(model.prefixes, next),
      };
    }
    if (kind === 'range') {
      const next: ModelRange = {
        id,
        vrf: into,
        tenant,
        family,
        first: this.host(family, asked.at),
        last: this.host(family, asked.to),
      };
      const record = {
        ...own,
        ...position,
        startAddress: formatHost(next.family, next.first),
        endAddress: formatHost(next.family, next.last),
      };
      const unchanged = model.ranges.some(
        (r) =>
          r.id === id &&
          r.vrf === into &&
          (r.tenant === tenant ||
            !assertDefined(
              vrfs.find((v) => (v.id ?? 'global') === into),
              'vrf',
            ).isShared) &&
          r.family === next.family &&
          r.first === next.first &&
          r.last === next.last,
      );
      return {
        mutation: { resource, operation, record },
        expected: unchanged ? { errors: [], conflicts: [] } : model.range(next),
        accept: put(model.ranges, next),
      };
    }
    const first = this.host(family, asked.at);
    const next: ModelAddress = {
      id,
      vrf: into,
      tenant,
      family,
      first,
      last: first,
      shared: asked.shared,
    };
    const record = {
      ...own,
      ...position,
      address: formatHost(next.family, first),
      role: asked.shared ? 'anycast' : null,
    };
    return {
      mutation: { resource, operation, record },
      expected: model.address(next),
      accept: put(model.addresses, next),
    };
  }
}

const codes = (list: readonly { code: string }[]) =>
  [...new Set(list.map(({ code }) => code))].sort();
const distinct = (list: readonly string[]) => [...new Set(list)].sort();

/** The addresses of networks, in order. */
function addressesOf(networks: readonly string[]): bigint[] {
  const blocks = networks.map(parseBlock).filter(isBlock);
  expect(blocks.length).toBe(networks.length);
  return blocks.flatMap(({ first, last }) =>
    Array.from({ length: Number(last - first) + 1 }, (_, i) => first + BigInt(i)),
  );
}

/** The tree, the usage and the free space that are stored, against the model. */
async function compareAll(round: AddressSpaceRound): Promise<void> {
  const { db, inventory } = app.deps;
  const ids = round.model.prefixes.map(({ id }) => id);
  const stored = await db('prefixes').whereIn('id', ids).select('id', 'parent_prefix_id');
  expect(stored.length).toBe(ids.length);
  const caller = systemCaller('platform', 'test');
  for (const prefix of round.model.prefixes) {
    const { parent_prefix_id: parentId } = stored.find(({ id }) => id === prefix.id) as {
      parent_prefix_id: string | null;
    };
    const parent = round.model.prefixes.find(({ id }) => id === parentId);
    const closest = round.model.smallestContaining(prefix, prefix);
    const positionOf = (of: ModelPrefix | undefined) => of && [of.first, of.length, of.tenant];
    expect([prefix, positionOf(parent)]).toEqual([prefix, positionOf(closest)]);
    if (round.model.hasDuplicate(prefix)) continue;
    const wholePage = { after: undefined, limit: 1_000 };
    const { usage, free } = await inventory.addressSpace.tree(caller, prefix.id, wholePage);
    expect(usage.used).toBe(round.model.used(prefix));
    expect([prefix, addressesOf(free)]).toEqual([prefix, round.model.free(prefix)]);
  }
}

async function checkOne(round: AddressSpaceRound, asked: Step): Promise<void> {
  const planned = round.plan(asked);
  if (!planned) return;
  const { mutation, expected, accept } = planned;
  const status = expected.errors.length > 0 ? 400 : expected.conflicts.length > 0 ? 409 : 200;
  const validated = await root.post<Validation>('/api/validation/inventory', mutation);
  const { errors, conflicts } = validated.body.validation;
  expect([mutation, validated.status, codes(errors), codes(conflicts)]).toEqual([
    mutation,
    status,
    distinct(expected.errors),
    distinct(expected.conflicts),
  ]);
  const { id, ...fields } = mutation.record;
  const path = `/api/inventory/${mutation.resource}`;
  const done =
    mutation.operation === 'create'
      ? await root.post<InventoryRecord>(path, fields)
      : mutation.operation === 'update'
        ? await root.put<InventoryRecord>(`${path}/${String(id)}`, fields)
        : await root.delete<InventoryRecord>(`${path}/${String(id)}`);
  expect([mutation, done.status]).toEqual([
    mutation,
    status === 200 ? { create: 201, update: 200, delete: 204 }[mutation.operation] : status,
  ]);
  if (status === 200) accept(done.body.id);
}

/** Plans several steps as a batch. Steps do not refer to records that the batch creates. */
async function checkBatch(round: AddressSpaceRound, steps: readonly Step[]): Promise<void> {
  const known = new Set(
    [...round.model.prefixes, ...round.model.ranges, ...round.model.addresses].map(({ id }) => id),
  );
  const planned = [];
  for (const asked of steps) {
    const next = round.plan(asked);
    const refers = [next?.mutation.record.id, next?.mutation.record.parentPrefixId].filter(
      (id) => id !== undefined,
    );
    if (!next || refers.some((id) => !known.has(id as string))) continue;
    planned.push(next);
    if (next.expected.errors.length === 0 && next.expected.conflicts.length === 0)
      next.accept(`new:${planned.length - 1}`);
  }
  if (planned.length === 0) return;
  const mutations = planned.map(({ mutation }) => mutation);
  const validated = await root.post<BatchValidation>('/api/validation/inventory', { mutations });
  const { results } = await root
    .post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations })
    .expect(200);
  for (const [i, { mutation, expected }] of planned.entries()) {
    const wanted = [mutation, distinct(expected.errors), distinct(expected.conflicts)];
    const written = assertDefined(results[i], `result ${i}`);
    const { validation } = assertDefined(validated.body.results[i], `validation ${i}`);
    expect([mutation, codes(written.errors), codes(written.conflicts)]).toEqual(wanted);
    expect([mutation, codes(validation.errors), codes(validation.conflicts)]).toEqual(wanted);
    for (const each of [...round.model.prefixes, ...round.model.ranges, ...round.model.addresses])
      if (each.id === `new:${i}`) each.id = assertDefined(written.id, 'id');
  }
}

test('random histories have the findings, tree, usage and free space of a simple model', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          { weight: 8, arbitrary: step.map((each) => [[each]]) },
          {
            weight: 2,
            arbitrary: fc.array(step, { minLength: 2, maxLength: 6 }).map((batch) => [batch]),
          },
          { weight: 1, arbitrary: nest.map((steps) => steps.map((each) => [each])) },
        ),
        { minLength: 20, maxLength: 50 },
      ),
      async (history) => {
        const round = new AddressSpaceRound(++rounds);
        for (const steps of history.flat())
          await (steps.length === 1 && steps[0]
            ? checkOne(round, steps[0])
            : checkBatch(round, steps));
        await compareAll(round);
      },
    ),
    { numRuns: propertyRuns(3), endOnFailure: true },
  );
}, 600_000);
