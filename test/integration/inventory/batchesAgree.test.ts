import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { assertDefined } from '../../../domain/shared/assert.ts';
import { startApp, type TestApp } from '../../support/app.ts';
import type { TestClient } from '../../support/client.ts';
import { propertyRuns } from '../../support/effort.ts';
import type {
  BatchValidation,
  BulkReport,
  Finding,
  InventoryRecord,
} from '../../support/inventory.ts';
import { admin } from '../../support/users.ts';

let app: TestApp;
let root: TestClient;
let rounds = 0;

beforeAll(async () => {
  app = await startApp({}, { idle: true });
  root = admin(app);
});
afterAll(() => app.stop());

type Mutation = { resource: string; operation: string; record: Record<string, unknown> };
type Made = { resource: string; id: string };

const KINDS = [
  ...['vrf', 'vrf', 'strict', 'dropVrf'],
  ...['prefix', 'prefix', 'prefix', 'prefix', 'movePrefix', 'movePrefix', 'dropPrefix'],
  ...['address', 'address', 'address', 'moveAddress', 'dropAddress', 'dropAddress'],
  ...['range', 'dropRange', 'tag', 'tag', 'dropTag', 'dropTag', 'retag', 'retag', 'untag'],
  ...['region', 'moveRegion', 'dropRegion', 'field', 'dropField'],
] as const;

const step = fc.record({
  what: fc.constantFrom(...KINDS),
  pick: fc.nat(1_000),
  vrf: fc.nat(2),
  tag: fc.nat(2),
  at: fc.nat(63),
  shorter: fc.integer({ min: 0, max: 6 }),
  flag: fc.boolean(),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Records of one of two worlds that get the same changes, in batches and one after another. */
class World {
  private made: Made[] = [];
  private readonly key: string;

  constructor(key: string) {
    this.key = key;
  }

  private name = (kind: string, number: number) => `${this.key}-${kind}${number}`;

  private pick = (resource: string, number: number) => {
    const all = this.made.filter((each) => each.resource === resource);
    return all[number % Math.max(1, all.length)];
  };

  note(mutation: Mutation, id: string): void {
    const { resource, operation } = mutation;
    if (operation === 'create') this.made.push({ resource, id });
    if (operation === 'delete') this.made = this.made.filter((each) => each.id !== id);
  }

  mutation({ what, pick, vrf, tag, at, shorter, flag }: Step): Mutation | undefined {
    const size = 1 << shorter;
    const vrfId = { name: this.name('vrf', vrf) };
    const tags = flag ? [this.name('tag', tag)] : [];
    const cidr = `10.0.0.${at - (at % size)}/${32 - shorter}`;
    const create = (resource: string, record: Record<string, unknown>): Mutation => ({
      resource,
      operation: 'create',
      record,
    });
    const change = (resource: string, operation: string, record: object) => {
      const target = this.pick(resource, pick);
      return target && { resource, operation, record: { id: target.id, ...record } };
    };
    const drop = (resource: string) => change(resource, 'delete', {});
    const update = (resource: string, record: object) => change(resource, 'update', record);
    const address = `10.0.0.${at}/32`;
    const role = flag ? 'anycast' : null;
    const status = flag ? 'container' : 'active';
    switch (what) {
      case 'vrf':
        return create('vrfs', { name: vrfId.name, enforceUnique: flag, tags });
      case 'strict':
        return update('vrfs', { enforceUnique: flag });
      case 'dropVrf':
        return drop('vrfs');
      case 'prefix':
        return create('prefixes', { cidr, vrfId, status, tags });
      case 'movePrefix':
        return update('prefixes', flag ? { cidr } : { cidr, vrfId });
      case 'dropPrefix':
        return drop('prefixes');
      case 'address':
        return create('ip-addresses', { address, vrfId, role });
      case 'moveAddress':
        return update('ip-addresses', { address, role });
      case 'dropAddress':
        return drop('ip-addresses');
      case 'range':
        return create('ip-ranges', {
          vrfId,
          startAddress: `10.0.0.${at}`,
          endAddress: `10.0.0.${Math.min(63, at + size)}`,
        });
      case 'dropRange':
        return drop('ip-ranges');
      case 'tag':
        return create('tags', { id: this.name('tag', tag), name: this.name('tag', tag) });
      case 'dropTag':
        // Its id is known before it is created.
        return { resource: 'tags', operation: 'delete', record: { id: this.name('tag', tag) } };
      case 'retag':
        return update('prefixes', { tags: [this.name('tag', tag)] });
      case 'untag':
        return update(flag ? 'prefixes' : 'vrfs', { tags: [] });
      case 'region':
        return create('regions', {
          name: this.name('region', at % 4),
          ...(flag && { parentId: { name: this.name('region', pick % 4) } }),
          ...(shorter === 0 && { customFields: { [this.fieldName(tag)]: 'x' } }),
        });
      case 'moveRegion':
        return update('regions', { parentId: { name: this.name('region', at % 4) } });
      case 'dropRegion':
        return drop('regions');
      case 'field':
        return create('custom-fields', {
          resource: 'regions',
          name: this.fieldName(tag),
          type: 'text',
        });
      case 'dropField':
        return drop('custom-fields');
    }
  }

  private fieldName = (number: number) => `${this.key.replaceAll('-', '_')}_f${number}`;
}

/** The usage in the warning about a full prefix is an estimate. */
const codesOf = (findings: readonly Finding[]) =>
  findings
    .map(({ code }) => code)
    .filter((code) => code !== 'parent_full')
    .sort();

const write = (mutations: readonly Mutation[]) =>
  root.post<BulkReport>('/api/inventory/bulk', { mode: 'each', mutations }).expect(200);

type Result = { outcome: string; found: string[]; warnings: string[] };

const resultOf = (written: BulkReport['results'][number]): Result => ({
  outcome: written.outcome,
  found: codesOf([...written.errors, ...written.conflicts]),
  warnings: codesOf(written.warnings),
});

/** Validates and writes a batch. Both find the same. */
async function applyTogether(world: World, mutations: readonly Mutation[]): Promise<Result[]> {
  const validated = await root.post<BatchValidation>('/api/validation/inventory', { mutations });
  const { results } = await write(mutations);
  return mutations.map((mutation, i) => {
    const written = assertDefined(results[i], `result ${i}`);
    const { validation } = assertDefined(validated.body.results[i], `validation ${i}`);
    const result = resultOf(written);
    expect([mutation, codesOf([...validation.errors, ...validation.conflicts])]).toEqual([
      mutation,
      result.found,
    ]);
    expect([mutation, codesOf(validation.warnings)]).toEqual([mutation, result.warnings]);
    if (written.id !== null) world.note(mutation, written.id);
    return result;
  });
}

async function applyOne(world: World, mutation: Mutation): Promise<Result> {
  const { results } = await write([mutation]);
  const written = assertDefined(results[0], 'result');
  if (written.id !== null) world.note(mutation, written.id);
  return resultOf(written);
}

test('a batch finds and does what its mutations do one after another', async () => {
  const batch = fc.array(step, { minLength: 4, maxLength: 14 });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 3, maxLength: 6 }), async (batches) => {
      rounds += 1;
      const [together, apart] = [new World(`w${rounds}-a`), new World(`w${rounds}-b`)];
      for (const steps of batches) {
        // Steps choose among the records that exist before the batch, which are the same in both.
        const pairs = steps.flatMap((each) => {
          const [one, other] = [together.mutation(each), apart.mutation(each)];
          return one && other ? [{ one, other }] : [];
        });
        if (pairs.length === 0) continue;
        const found = await applyTogether(
          together,
          pairs.map(({ one }) => one),
        );
        for (const [i, { one, other }] of pairs.entries()) {
          const expected = await applyOne(apart, other);
          expect([i, one, found[i]]).toEqual([i, one, expected]);
        }
      }
    }),
    { numRuns: propertyRuns(4), endOnFailure: true },
  );
}, 600_000);

describe('what a batch removes does not conflict with its later mutations', () => {
  const COUNT = 30;
  const make = (resource: string, record: object) =>
    root.post<InventoryRecord>(`/api/inventory/${resource}`, record).expect(201);
  const remove = (resource: string, id: string): Mutation => ({
    resource,
    operation: 'delete',
    record: { id },
  });
  const update = (resource: string, id: string, record: object): Mutation => ({
    resource,
    operation: 'update',
    record: { id, ...record },
  });

  /** Validates the removal of all but some records, and then the last mutation: its conflicts. */
  async function conflictsAfter(removals: readonly Mutation[], left: number, last: Mutation) {
    const mutations = [...removals.slice(0, removals.length - left), last];
    const { body } = await root.post<BatchValidation>('/api/validation/inventory', { mutations });
    return assertDefined(body.results.at(-1), 'last result').validation.conflicts.map(
      ({ code }) => code,
    );
  }

  /** Of many conflicting records, the remaining ones conflict, and none when all are removed. */
  async function expectCorrected(removals: readonly Mutation[], last: Mutation, code: string) {
    expect(await conflictsAfter(removals, removals.length, last)).toHaveLength(10);
    expect(await conflictsAfter(removals, 3, last)).toEqual([code, code, code]);
    expect(await conflictsAfter(removals, 0, last)).toEqual([]);
  }

  const numbers = Array.from({ length: COUNT }, (_, i) => i);
  const makeMany = (each: (i: number) => Promise<InventoryRecord>) =>
    Promise.all(numbers.map(each));

  test('records with a tag', async () => {
    await make('tags', { id: 'many', name: 'many' });
    const regions = await makeMany((i) => make('regions', { name: `t${i}`, tags: ['many'] }));
    const untagged = regions.map(({ id }, i) =>
      i % 2 === 0 ? remove('regions', id) : update('regions', id, { tags: [] }),
    );
    await expectCorrected(untagged, remove('tags', 'many'), 'in_use');
  });

  test('records with a value of a custom field', async () => {
    const { id } = await make('custom-fields', { resource: 'regions', name: 'many', type: 'text' });
    const regions = await makeMany((i) =>
      make('regions', { name: `c${i}`, customFields: { many: 'x' } }),
    );
    const cleared = regions.map((region, i) =>
      i % 2 === 0
        ? remove('regions', region.id)
        : update('regions', region.id, { customFields: { many: null } }),
    );
    await expectCorrected(cleared, remove('custom-fields', id), 'in_use');
  });

  test('addresses that would have no prefix, and addresses that exist more than once', async () => {
    const { id: vrfId } = await make('vrfs', { name: 'many', enforceUnique: false });
    const prefix = await make('prefixes', { cidr: '10.0.0.0/24', vrfId });
    const addresses = await makeMany((i) =>
      make('ip-addresses', { address: `10.0.0.${i + 1}/32`, vrfId }),
    );
    const moved = addresses.map(({ id }, i) =>
      i % 2 === 0
        ? remove('ip-addresses', id)
        : update('ip-addresses', id, { address: `10.0.1.${i}/32` }),
    );
    await expectCorrected(moved, remove('prefixes', prefix.id), 'would_orphan_addresses');
    await makeMany((i) => make('ip-addresses', { address: `10.0.0.${i + 1}/32`, vrfId }));
    const strict = update('vrfs', vrfId, { enforceUnique: true });
    expect(await conflictsAfter(moved, 0, strict)).toEqual([]);
    expect(await conflictsAfter(moved, 3, strict)).toHaveLength(6);
    expect(await conflictsAfter(moved, COUNT, strict)).toHaveLength(10);
  });

  test('records that refer to another', async () => {
    const vrf = await make('vrfs', { name: 'referred' });
    const prefixes = await makeMany((i) =>
      make('prefixes', { cidr: `10.1.${i}.0/24`, vrfId: vrf.id }),
    );
    const removed = prefixes.map(({ id }, i) =>
      i % 2 === 0
        ? remove('prefixes', id)
        : update('prefixes', id, { vrfId: null, cidr: `10.250.${i}.0/24` }),
    );
    const last = remove('vrfs', vrf.id);
    expect(await conflictsAfter(removed, 3, last)).toEqual(['in_use', 'in_use', 'in_use']);
    expect(await conflictsAfter(removed, 0, last)).toEqual([]);
  });
});
